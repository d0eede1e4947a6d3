/** The file of the show: open, save, rename and delete it. */

import { robot } from "../../state/robot";
import { showEditor } from "../../state/show-editor";
import { TEXTS } from "../../texts";
import { phone } from "./layout";
import { LockRow } from "./lock-row";

const T = TEXTS.show;

export function FileCard() {
  const shelf = showEditor.shelf.value;
  const name = showEditor.file.value.name;
  const casts = Object.keys(shelf?.casts ?? {});
  const choose = (select: HTMLSelectElement): void => {
    const wanted = select.value;
    select.value = name ?? "";
    showEditor.leaving(() => void showEditor.open(wanted));
  };
  return (
    <section class="card" aria-labelledby="file-title" data-testid="show-file" data-name={name ?? ""}>
      <div class="row spread wrap">
        <h2 id="file-title">{T.file}</h2>
        {showEditor.unsaved.value && !phone.value && (
          <span class="chip warn" data-testid="show-unsaved">
            {TEXTS.edit.draft.unsaved}
          </span>
        )}
      </div>
      {shelf && shelf.shows.length === 0 && !showEditor.draft.value && <p class="muted">{T.none}</p>}
      <div class="row wrap">
        {shelf && shelf.shows.length > 0 && (
          <select
            value={name ?? ""}
            aria-label={T.choose}
            data-testid="choose-show"
            onChange={(event) => choose(event.currentTarget)}
          >
            {!name && <option value="">{showEditor.draft.value ? T.unnamed : T.choose}</option>}
            {shelf.shows.map((each) => (
              <option key={each.name} value={each.name} disabled={each.problem !== ""}>
                {each.problem ? T.broken(each.name) : each.name}
              </option>
            ))}
          </select>
        )}
        {!phone.value && (
          <>
            <button
              type="button"
              class="button"
              onClick={() => showEditor.leaving(showEditor.makeNew)}
              data-testid="new-show"
            >
              {T.new}
            </button>
            {showEditor.draft.value && (
              <button
                type="button"
                class={showEditor.unsaved.value ? "button primary" : "button"}
                disabled={!robot.mayCommand.value || (!showEditor.unsaved.value && name !== null)}
                onClick={() => showEditor.askToSave()}
                data-testid="save-show"
              >
                {T.save}
              </button>
            )}
          </>
        )}
      </div>
      {showEditor.draft.value && !phone.value && (
        <details class="more">
          <summary>{T.more}</summary>
          <div class="stack">
            <label class="field">
              <span>{T.titleLabel}</span>
              <input
                type="text"
                maxLength={200}
                value={showEditor.draft.value.title ?? ""}
                onChange={(event) => {
                  const title = event.currentTarget.value;
                  showEditor.change((show) => ({ ...show, title }));
                }}
              />
            </label>
            <div class="row wrap">
              <button
                type="button"
                class="button"
                disabled={!robot.mayCommand.value}
                onClick={() => showEditor.askToSave(true)}
              >
                {T.saveAs}
              </button>
              <button
                type="button"
                class="button"
                disabled={!name || !robot.mayCommand.value}
                onClick={showEditor.askToRename}
              >
                {T.rename}
              </button>
              <button
                type="button"
                class="button"
                disabled={!name || !robot.mayCommand.value}
                onClick={showEditor.askToDelete}
                data-testid="delete-show"
              >
                {T.delete}
              </button>
            </div>
            {showEditor.file.value.path && <p class="mono">{showEditor.file.value.path}</p>}
          </div>
        </details>
      )}
      <LockRow />
      {showEditor.draft.value && casts.length > 0 && (
        <label class="inline">
          <span>{T.castOf}</span>
          <select
            value=""
            data-testid="choose-cast"
            onChange={(event) => {
              const chosen = shelf?.casts[event.currentTarget.value];
              event.currentTarget.value = "";
              if (chosen) showEditor.takeCast(chosen);
            }}
          >
            <option value="">{T.castChoose}</option>
            {casts.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      )}
    </section>
  );
}
