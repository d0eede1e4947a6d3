/** The tools of the editor, made from the server's table of edits: what is added there is here too. */

import { useState } from "preact/hooks";
import { joint as jointName } from "../format";
import { builds, edited, edits, selection, step, working } from "../screens/editing";
import { takes } from "../store";
import { TEXTS } from "../texts";
import type { EditFacts, EditParameter, Step } from "../types";

const T = TEXTS.edit;
const LIMBS = ["left_arm", "right_arm"] as const;
/** This one has handles on the time line, and buttons of its own. */
const TRIM = "trim";

type Value = number | boolean | string | string[] | null;
type Values = Record<string, Value>;

function first(edit: EditFacts): Values {
  return Object.fromEntries(edit.parameters.map((each) => [each.name, begin(each)]));
}

function begin({ kind, slider, default: usual }: EditParameter): Value {
  if (kind === "flag") return Boolean(usual);
  if (kind === "joints") return ["right_arm"];
  if (kind === "build") return "";
  return (usual as number | null) ?? (slider ? Math.min(Math.max(1, slider[0]), slider[1]) : null);
}

/** The step that an edit makes of what was chosen; what was left open is left out. */
export function made(edit: EditFacts, values: Values, others: readonly string[]): Step {
  const given = Object.entries(values).filter(([, value]) => value !== null && value !== "" && value !== false);
  const beside = edit.takes === 1 ? { other: others[0] } : edit.takes === -1 ? { others: [...others] } : {};
  return { op: edit.name, ...Object.fromEntries(given), ...beside } as unknown as Step;
}

function Number_({
  parameter,
  value,
  onChange,
}: {
  parameter: EditParameter;
  value: number | null;
  onChange: (value: Value) => void;
}) {
  const { title, help, unit, slider, low, high } = parameter;
  if (slider) {
    const [from, to, by] = slider;
    return (
      <label class="tool-number">
        <span class="tool-label">{title}</span>
        <input
          type="range"
          min={from}
          max={to}
          step={by}
          value={value ?? from}
          title={help}
          aria-label={`${title}: ${help}`}
          onInput={(event) => onChange(Number(event.currentTarget.value))}
        />
        <output>
          {value} {unit}
        </output>
      </label>
    );
  }
  return (
    <label class="inline" title={help}>
      <span>{title}</span>
      <input
        type="number"
        min={low ?? undefined}
        max={high ?? undefined}
        step="any"
        value={value ?? ""}
        placeholder={T.usual}
        onInput={(event) => onChange(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}
      />{" "}
      {unit}
    </label>
  );
}

function Input({
  parameter,
  value,
  onChange,
}: {
  parameter: EditParameter;
  value: Value;
  onChange: (value: Value) => void;
}) {
  const { kind, title, help } = parameter;
  if (kind === "flag") {
    return (
      <label class="check" title={help}>
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />{" "}
        <span>{title}</span>
      </label>
    );
  }
  if (kind === "joints") {
    const chosen = (value as string[])[0] ?? "";
    return (
      <label class="inline" title={help}>
        <span>{title}</span>
        <select value={chosen} onChange={(event) => onChange([event.currentTarget.value])}>
          {LIMBS.map((limb) => (
            <option key={limb} value={limb}>
              {TEXTS.joints.groups[limb]}
            </option>
          ))}
          {(edited.value?.names ?? []).map((name) => (
            <option key={name} value={name}>
              {jointName(name)}
            </option>
          ))}
        </select>
      </label>
    );
  }
  if (kind === "build") {
    return (
      <label class="inline" title={help}>
        <span>{title}</span>
        <select value={String(value)} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">{T.pick}</option>
          {builds.value.map(({ build, title: words }) => (
            <option key={build} value={build}>
              {words}
            </option>
          ))}
        </select>
      </label>
    );
  }
  return <Number_ parameter={parameter} value={value as number | null} onChange={onChange} />;
}

/** One edit with its parameters, and a button that does it. */
function Tool({ edit, others }: { edit: EditFacts; others: readonly string[] }) {
  const [values, setValues] = useState<Values>(() => first(edit));
  const set = (name: string) => (value: Value) => setValues((before) => ({ ...before, [name]: value }));
  const missing =
    (edit.takes !== 0 && others.length === 0) ||
    edit.parameters.some(({ name, required }) => required && (values[name] === "" || values[name] === null));
  // What is rarely wanted is folded away: numbers that may be left open.
  const shown = edit.parameters.filter((each) => each.kind !== "number" || each.slider || each.required);
  const rare = edit.parameters.filter((each) => !shown.includes(each));
  return (
    <div class="edit-tool" data-edit={edit.name}>
      {shown.map((each) => (
        <Input key={each.name} parameter={each} value={values[each.name] ?? null} onChange={set(each.name)} />
      ))}
      {rare.length > 0 && (
        <details class="more">
          <summary>{T.more}</summary>
          {rare.map((each) => (
            <Input key={each.name} parameter={each} value={values[each.name] ?? null} onChange={set(each.name)} />
          ))}
        </details>
      )}
      <button
        type="button"
        class="button"
        title={edit.summary}
        disabled={working.value || missing}
        onClick={() => step(made(edit, values, others))}
      >
        {edit.title}
      </button>
    </div>
  );
}

function Trim() {
  const { from, to } = selection.value;
  const whole = from <= 0.001 && to >= (edited.value?.duration_s ?? 0) - 0.001;
  return (
    <>
      <button
        type="button"
        class={whole ? "button" : "button primary"}
        disabled={working.value || whole}
        title={T.hints.trim}
        data-testid="trim"
        onClick={() => step({ op: "trim", start_s: from, end_s: to })}
      >
        {T.trim}
      </button>
      <button
        type="button"
        class="button"
        disabled={working.value}
        title={T.hints.trimIdle}
        onClick={() => step({ op: "trim", auto: true })}
      >
        {T.trimIdle}
      </button>
    </>
  );
}

/** The edits that need another take, or several. */
function Join() {
  const others = takes.value.filter((take) => !take.problem);
  const [chosen, setChosen] = useState<string[]>([]);
  const usable = chosen.filter((name) => others.some((take) => take.name === name));
  const picked = usable.length ? usable : others.slice(0, 1).map(({ name }) => name);
  const tools = edits.value.filter(({ takes: wanted }) => wanted !== 0);
  return (
    <div class="join">
      <label class="field">
        <span>{T.join}</span>
        <select
          multiple
          size={Math.min(4, others.length)}
          aria-label={T.join}
          data-testid="others"
          onChange={(event) => setChosen([...event.currentTarget.selectedOptions].map(({ value }) => value))}
        >
          {others.map((take) => (
            <option key={take.name} value={take.name} selected={picked.includes(take.name)}>
              {take.name}
            </option>
          ))}
        </select>
        <small class="muted">{T.joinHint}</small>
      </label>
      {tools.map((edit) => (
        <Tool key={edit.name} edit={edit} others={picked} />
      ))}
    </div>
  );
}

export function Tools() {
  const alone = edits.value.filter(({ name, takes: wanted }) => wanted === 0 && name !== TRIM);
  const plain = alone.filter(({ parameters }) => parameters.length === 0);
  const others = alone.filter(({ parameters }) => parameters.length > 0);
  return (
    <section class="card" aria-labelledby="tools-title" data-testid="tools">
      <h2 id="tools-title">{T.tools}</h2>
      <div class="row wrap tool-buttons">
        <Trim />
        {plain.map((edit) => (
          <button
            type="button"
            key={edit.name}
            class="button"
            data-edit={edit.name}
            disabled={working.value}
            title={edit.summary}
            onClick={() => step(made(edit, {}, []))}
          >
            {edit.title}
          </button>
        ))}
      </div>
      {others.map((edit) => (
        <Tool key={edit.name} edit={edit} others={[]} />
      ))}
      <Join />
    </section>
  );
}
