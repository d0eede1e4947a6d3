/** Input fields that several cards use. */

import { showEditor } from "../../state/show-editor";
import { TEXTS } from "../../texts";

const T = TEXTS.show;

export function NumberField({
  label,
  value,
  low = 0,
  high,
  step = 0.05,
  empty = "",
  onSet,
}: {
  label: string;
  value: number | null | undefined;
  low?: number;
  high?: number;
  step?: number;
  empty?: string;
  onSet: (value: number | null) => void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="number"
        min={low}
        max={high}
        step={step}
        placeholder={empty}
        value={value ?? ""}
        onChange={(event) => {
          const text = event.currentTarget.value;
          const read = Number(text);
          if (text === "") onSet(null);
          else if (Number.isFinite(read)) onSet(Math.min(high ?? Infinity, Math.max(low, read)));
        }}
      />
    </label>
  );
}

export function RoleField({ value, onSet, none }: { value: string; onSet: (role: string) => void; none?: string }) {
  return (
    <label class="field">
      <span>{T.role}</span>
      <select value={value} onChange={(event) => onSet(event.currentTarget.value)}>
        {none && <option value="">{none}</option>}
        {showEditor.roles.value.map((role) => (
          <option key={role} value={role}>
            {role}
          </option>
        ))}
      </select>
    </label>
  );
}
