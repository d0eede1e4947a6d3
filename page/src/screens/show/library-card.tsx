/** The takes that can be put on a lane. */

import { useState } from "preact/hooks";
import { picture, seconds } from "../../format";
import { carried, placeAt } from "../../parts/lanes";
import { library } from "../../state/library";
import { showEditor } from "../../state/show-editor";
import { TEXTS } from "../../texts";
import type { Take } from "../../types";
import { bindStyles } from "../../css";
import styles from "./library-card.module.css";

const css = bindStyles(styles);
const T = TEXTS.show;

/** Carry a take to a lane by pointer or finger. */
function carry(take: Take) {
  return (event: PointerEvent): void => {
    if (event.button !== 0 || (event.target as Element).closest("button")) return;
    const ends = new AbortController();
    const { signal: over } = ends;
    const first = { x: event.clientX, y: event.clientY };
    addEventListener(
      "pointermove",
      (next) => {
        if (!carried.peek() && Math.hypot(next.clientX - first.x, next.clientY - first.y) < 6) return;
        next.preventDefault();
        carried.value = { take: take.name, x: next.clientX, y: next.clientY };
      },
      { signal: over },
    );
    const drop = (next: PointerEvent): void => {
      ends.abort();
      const place = carried.peek() && next.type === "pointerup" ? placeAt(next.clientX, next.clientY) : null;
      carried.value = null;
      if (place) showEditor.addClip(take.name, place.role, place.at_s);
    };
    addEventListener("pointerup", drop, { signal: over });
    addEventListener("pointercancel", drop, { signal: over });
  };
}

export function Carried() {
  const what = carried.value;
  return (
    <div
      class={css("carried")}
      hidden={!what}
      aria-hidden="true"
      ref={(element) => {
        element?.style.setProperty("--x", `${what?.x ?? 0}px`);
        element?.style.setProperty("--y", `${what?.y ?? 0}px`);
      }}
    >
      {what?.take}
    </div>
  );
}

export function LibraryCard() {
  const [search, setSearch] = useState("");
  const [action, setAction] = useState("");
  const usable = library.takes.value.filter(
    ({ problem: wrong, name }) => !wrong && name.toLowerCase().includes(search.trim().toLowerCase()),
  );
  const shown = usable.slice(0, 60);
  return (
    <section class="card" aria-labelledby="show-library-title" data-testid="show-library">
      <h2 id="show-library-title">{TEXTS.screens.library}</h2>
      <p class="muted small">{library.takes.value.length ? T.libraryWords(showEditor.lane.value) : T.noTakes}</p>
      {library.takes.value.length > 8 && (
        <label class="field">
          <span class="hidden">{T.search}</span>
          <input
            type="search"
            placeholder={T.search}
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
      )}
      <ul class="list short">
        {shown.map((take) => (
          <li
            key={take.name}
            class={css("item carry")}
            onPointerDown={carry(take)}
            data-testid="carry"
            data-name={take.name}
          >
            <div class="item-main">
              <img class="thumb" src={picture(take.thumbnail)} alt="" width={88} height={28} draggable={false} />
              <span class="item-words">
                <span class="item-name">{take.name}</span> <span class="muted">{seconds(take.duration_s)}</span>
              </span>
              <button
                type="button"
                class="button"
                aria-label={T.addTo(take.name, showEditor.lane.value)}
                onClick={() => showEditor.addClip(take.name, showEditor.lane.peek())}
                data-testid="add-take"
              >
                {T.add}
              </button>
            </div>
          </li>
        ))}
      </ul>
      <details class="more">
        <summary>{T.actions}</summary>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            if (action.trim()) showEditor.addAction(action.trim(), showEditor.lane.peek());
            setAction("");
          }}
        >
          <label class="field grow">
            <span>{T.actionName}</span>
            <input type="text" value={action} onInput={(event) => setAction(event.currentTarget.value)} />
          </label>
          <button type="submit" class="button">
            {T.add}
          </button>
        </form>
      </details>
    </section>
  );
}
