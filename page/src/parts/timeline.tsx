/** The time line: curves with a playhead, handles, marks and keyframes; closer by wheel, fingers, buttons or keys. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { degrees, hundredths, joint as jointName, sentence } from "../format";
import { bent } from "../keyframes";
import { editor } from "../state/editor";
import { TEXTS } from "../texts";
import { isPart, share, wheelFactor } from "../state/span";
import type { Edited, Finding, JointKeyframe, Mark } from "../types";
import { folded } from "../wording";
import { Chart, EDGE, type Place, timeAt, valueAt, xOf, yOf } from "./chart";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./timeline.module.css";

const css = bindStyles(styles);
const T = TEXTS.edit;
const STEP = 1.6;
const DEGREE = Math.PI / 180;
/** After the last key, so long until what was moved by keys counts as put down. */
const PUT_DOWN_MS = 700;
const NEAREST_S = 0.05;

const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** By how many seconds a key moves something; finer and wider with Shift and the paging keys. */
function byKey({ key, shiftKey }: KeyboardEvent): number | undefined {
  const fine = shiftKey ? 0.01 : 0.05;
  return { ArrowLeft: -fine, ArrowRight: fine, PageDown: -0.5, PageUp: 0.5 }[key];
}

const areaOf = (element: EventTarget | null): HTMLElement =>
  (element as HTMLElement).closest("[data-testid=chart-area]") as HTMLElement;

/** A thing on the time line that can be dragged, or moved with the arrow keys. */
function Handle({
  kind,
  label,
  time,
  span,
  low,
  high,
  onMove,
}: {
  kind: string;
  label: string;
  time: number;
  span: number;
  low: number;
  high: number;
  onMove: (time: number) => void;
}) {
  const element = useRef<HTMLDivElement>(null);
  const at = share(editor.view.value, time);
  useEffect(() => {
    element.current?.style.setProperty("--share", String(at));
  }, [at]);
  const drag = (event: PointerEvent): void => {
    const target = event.currentTarget as HTMLElement;
    if (event.type === "pointerdown") target.setPointerCapture(event.pointerId);
    else if (!target.hasPointerCapture(event.pointerId)) return;
    event.preventDefault();
    event.stopPropagation();
    onMove(clamp(timeAt(areaOf(target), editor.view.peek(), event.clientX), low, high));
  };
  const press = (event: KeyboardEvent): void => {
    const by = byKey(event);
    const to = event.key === "Home" ? low : event.key === "End" ? high : by ? time + by : null;
    if (to === null) return;
    event.preventDefault();
    onMove(clamp(to, low, high));
    editor.reveal(clamp(to, low, high));
  };
  return (
    <div
      ref={element}
      class={css(`handle ${kind}${at < -0.001 || at > 1.001 ? " away" : ""}`)}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={Number(span.toFixed(2))}
      aria-valuenow={Number(time.toFixed(2))}
      aria-valuetext={hundredths(time)}
      onPointerDown={drag}
      onPointerMove={drag}
      onKeyDown={press}
      onFocus={() => editor.reveal(time)}
      data-testid={`handle-${kind}`}
    />
  );
}

/** Something with a place on the chart that is dragged, then put down; keys move it too. */
function Grip({
  kind,
  label,
  value,
  place,
  at,
  onMove,
  onDone,
  onPress,
  testid,
}: {
  kind: "mark" | "keyframe";
  label: string;
  value: { now: number; low: number; high: number; words: string };
  place: Place;
  at: { time: number; value: number | null };
  onMove: (time: number, value: number) => void;
  onDone: () => void;
  onPress?: () => void;
  testid: string;
}) {
  const element = useRef<HTMLDivElement>(null);
  const timer = useRef(0);
  const moved = useRef(false);
  const x = xOf(place, at.time);
  const y = at.value === null ? 0 : clamp(yOf(place, at.value), EDGE.top, place.height - EDGE.bottom);
  useEffect(() => {
    element.current?.style.setProperty("--x", `${x}px`);
    element.current?.style.setProperty("--y", `${y}px`);
  }, [x, y]);
  const put = (): void => {
    clearTimeout(timer.current);
    timer.current = 0;
    if (moved.current) onDone();
    moved.current = false;
  };
  // What was moved by keys when it vanishes is put down too.
  useEffect(() => () => clearTimeout(timer.current), []);
  const drag = (event: PointerEvent): void => {
    const target = event.currentTarget as HTMLElement;
    if (event.type === "pointerdown") {
      if (event.button !== 0) return;
      target.setPointerCapture(event.pointerId);
      target.dataset["down"] = `${event.clientX} ${event.clientY}`;
      event.stopPropagation();
      onPress?.();
      return;
    }
    if (!target.hasPointerCapture(event.pointerId)) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.type !== "pointermove") {
      put();
      return;
    }
    const [left, top] = (target.dataset["down"] ?? "0 0").split(" ").map(Number) as [number, number];
    if (!moved.current && Math.hypot(event.clientX - left, event.clientY - top) < 4) return;
    moved.current = true;
    const area = areaOf(target);
    onMove(timeAt(area, editor.view.peek(), event.clientX), valueAt(area, place.values, event.clientY));
  };
  const press = (event: KeyboardEvent): void => {
    const turn = event.shiftKey ? 1 : 5;
    const by = byKey(event);
    const up = at.value === null ? undefined : { ArrowUp: turn * DEGREE, ArrowDown: -turn * DEGREE }[event.key];
    if (event.key === "Enter") {
      event.preventDefault();
      if (moved.current) put();
      else onPress?.();
      return;
    }
    if (by === undefined && up === undefined) return;
    event.preventDefault();
    moved.current = true;
    onMove(at.time + (by ?? 0), (at.value ?? 0) + (up ?? 0));
    clearTimeout(timer.current);
    timer.current = window.setTimeout(put, PUT_DOWN_MS);
  };
  const away = at.time < place.view.from - 1e-3 || at.time > place.view.to + 1e-3;
  return (
    <div
      ref={element}
      class={css(`grip ${kind}${away ? " away" : ""}`)}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={value.low}
      aria-valuemax={value.high}
      aria-valuenow={value.now}
      aria-valuetext={value.words}
      title={`${label}: ${value.words}`}
      data-testid={testid}
      data-time={at.time.toFixed(2)}
      onPointerDown={drag}
      onPointerMove={drag}
      onPointerUp={drag}
      onPointerCancel={drag}
      onKeyDown={press}
      onBlur={put}
      onFocus={() => editor.reveal(at.time)}
    >
      {kind === "mark" && <span class={css("grip-label")}>{label}</span>}
    </div>
  );
}

function MarkGrip({ mark, place, span }: { mark: Mark; place: Place; span: number }) {
  const [to, setTo] = useState<number | null>(null);
  const wanted = useRef<number | null>(null);
  const time = to ?? mark.time_s;
  // Where it was put, it is; or where it was, if it cannot be there.
  useEffect(() => {
    if (!editor.working.value) setTo(null);
  }, [editor.working.value, mark]);
  const move = (at: number): void => {
    wanted.current = clamp(at, 0, span);
    setTo(wanted.current);
    editor.stopPreview();
    editor.seek(wanted.current);
  };
  return (
    <Grip
      kind="mark"
      label={mark.label}
      value={{ now: Number(time.toFixed(2)), low: 0, high: Number(span.toFixed(2)), words: hundredths(time) }}
      place={place}
      at={{ time, value: null }}
      onMove={move}
      onDone={() => {
        if (wanted.current !== null) editor.moveMark(mark, wanted.current);
      }}
      onPress={() => {
        editor.stopPreview();
        editor.seek(mark.time_s);
      }}
      testid="mark"
    />
  );
}

function KeyGrip({ each, index, place }: { each: JointKeyframe; index: number; place: Place }) {
  const now = editor.dragged.value;
  const mine = now?.joint === each.joint && now.bend.old === each.time_s ? now : null;
  const [time, value] = mine ? [mine.bend.at, mine.value] : [each.time_s, each.value_rad];
  const { lower_rad, upper_rad } = editor.limitsOf(each.joint);
  return (
    <Grip
      kind="keyframe"
      label={T.keyframes.one(jointName(each.joint))}
      value={{
        now: Math.round(value / DEGREE),
        low: Math.round(lower_rad / DEGREE),
        high: Math.round(upper_rad / DEGREE),
        words: T.keyframes.at(hundredths(time), degrees(value)),
      }}
      place={place}
      at={{ time, value }}
      onMove={(to, angle) => editor.dragKeyframe(index, to, angle)}
      onDone={editor.dropKeyframe}
      onPress={() => {
        editor.stopPreview();
        editor.seek(each.time_s);
      }}
      testid="keyframe"
    />
  );
}

/** Where the part that is shown lies in the whole take: it can be dragged, and moved with keys. */
function Overview({ span }: { span: number }) {
  const thumb = useRef<HTMLDivElement>(null);
  const { from, to } = editor.view.value;
  useEffect(() => {
    thumb.current?.style.setProperty("--from", String(from / span));
    thumb.current?.style.setProperty("--length", String((to - from) / span));
  }, [from, to, span]);
  const last = useRef(0);
  const drag = (event: PointerEvent): void => {
    const target = event.currentTarget as HTMLElement;
    if (event.type === "pointerdown") {
      target.setPointerCapture(event.pointerId);
      last.current = event.clientX;
    } else if (!target.hasPointerCapture(event.pointerId)) return;
    event.preventDefault();
    const width = (target.parentElement as HTMLElement).getBoundingClientRect().width;
    editor.pan(((event.clientX - last.current) / width) * span);
    last.current = event.clientX;
  };
  const press = (event: KeyboardEvent): void => {
    const length = to - from;
    const by = { ArrowLeft: -length / 10, ArrowRight: length / 10, PageDown: length, PageUp: -length }[event.key];
    const all = { Home: -span, End: span }[event.key];
    if (by === undefined && all === undefined) return;
    event.preventDefault();
    editor.pan(by ?? all ?? 0);
  };
  return (
    <div class={css("overview")}>
      <div
        ref={thumb}
        class={css(isPart(editor.view.value, span) ? "overview-thumb" : "overview-thumb whole")}
        role="scrollbar"
        tabIndex={0}
        aria-controls="time-line"
        aria-orientation="horizontal"
        aria-label={T.zoom.part}
        aria-valuemin={0}
        aria-valuemax={Number(Math.max(0, span - (to - from)).toFixed(2))}
        aria-valuenow={Number(from.toFixed(2))}
        aria-valuetext={T.zoom.fromTo(hundredths(from), hundredths(to))}
        data-testid="overview"
        onPointerDown={drag}
        onPointerMove={drag}
        onKeyDown={press}
      />
    </div>
  );
}

function Tool({
  name,
  icon,
  disabled = false,
  onPress,
}: {
  name: string;
  icon: "zoomIn" | "zoomOut" | "whole";
  disabled?: boolean;
  onPress: () => void;
}) {
  return (
    <button type="button" class="icon-button" aria-label={name} title={name} disabled={disabled} onClick={onPress}>
      <Icon name={icon} />
    </button>
  );
}

/** Closer and wider, marks and keyframes. */
function Bar({ made }: { made: Edited }) {
  const part = isPart(editor.view.value, made.duration_s);
  const count = editor.ownKeyframes.value.length;
  return (
    <div class={css("line-tools")} role="group" aria-label={T.lineTools}>
      <Tool name={T.zoom.in} icon="zoomIn" onPress={() => editor.zoom(STEP)} />
      <Tool name={T.zoom.out} icon="zoomOut" disabled={!part} onPress={() => editor.zoom(1 / STEP)} />
      <Tool name={T.zoom.whole} icon="whole" disabled={!part} onPress={editor.showAll} />
      <button
        type="button"
        class="button"
        data-edit="mark"
        data-testid="add-mark"
        disabled={editor.working.value}
        onClick={editor.askForMark}
      >
        <Icon name="flag" />
        {T.marks.here}
      </button>
      <label class={css("inline line-keys")}>
        <span>{T.keyframes.of}</span>
        <select
          value={editor.keyframing.value ? editor.keyJoint.value : ""}
          data-testid="key-joint"
          onChange={(event) => editor.showKeyframes(event.currentTarget.value)}
        >
          <option value="">{T.keyframes.none}</option>
          {made.names.map((name) => (
            <option key={name} value={name}>
              {jointName(name)}
            </option>
          ))}
        </select>
      </label>
      <label class={css("inline line-keys wide")}>
        <span>{T.lead.hand}</span>
        <select
          value={editor.dragMakes.value}
          disabled={editor.proposal.value !== null}
          data-testid="drag-makes"
          onChange={(event) => (editor.dragMakes.value = event.currentTarget.value as typeof editor.dragMakes.value)}
        >
          <option value="keyframe">{T.lead.keyframe}</option>
          <option value="through">{T.lead.through}</option>
          {editor.hasHands.value && <option value="path">{T.lead.path}</option>}
          {editor.hasBothHands.value && <option value="both">{T.lead.both}</option>}
        </select>
      </label>
      {editor.keyframing.value && (
        <>
          <button
            type="button"
            class="button"
            disabled={editor.working.value || editor.keyframes.value === null}
            onClick={editor.addKeyframe}
            data-testid="add-keyframe"
          >
            {T.keyframes.add}
          </button>
          <span class="muted small" role="status" data-testid="key-count">
            {editor.keyframes.value === null ? T.keyframes.searching : T.keyframes.count(count)}
          </span>
        </>
      )}
    </div>
  );
}

/** What a hand that was dragged would make of the whole motion, to accept or to drop. */
function ProposalBar() {
  const now = editor.proposal.value;
  if (!now || now.held) return null;
  const found = now.check?.findings.filter(({ severity }) => severity !== "note") ?? [];
  const message = !now.check
    ? T.checking
    : found[0]
      ? T.lead.found(found.length, sentence(folded(found[0]).message))
      : T.lead.fine;
  return (
    <div
      class={css("line-tools proposal")}
      role="group"
      aria-label={T.lead.title(hundredths(now.time_s))}
      data-testid="proposal"
    >
      <strong>{T.lead.title(hundredths(now.time_s))}</strong>
      <span class={found.length ? "bad-words" : "muted"} role="status" data-checked={now.check !== null}>
        {message}
      </span>
      <button type="button" class="button quiet" onClick={editor.dropProposal} data-testid="drop-proposal">
        {T.lead.drop}
      </button>
      <button
        type="button"
        class="button primary"
        disabled={editor.working.value || !now.curves}
        onClick={editor.acceptProposal}
        data-testid="accept-proposal"
      >
        {T.lead.accept}
      </button>
    </div>
  );
}

/** Two fingers, or one, or a wheel, on the curves; returns what ends that. */
function gestures(area: HTMLElement): () => void {
  const down = new Map<number, { x: number; y: number }>();
  const spread = (): { middle: number; width: number } => {
    const [a = 0, b = 0] = [...down.values()].map(({ x }) => x);
    return { middle: (a + b) / 2, width: Math.max(Math.abs(a - b), 20) };
  };
  const seekToPointer = (event: PointerEvent): void => {
    editor.stopPreview();
    editor.seek(clamp(timeAt(area, editor.view.peek(), event.clientX), editor.view.peek().from, editor.view.peek().to));
  };
  const press = (event: PointerEvent): void => {
    if (event.button !== 0 || (event.target as HTMLElement).closest("[role=slider]")) return;
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (down.size === 1) seekToPointer(event);
  };
  const move = (event: PointerEvent): void => {
    const known = down.get(event.pointerId);
    if (!known) return;
    if (down.size === 1) {
      down.set(event.pointerId, { x: event.clientX, y: event.clientY });
      seekToPointer(event);
      return;
    }
    const before = spread();
    const held = timeAt(area, editor.view.peek(), before.middle);
    down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const after = spread();
    editor.zoom(after.width / before.width, held);
    editor.pan(held - timeAt(area, editor.view.peek(), after.middle));
  };
  const lift = (event: PointerEvent): void => void down.delete(event.pointerId);
  const wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { from, to } = editor.view.peek();
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) editor.pan((sideways / 600) * (to - from));
    else editor.zoom(wheelFactor(event.deltaY), timeAt(area, editor.view.peek(), event.clientX));
  };
  const ends = new AbortController();
  const { signal } = ends;
  area.addEventListener("pointerdown", press, { signal });
  addEventListener("pointermove", move, { signal });
  for (const name of ["pointerup", "pointercancel"] as const) addEventListener(name, lift, { signal });
  area.addEventListener("wheel", wheel, { passive: false, signal });
  return () => ends.abort();
}

/** Closer with +, wider with -, and all of it with 0, wherever nothing is typed. */
export function zoomKey(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (event.key === "+" || event.key === "=") editor.zoom(STEP);
  else if (event.key === "-") editor.zoom(1 / STEP);
  else if (event.key === "0") editor.showAll();
  else return false;
  return true;
}

export function TimeLine({ made, findings }: { made: Edited; findings: Finding[] }) {
  const span = made.duration_s;
  const { from, to } = editor.selection.value;
  const now = editor.dragged.value;
  const joints = useMemo(
    () => editor.picked.value.flatMap((name) => made.limbs[name] ?? [name]),
    [editor.picked.value, made.limbs],
  );
  const instead = useMemo(() => {
    const column = now ? made.names.indexOf(now.joint) : -1;
    if (!now || column < 0) return null;
    const limits = editor.limitsOf(now.joint);
    return {
      joint: now.joint,
      values: bent(made.times_s, made.joints_rad, column, now.bend, now.value, limits),
    };
  }, [now, made]);
  const seekTo = (time: number): void => {
    editor.stopPreview();
    editor.seek(time);
  };
  const plan = editor.proposal.value;
  const against = useMemo(
    () => plan?.check?.findings.filter(({ severity }) => severity !== "note") ?? findings,
    [plan?.check, findings],
  );
  const led = useMemo(() => (plan && !plan.held ? Object.keys(plan.pose) : null), [plan?.held, plan?.pose]);
  const also = useMemo(
    () => led ?? (editor.keyframing.value ? [editor.keyJoint.value] : []),
    [led, editor.keyframing.value, editor.keyJoint.value],
  );
  const shown = editor.keyframing.value ? editor.ownKeyframes.value : [];
  return (
    <div class={css("time-line")} id="time-line">
      <Chart
        curves={made}
        closer={editor.detail.value}
        instead={instead}
        proposed={plan?.curves ?? null}
        label={T.timelineHelp}
        view={editor.view.value}
        moment={editor.playhead.value}
        selection={editor.selection.value}
        findings={against}
        only={led ?? joints}
        also={also}
        onArea={gestures}
        below={
          <>
            <Overview span={Math.max(span, 1e-3)} />
            <ProposalBar />
            <Bar made={made} />
          </>
        }
      >
        {(place) => (
          <>
            <Handle
              kind="playhead"
              label={T.playhead}
              time={editor.playhead.value}
              span={span}
              low={0}
              high={span}
              onMove={seekTo}
            />
            <Handle
              kind="from"
              label={T.start}
              time={from}
              span={span}
              low={0}
              high={to - NEAREST_S}
              onMove={(time) => (editor.selection.value = { from: time, to })}
            />
            <Handle
              kind="to"
              label={T.endHandle}
              time={to}
              span={span}
              low={from + NEAREST_S}
              high={span}
              onMove={(time) => (editor.selection.value = { from, to: time })}
            />
            {made.marks.map((mark, index) => (
              <MarkGrip key={index} mark={mark} place={place} span={span} />
            ))}
            {shown.map((each, index) => (
              <KeyGrip key={`${each.joint} ${index}`} each={each} index={index} place={place} />
            ))}
          </>
        )}
      </Chart>
    </div>
  );
}
