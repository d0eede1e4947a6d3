/** Choose a take to edit, or edits whose take was deleted. */

import { useEffect } from "preact/hooks";
import { picture, seconds } from "../../format";
import { drafts, dropDraft, isUnsaved } from "../../state/drafts";
import { library } from "../../state/library";
import { robot } from "../../state/robot";
import { ui } from "../../state/ui";
import { TEXTS } from "../../texts";

const T = TEXTS.edit;

/** Edits of takes that were deleted: they can still be opened and saved as new takes. */
export function Orphans() {
  const names = new Set(library.takes.value.map(({ name }) => name));
  const left = Object.values(drafts.value).filter(({ take, steps }) => steps.length && !names.has(take));
  if (!library.loaded.value || !left.length) return null;
  const askToDrop = ({ take, tab, steps }: (typeof left)[number]): void => {
    ui.question.value = {
      title: T.draft.revertTitle(steps.length),
      message: T.draft.otherWords,
      confirm: T.draft.revert,
      danger: true,
      then: () => dropDraft(take, tab),
    };
  };
  return (
    <section class="card" aria-labelledby="orphans-title" data-testid="orphans">
      <h2 id="orphans-title">{T.draft.orphans}</h2>
      <p class="muted">{T.draft.orphansWords}</p>
      <ul class="list">
        {left.map((each) => (
          <li key={`${each.tab} ${each.take}`} class="item">
            <button type="button" class="item-main pick" onClick={() => ui.go("edit", each.take)}>
              <span class="item-words">
                <span class="item-name">{each.take}</span> <span class="muted">{T.draft.count(each.steps.length)}</span>
              </span>
            </button>
            <button type="button" class="button quiet" onClick={() => askToDrop(each)}>
              {T.draft.revert}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function Choose() {
  useEffect(() => void library.load(), []);
  const usable = library.takes.value.filter((take) => !take.problem);
  return (
    <section class="card" aria-labelledby="choose-title">
      <h2 id="choose-title">{T.choose}</h2>
      <p class="muted">{usable.length ? T.chooseWords : T.none}</p>
      <ul class="list">
        {usable.map((take) => (
          <li key={take.name} class="item">
            <button type="button" class="item-main pick" onClick={() => ui.go("edit", take.name)}>
              <img class="thumb" src={picture(take.thumbnail)} alt="" width={112} height={34} />
              <span class="item-words">
                <span class="item-name">{take.name}</span>{" "}
                {isUnsaved(take.name) && <span class="chip warn">{T.draft.unsaved}</span>}{" "}
                <span class="muted">
                  {[seconds(take.duration_s), robot.explainForeign(take) && take.title].filter(Boolean).join(" · ")}
                </span>
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
