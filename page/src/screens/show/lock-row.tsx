/** The lock of the show's file, and its printed cue sheet. */

import { api } from "../../api";
import { sentence } from "../../format";
import { robot } from "../../state/robot";
import { showEditor } from "../../state/show-editor";
import { TEXTS } from "../../texts";

const T = TEXTS.show.lock;

export function LockRow() {
  const { name, lock } = showEditor.file.value;
  if (!name) return null;
  return (
    <>
      <div class="row wrap">
        <button
          type="button"
          class="button"
          disabled={!robot.mayCommand.value || (!lock && showEditor.unsaved.value)}
          onClick={() => showEditor.setLock(!lock)}
          data-testid="lock-show"
        >
          {lock ? T.unlock : T.lock}
        </button>
        <a class="button quiet" href={api.sheet(name)} target="_blank" rel="noopener" data-testid="cue-sheet">
          {T.sheet}
        </a>
      </div>
      {lock && !lock.problem && (
        <p class="muted small" data-testid="lock-state">
          {T.locked(new Date(lock.locked).toLocaleString(document.documentElement.lang))}
        </p>
      )}
      {lock?.problem && (
        <p class="bad-words" role="alert" data-testid="lock-state">
          {sentence(lock.problem)}
        </p>
      )}
    </>
  );
}
