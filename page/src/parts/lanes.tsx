/** The lanes of a show: one for each role and one for cues, over one ruler. Clips are dragged, trimmed, and moved by keys. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { ticks } from "../curves";
import { hundredths, sentence } from "../format";
import { dotOf } from "../lamps";
import { showEditor } from "../state/show-editor";
import { stage } from "../state/stage";
import {
  type Clip,
  clipLength,
  clipsOf,
  cueKind,
  cueLength,
  cuesOf,
  grained,
  hexOf,
  rowsOf,
  type Section,
  type ShowCue,
  type ShowFinding,
  wavePath,
} from "../show-document";
import { TEXTS } from "../texts";
import { message, remedy } from "../wording";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./lanes.module.css";

const css = bindStyles(styles);
const T = TEXTS.show;
const HEAD_PX = 148;
const MAX_ZOOM = 16;
/** A pointer that has moved less than this has not dragged. */
const STILL_PX = 4;
export const zoom = signal(1);
/** What is dragged from the library: a take, and where the pointer is. */
export const carried = signal<{ take: string; x: number; y: number } | null>(null);

/** By how many seconds a key moves something; finer and wider with Shift and the paging keys. */
function byKey({ key, shiftKey }: KeyboardEvent): number | undefined {
  const fine = shiftKey ? 0.01 : 0.05;
  return { ArrowLeft: -fine, ArrowRight: fine, PageDown: -0.5, PageUp: 0.5 }[key];
}

/** Return the moment under a point of the screen, by the lane that is there; null beside all lanes. */
export function placeAt(x: number, y: number): { role: string; at_s: number } | null {
  const area = document.elementFromPoint(x, y)?.closest<HTMLElement>("[data-lane]");
  const role = area?.dataset["lane"];
  if (!area || !role) return null;
  return { role, at_s: momentIn(area, x) };
}

function momentIn(area: Element, x: number): number {
  const box = area.getBoundingClientRect();
  return ((x - box.left) / Math.max(1, box.width)) * showEditor.span.peek();
}

/** Put a thing where its time is: the page forbids styles in attributes. */
function usePlace<Kind extends HTMLElement>(from: number, length: number, row = 0) {
  const element = useRef<Kind>(null);
  useLayoutEffect(() => {
    element.current?.style.setProperty("--at", String(from));
    element.current?.style.setProperty("--length", String(length));
    element.current?.style.setProperty("--row", String(row));
  }, [from, length, row]);
  return element;
}

/** Let a pointer drag something on the lanes. `onDrag` gets by how many seconds, and the lane below. */
function dragging(onDrag: (by_s: number, role: string | null) => void, onPress: () => void) {
  return (event: PointerEvent): void => {
    if (event.button !== 0) return;
    const target = event.currentTarget as HTMLElement;
    const area = target.closest("[data-lane-area]");
    if (!area) return;
    event.stopPropagation();
    onPress();
    const first = momentIn(area, event.clientX);
    let moved = false;
    const move = (next: PointerEvent): void => {
      if (!moved && Math.hypot(next.clientX - event.clientX, next.clientY - event.clientY) < STILL_PX) return;
      if (!moved) showEditor.holdHistory();
      moved = true;
      const below = document
        .elementsFromPoint(next.clientX, next.clientY)
        .map((each) => each.closest<HTMLElement>("[data-lane]")?.dataset["lane"])
        .find(Boolean);
      onDrag(momentIn(area, next.clientX) - first, below ?? null);
    };
    // At the window: what is moved to another lane is drawn anew there.
    const ends = new AbortController();
    const { signal } = ends;
    addEventListener("pointermove", move, { signal });
    for (const name of ["pointerup", "pointercancel"] as const) addEventListener(name, () => ends.abort(), { signal });
  };
}

/** Put the focus on what comes of a key, once it is drawn. */
function focusSoon(what: string): void {
  requestAnimationFrame(() => document.querySelector<HTMLElement>(what)?.focus());
}

const named = (clip: Clip): string => clip.take ?? clip.action ?? "";

/** One clip: its body moves, its two ends trim. */
function ClipBox({ clip, index }: { clip: Clip; index: number }) {
  const at = clip.at_s ?? 0;
  const length = clipLength(clip, showEditor.lengths.value);
  const element = usePlace<HTMLDivElement>(at, length);
  const name = named(clip);
  const is = showEditor.picked.value?.kind === "clip" && showEditor.picked.value.index === index;
  const pick = (): void => {
    showEditor.picked.value = { kind: "clip", index };
    showEditor.chooseLane(clip.role);
  };
  const press = (event: KeyboardEvent): void => {
    const by = byKey(event);
    const turn = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const place = showEditor.roles.peek().indexOf(clip.role);
    if (event.key === "Delete" || event.key === "Backspace") {
      pick();
      showEditor.removePicked();
      focusSoon("[data-chosen] [data-lane-name]");
    } else if (event.key === "Enter") pick();
    else if (by !== undefined) showEditor.moveClip(index, at + by);
    else if (event.key === "Home") showEditor.moveClip(index, 0);
    else if (turn !== undefined) {
      const to = showEditor.roles.peek()[place + turn];
      if (to) showEditor.moveClip(index, at, to);
      focusSoon("[data-picked] [data-testid=clip]");
    } else return;
    event.preventDefault();
  };
  const trims = !clip.action;
  const edge = (which: "from" | "to") => (event: KeyboardEvent) => {
    const by = byKey(event);
    if (by === undefined) return;
    event.preventDefault();
    showEditor.trimClip(index, which, which === "from" ? at + by : at + once(clip) + by);
  };
  const how = [
    clip.mirror ? T.mirrored : "",
    (clip.speed ?? 1) !== 1 ? `${clip.speed} ×` : "",
    (clip.loop ?? 1) > 1 ? T.rounds(clip.loop ?? 1) : "",
  ].filter(Boolean);
  return (
    <div
      ref={element}
      class={css(`clip${is ? " picked" : ""}${clip.action ? " action" : ""}`)}
      data-picked={is || undefined}
    >
      <div
        class={css("clip-body")}
        role="slider"
        tabIndex={0}
        aria-label={T.clip(name, clip.role)}
        aria-valuemin={0}
        aria-valuemax={Number(showEditor.span.value.toFixed(2))}
        aria-valuenow={Number(at.toFixed(2))}
        aria-valuetext={T.fromTo(hundredths(at), hundredths(at + length))}
        data-testid="clip"
        data-name={name}
        data-role={clip.role}
        data-at={at.toFixed(2)}
        data-length={length.toFixed(2)}
        onPointerDown={dragging((by, role) => showEditor.moveClip(index, at + by, role ?? undefined, true), pick)}
        onFocus={pick}
        onKeyDown={press}
      >
        <span class={css("clip-name")}>{name}</span>
        {how.length > 0 && <span class={css("clip-how")}>{how.join(", ")}</span>}
      </div>
      {trims &&
        (["from", "to"] as const).map((which) => (
          <div
            key={which}
            class={css(`clip-edge ${which}`)}
            role="slider"
            tabIndex={is ? 0 : -1}
            aria-label={which === "from" ? T.trimFrom(name) : T.trimTo(name)}
            aria-valuemin={0}
            aria-valuemax={Number((showEditor.lengths.value.get(name) ?? 0).toFixed(2))}
            aria-valuenow={Number(
              ((which === "from" ? clip.from_s : clip.to_s) ?? (which === "from" ? 0 : length)).toFixed(2),
            )}
            aria-valuetext={hundredths(
              (which === "from" ? clip.from_s : clip.to_s) ??
                (which === "from" ? 0 : (showEditor.lengths.value.get(name) ?? length)),
            )}
            data-testid={`trim-${which}`}
            onPointerDown={dragging(
              (by) => showEditor.trimClip(index, which, which === "from" ? at + by : at + once(clip) + by, true),
              pick,
            )}
            onKeyDown={edge(which)}
          />
        ))}
    </div>
  );
}

/** How long one round of a clip is. */
function once(clip: Clip): number {
  return clipLength({ ...clip, loop: 1 }, showEditor.lengths.peek());
}

function cueWords(cue: ShowCue): string {
  return cue.sound ?? cue.say ?? cue.osc ?? (cue.light ? hexOf(cue.light) : "");
}

function CueBox({ cue, index, row }: { cue: ShowCue; index: number; row: number }) {
  const at = cue.at_s ?? 0;
  const kind = cueKind(cue);
  const length = cueLength(cue, showEditor.soundLengths.value);
  const element = usePlace<HTMLDivElement>(at, length, row);
  const is = showEditor.picked.value?.kind === "cue" && showEditor.picked.value.index === index;
  const drawn = cue.sound ? showEditor.peaks.value.get(cue.sound) : undefined;
  useEffect(() => {
    if (cue.sound) showEditor.loadPeaks(cue.sound);
  }, [cue.sound, showEditor.soundLengths.value]);
  useLayoutEffect(() => {
    if (cue.light) element.current?.style.setProperty("--light", hexOf(cue.light));
  }, [cue.light]);
  const pick = (): void => {
    showEditor.picked.value = { kind: "cue", index };
  };
  const move = (to: number, together = false): void =>
    showEditor.changeCue(index, { at_s: Number(grained(Math.max(0, to)).toFixed(3)) }, together);
  const press = (event: KeyboardEvent): void => {
    const by = byKey(event);
    if (event.key === "Delete" || event.key === "Backspace") {
      pick();
      showEditor.removePicked();
    } else if (event.key === "Enter") pick();
    else if (by !== undefined) move(at + by);
    else if (event.key === "Home") move(0);
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={element}
      class={css(`cue ${kind}${is ? " picked" : ""}`)}
      role="slider"
      tabIndex={0}
      aria-label={T.cue(T.cueKinds[kind], cueWords(cue))}
      aria-valuemin={0}
      aria-valuemax={Number(showEditor.span.value.toFixed(2))}
      aria-valuenow={Number(at.toFixed(2))}
      aria-valuetext={hundredths(at)}
      title={`${T.cueKinds[kind]}: ${cueWords(cue)}`}
      data-testid="cue"
      data-kind={kind}
      data-at={at.toFixed(2)}
      onPointerDown={dragging((by) => move(at + by, true), pick)}
      onFocus={pick}
      onKeyDown={press}
    >
      {drawn && (
        <svg class={css("wave")} viewBox="0 0 100 2" preserveAspectRatio="none" aria-hidden="true" data-testid="wave">
          <path d={wavePath(drawn.peaks)} />
        </svg>
      )}
      <span class={css("cue-words")}>{kind === "light" ? "" : cueWords(cue)}</span>
    </div>
  );
}

/** What a check has found, at its second. */
function Marker({ finding }: { finding: ShowFinding }) {
  const at = finding.time_s ?? 0;
  const element = usePlace<HTMLButtonElement>(at, 0);
  const words = `${sentence(message(finding))} ${sentence(remedy(finding))}`.trim();
  return (
    <button
      ref={element}
      type="button"
      class={css(`lane-find ${finding.severity}`)}
      aria-label={`${T.severity[finding.severity]}, ${hundredths(at)}: ${words}`}
      title={words}
      data-testid="lane-finding"
      data-severity={finding.severity}
      data-at={at.toFixed(2)}
      onPointerDown={(event) => event.stopPropagation()}
      onClick={() => showEditor.seek(at)}
    >
      <Icon name="warn" />
    </button>
  );
}

function Lamp({ robot }: { robot: string | undefined }) {
  const current = stage.current.value;
  if (!current?.there) return null;
  const found = current.robots.find(({ name }) => name === robot);
  const state = !found ? "lost" : found.ready ? dotOf(found.lamp) : "connecting";
  const words = !robot ? T.nobody : !found?.reachable || found.ready ? T.lamps[found?.lamp ?? "LOST"] : T.clockUnknown;
  const bound = found?.clock_bound_ms;
  return (
    <span class={css("lamp")}>
      <span class={`dot ${robot ? state : ""}`} aria-hidden="true" />
      <span class={css("lamp-words")}>
        {robot ?? T.nobody}
        <span class={found?.lamp === "ready" && found.ready ? "hidden" : undefined}>: {words}</span>
        {found?.lamp === "ready" && bound != null && <span class="numbers"> ±{bound.toFixed(1)} ms</span>}
      </span>
    </span>
  );
}

function Lane({ role, children }: { role: string; children: ComponentChildren }) {
  const finds = showEditor.marks.value.filter((each) => each.role === role);
  return (
    <div
      class={css(`lane${showEditor.lane.value === role ? " chosen" : ""}`)}
      data-testid="lane"
      data-name={role}
      data-chosen={showEditor.lane.value === role || undefined}
    >
      <div class={css("lane-head")}>
        <button
          type="button"
          data-lane-name
          class={css("lane-name")}
          aria-pressed={showEditor.lane.value === role}
          aria-label={T.chooseLane(role)}
          title={T.chooseLane(role)}
          onClick={() => showEditor.chooseLane(role)}
        >
          {role}
        </button>
        <Lamp robot={showEditor.cast.value[role]} />
      </div>
      <div class={css("lane-area")} data-lane-area data-lane={role} onPointerDown={seekToPointer}>
        {children}
        {finds.map((each, index) => (
          <Marker key={index} finding={each} />
        ))}
      </div>
    </div>
  );
}

/** Look at the moment under the pointer. */
function seekToPointer(event: PointerEvent): void {
  if (event.button !== 0 || event.target !== event.currentTarget) return;
  showEditor.seek(momentIn(event.currentTarget as Element, event.clientX));
}

function Cues({ shown }: { shown: Section }) {
  const cues = cuesOf(shown);
  const rows = rowsOf(
    cues.map((cue) => ({ at: cue.at_s ?? 0, length: Math.max(1.2, cueLength(cue, showEditor.soundLengths.value)) })),
  );
  const element = useRef<HTMLDivElement>(null);
  const many = Math.max(1, ...rows.map((row) => row + 1));
  useLayoutEffect(() => {
    element.current?.style.setProperty("--rows", String(many));
  }, [many]);
  const finds = showEditor.marks.value.filter((each) => !each.role);
  return (
    <div class={css("lane cue-lane")} ref={element}>
      <div class={css("lane-head")}>
        <span class={css("lane-name")}>{T.cuesLane}</span>
      </div>
      <div class={css("lane-area")} data-lane-area onPointerDown={seekToPointer}>
        {cues.map((cue, index) => (
          <CueBox key={index} cue={cue} index={index} row={rows[index] ?? 0} />
        ))}
        {finds.map((each, index) => (
          <Marker key={index} finding={each} />
        ))}
      </div>
    </div>
  );
}

function Tick({ at }: { at: number }) {
  const element = usePlace<HTMLSpanElement>(at, 0);
  return (
    <span ref={element} class={css("tick numbers")} aria-hidden="true">
      {at} s
    </span>
  );
}

/** The moment that is shown, as a line over all lanes. */
function Playhead() {
  const element = usePlace<HTMLDivElement>(showEditor.playhead.value, 0);
  const press = (event: KeyboardEvent): void => {
    const by = byKey(event);
    const to =
      event.key === "Home"
        ? 0
        : event.key === "End"
          ? showEditor.span.peek()
          : by === undefined
            ? null
            : showEditor.playhead.peek() + by;
    if (to === null) return;
    event.preventDefault();
    showEditor.seek(to);
  };
  return (
    <div
      ref={element}
      class={css("show-head")}
      role="slider"
      tabIndex={0}
      aria-label={TEXTS.edit.playhead}
      aria-valuemin={0}
      aria-valuemax={Number(showEditor.span.value.toFixed(2))}
      aria-valuenow={Number(showEditor.playhead.value.toFixed(2))}
      aria-valuetext={hundredths(showEditor.playhead.value)}
      data-testid="show-playhead"
      onPointerDown={(event) => {
        const target = event.currentTarget;
        target.setPointerCapture(event.pointerId);
        event.stopPropagation();
      }}
      onPointerMove={(event) => {
        const area = event.currentTarget.closest("[data-lane-area]");
        if (area && event.currentTarget.hasPointerCapture(event.pointerId))
          showEditor.seek(momentIn(area, event.clientX));
      }}
      onKeyDown={press}
    />
  );
}

export function Lanes() {
  const box = useRef<HTMLDivElement>(null);
  const shown = showEditor.section.value;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const fit = (): void => {
      const room = Math.max(120, element.clientWidth - HEAD_PX - 26);
      element.style.setProperty("--scale", String((zoom.value * room) / showEditor.span.value));
      element.style.setProperty("--span", String(showEditor.span.value));
    };
    fit();
    const watch = new ResizeObserver(fit);
    watch.observe(element);
    return () => watch.disconnect();
  }, [zoom.value, showEditor.span.value, shown === null]);
  if (!shown) return null;
  const over = carried.value;
  return (
    <div
      ref={box}
      class={css(`lanes${over ? " receiving" : ""}`)}
      role="group"
      aria-label={T.lanes}
      data-testid="lanes"
    >
      <div class={css("lane ruler")} data-testid="ruler">
        <div class={css("lane-head")} />
        <div class={css("lane-area")} data-lane-area onPointerDown={seekToPointer}>
          {ticks(0, showEditor.span.value, Math.min(40, 8 * zoom.value)).map((at) => (
            <Tick key={at} at={at} />
          ))}
          <Playhead />
        </div>
      </div>
      {showEditor.roles.value.map((role) => (
        <Lane key={role} role={role}>
          {clipsOf(shown).map((clip, index) =>
            clip.role === role ? <ClipBox key={index} clip={clip} index={index} /> : null,
          )}
        </Lane>
      ))}
      <Cues shown={shown} />
    </div>
  );
}

export function zoomBy(factor: number): void {
  zoom.value = Math.min(MAX_ZOOM, Math.max(1, zoom.peek() * factor));
}
