/** The steps done so far. */

import { editor } from "../../state/editor";
import { TEXTS } from "../../texts";
import { bindStyles } from "../../css";
import styles from "./steps-card.module.css";

const css = bindStyles(styles);
const T = TEXTS.edit;

/** Edits of another tab, which this one does not have. */
function Elsewhere() {
  const other = editor.elsewhere.value;
  if (!other) return null;
  const busy = editor.history.value.done.length > 0;
  return (
    <div data-testid="elsewhere">
      <p>{T.draft.other(other.steps.length)}</p>
      {busy && <p class="muted">{T.draft.otherFirst}</p>}
      <div class="row wrap">
        <button type="button" class="button" disabled={busy || editor.working.value} onClick={editor.takeElsewhere}>
          {T.draft.otherTake}
        </button>
        <button type="button" class="button quiet" onClick={editor.askToDropElsewhere}>
          {T.draft.revert}
        </button>
      </div>
    </div>
  );
}

export function Steps() {
  const { done: steps } = editor.history.value;
  return (
    <section class="card" aria-labelledby="steps-title">
      <div class="row spread wrap">
        <h2 id="steps-title">{T.steps}</h2>
        {editor.unsaved.value && (
          <button
            type="button"
            class="button quiet"
            disabled={editor.working.value}
            onClick={editor.askToRevert}
            data-testid="revert"
          >
            {T.draft.revert}
          </button>
        )}
      </div>
      {steps.length === 0 ? (
        <p class="muted">{T.noSteps}</p>
      ) : (
        <ol class={css("steps")} data-testid="steps">
          {steps.map((each, index) => (
            <li key={index}>{editor.describe(each)}</li>
          ))}
        </ol>
      )}
      <Elsewhere />
    </section>
  );
}
