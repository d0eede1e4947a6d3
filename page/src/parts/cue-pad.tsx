/** The cue pad: large pads for nine motions, the next one and the last one again, and the lead-in. */

import { useEffect, useState } from "preact/hooks";
import { type Cue, cueOfKey, movedCue, sameCue, toggledCue } from "../cues";
import {
  cueName,
  cues,
  fire,
  fireAgain,
  fireNext,
  isThere,
  lastCue,
  LEAD_TIMES_S,
  leadTimeS,
  nextPlace,
} from "../cue-player";
import { focusOf } from "../keys";
import { playback } from "../state/playback";
import { robot } from "../state/robot";
import { scene } from "../state/scene";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./cue-pad.module.css";

const css = bindStyles(styles);
const T = TEXTS.cues;

/** Let the keys 1 to 9, 0 and those of a presenter play cues, for as long as this part is shown. */
export function useCueKeys(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const command = cueOfKey(event.key);
      if (command === null || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
      if (ui.question.peek() || focusOf(document.activeElement, false).typing) return;
      event.preventDefault();
      if (command === "next") fireNext();
      else if (command === "again") fireAgain();
      else fire(command);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

function isPlaying(cue: Cue): boolean {
  return robot.moving.value && lastCue.value !== null && sameCue(lastCue.value, cue);
}

/** One large pad. */
export function Pad({ cue, place }: { cue: Cue; place: number }) {
  const there = isThere(cue);
  const state = isPlaying(cue) ? "plays" : playback.upNext.value === place ? "waits" : there ? "ready" : "missing";
  const note = state === "plays" ? T.plays : state === "waits" ? T.waits : there ? T.kinds[cue.kind] : T.missing;
  return (
    <button
      type="button"
      class={css("pad")}
      disabled={!robot.ready.value || !there}
      aria-keyshortcuts={String(place + 1)}
      data-testid="pad"
      data-state={state}
      onClick={() => fire(place)}
    >
      <kbd>{place + 1}</kbd> <span class={css("pad-name")}>{cueName(cue)}</span>{" "}
      <span class={css("pad-note")}>{note}</span>
    </button>
  );
}

/** What plays next and what played last, as two large buttons. */
export function NextAndAgain() {
  const place = nextPlace();
  const next = place === null ? undefined : cues.value[place];
  const last = lastCue.value;
  const waits = playback.upNext.value !== null;
  return (
    <div class={css("row fill cue-next")}>
      <button
        type="button"
        class="button big-button"
        disabled={!robot.ready.value || !last || !isThere(last)}
        aria-keyshortcuts="0 PageUp"
        onClick={fireAgain}
        data-testid="cue-again"
      >
        <Icon name="loop" />
        <span>{last ? T.againIs(cueName(last)) : T.again}</span>
      </button>
      <button
        type="button"
        class="button primary big-button"
        disabled={!robot.ready.value || !next || !isThere(next) || waits}
        aria-keyshortcuts="PageDown"
        onClick={fireNext}
        data-testid="cue-next"
      >
        <Icon name="next" />
        <span>{next ? T.nextIs(cueName(next)) : T.next}</span>
      </button>
    </div>
  );
}

export function LeadTime() {
  return (
    <label class="inline">
      <span>{T.leadLabel}</span>
      <select
        value={String(leadTimeS.value)}
        disabled={scene.countdown.value !== null}
        onChange={(event) => (leadTimeS.value = Number(event.currentTarget.value))}
        data-testid="lead-in"
      >
        {LEAD_TIMES_S.map((each) => (
          <option key={each} value={String(each)}>
            {T.leadTime(each)}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The cues as a list in which they are moved and taken off. */
function Arrange() {
  return (
    <ol class="list">
      {cues.value.map((cue, place) => (
        <li key={`${cue.kind} ${cue.name}`} class="item">
          <div class="item-main">
            <p class="item-name item-words">{T.pad(place + 1, cueName(cue))}</p>
            <button
              type="button"
              class="icon-button"
              disabled={place === 0}
              aria-label={`${T.earlier}: ${cueName(cue)}`}
              title={T.earlier}
              onClick={() => (cues.value = movedCue(cues.value, place, place - 1))}
            >
              <Icon name="up" />
            </button>
            <button
              type="button"
              class="icon-button"
              disabled={place === cues.value.length - 1}
              aria-label={`${T.later}: ${cueName(cue)}`}
              title={T.later}
              onClick={() => (cues.value = movedCue(cues.value, place, place + 1))}
            >
              <Icon name="down" />
            </button>
            <button
              type="button"
              class="icon-button"
              aria-label={`${T.remove}: ${cueName(cue)}`}
              title={T.remove}
              onClick={() => (cues.value = toggledCue(cues.value, cue))}
            >
              <Icon name="close" />
            </button>
          </div>
        </li>
      ))}
    </ol>
  );
}

/** All of it, with its keys. */
export function CuePad() {
  useCueKeys();
  const [arranging, setArranging] = useState(false);
  const waiting = playback.upNext.value === null ? undefined : cues.value[playback.upNext.value];
  if (!cues.value.length)
    return (
      <section class="card" aria-labelledby="cues-title" data-testid="cue-pad">
        <h2 id="cues-title">{T.title}</h2>
        <p class="muted">{T.none}</p>
        <a class="button" href="#/library">
          <Icon name="library" />
          {T.toLibrary}
        </a>
      </section>
    );
  return (
    <section class="card" aria-labelledby="cues-title" data-testid="cue-pad">
      <div class="row spread wrap">
        <h2 id="cues-title">{T.title}</h2>
        <div class="row">
          <LeadTime />
          <button type="button" class="button quiet" aria-pressed={arranging} onClick={() => setArranging(!arranging)}>
            {arranging ? T.arranged : T.arrange}
          </button>
        </div>
      </div>
      {arranging ? (
        <Arrange />
      ) : (
        <>
          <NextAndAgain />
          <p class="muted" role="status" data-testid="cue-waiting">
            {waiting && robot.activity.value ? T.waiting(cueName(waiting)) : ""}
          </p>
          <div class={css("pads")}>
            {cues.value.map((cue, place) => (
              <Pad key={`${cue.kind} ${cue.name}`} cue={cue} place={place} />
            ))}
          </div>
          <p class="muted small wide-only">{T.keys}</p>
        </>
      )}
    </section>
  );
}
