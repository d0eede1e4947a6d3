/** The findings of the check. */

import { hundredths, joint as jointName, partly, sentence } from "../../format";
import { Icon } from "../../parts/icons";
import { editor } from "../../state/editor";
import { scene } from "../../state/scene";
import { TEXTS } from "../../texts";
import type { Finding } from "../../types";
import { folded, remedy } from "../../wording";

const T = TEXTS.edit;

const MAX_FINDINGS = 6;

function MarkRow({ mark }: { mark: Finding }) {
  const { message, names } = folded(mark);
  const show = (): void => {
    editor.stopPreview();
    editor.seek(mark.time_s ?? 0);
    editor.reveal(mark.time_s ?? 0);
  };
  return (
    <li
      class={`finding ${mark.severity}`}
      data-severity={mark.severity}
      onPointerEnter={() => (scene.highlighted.value = mark.joint)}
      onPointerLeave={() => (scene.highlighted.value = null)}
    >
      <Icon name={mark.severity === "note" ? "info" : "warn"} />
      <div>
        <p>
          {sentence(message)}{" "}
          {mark.time_s !== null && (
            <button type="button" class="link" onClick={show}>
              {T.at(hundredths(mark.time_s))}
            </button>
          )}
        </p>
        {names.length > 0 && (
          <details class="more">
            <summary>{T.names}</summary>
            <p class="muted">{names.map(jointName).join(", ")}</p>
          </details>
        )}
        {mark.remedy && <p class="remedy">{sentence(remedy(mark))}</p>}
        {mark.joint && <span class="hidden">{jointName(mark.joint)}</span>}
      </div>
    </li>
  );
}

export function Checks() {
  const made = editor.edited.value;
  if (!made) return null;
  const found = made.findings.filter(({ severity }) => severity !== "note");
  const notes = made.findings.filter(({ severity }) => severity === "note");
  const rows = [...found, ...notes].map((mark, index) => <MarkRow key={index} mark={mark} />);
  const more = rows.length - MAX_FINDINGS;
  return (
    <section class="card" aria-labelledby="checks-title" data-testid="checks">
      <div class="row spread">
        <h2 id="checks-title">{T.findings}</h2>
        {made.checked && !made.ok && <span class="chip bad">{T.cannot}</span>}
      </div>
      {editor.strange.value && (
        <p class="bad-words" data-testid="foreign">
          {editor.strange.value}
        </p>
      )}
      {editor.whose.value === null && <p class="bad-words">{T.unknown}</p>}
      {!made.checked && (
        <p class="muted" role="status">
          {T.checking}
        </p>
      )}
      {made.checked && found.length === 0 && (
        <p class="fine">
          <Icon name="check" />
          <span>{partly(notes) ? T.finePartly : T.fine}</span>
        </p>
      )}
      <ul class="findings">{rows.slice(0, MAX_FINDINGS)}</ul>
      {more > 0 && (
        <details class="more">
          <summary>{T.moreFindings(more)}</summary>
          <ul class="findings">{rows.slice(MAX_FINDINGS)}</ul>
        </details>
      )}
    </section>
  );
}
