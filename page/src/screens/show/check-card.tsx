/** The findings of the check. */

import { hundredths, sentence } from "../../format";
import { Icon } from "../../parts/icons";
import type { ShowFinding } from "../../show-document";
import { showEditor } from "../../state/show-editor";
import { TEXTS } from "../../texts";
import { message, remedy } from "../../wording";

const T = TEXTS.show;

const MAX_FINDINGS = 6;

function FindingRow({ finding }: { finding: ShowFinding }) {
  const show = (): void => {
    const index = showEditor.sections.peek().findIndex(({ name }) => name === finding.section);
    if (index >= 0) showEditor.sectionIndex.value = index;
    showEditor.seek(finding.time_s ?? 0);
  };
  const where = [finding.section, finding.role].filter(Boolean).join(", ");
  return (
    <li class={`finding ${finding.severity}`} data-testid="show-finding" data-severity={finding.severity}>
      <Icon name={finding.severity === "note" ? "info" : "warn"} />
      <div>
        <p>
          {where && <strong>{where}: </strong>}
          {sentence(message(finding))}{" "}
          {finding.section && finding.time_s !== null && (
            <button type="button" class="link" onClick={show}>
              {TEXTS.edit.at(hundredths(finding.time_s))}
            </button>
          )}
        </p>
        {finding.remedy && <p class="remedy">{sentence(remedy(finding))}</p>}
      </div>
    </li>
  );
}

export function CheckCard() {
  const result = showEditor.checked.value;
  const found = result?.findings.filter(({ severity }) => severity !== "note") ?? [];
  const notes = result?.findings.filter(({ severity }) => severity === "note") ?? [];
  const state = showEditor.checking.value ? "checking" : showEditor.problem.value || !result?.ok ? "bad" : "ok";
  return (
    <section class="card" aria-labelledby="show-check-title" data-testid="show-check" data-state={state}>
      <div class="row spread">
        <h2 id="show-check-title">{TEXTS.edit.findings}</h2>
        {result && !result.ok && <span class="chip bad">{T.cannot}</span>}
      </div>
      {showEditor.checking.value && (
        <p class="muted" role="status">
          {TEXTS.edit.checking}
        </p>
      )}
      {showEditor.problem.value && <p class="bad-words">{showEditor.problem.value}</p>}
      {result && !showEditor.checking.value && found.length === 0 && (
        <p class="fine">
          <Icon name="check" />
          <span>{T.fine}</span>
        </p>
      )}
      <ul class="findings">
        {found.slice(0, MAX_FINDINGS).map((each, index) => (
          <FindingRow key={index} finding={each} />
        ))}
      </ul>
      {found.length + notes.length > Math.min(found.length, MAX_FINDINGS) && (
        <details class="more">
          <summary>
            {TEXTS.edit.moreFindings(found.length + notes.length - Math.min(found.length, MAX_FINDINGS))}
          </summary>
          <ul class="findings">
            {[...found.slice(MAX_FINDINGS), ...notes].map((each, index) => (
              <FindingRow key={index} finding={each} />
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
