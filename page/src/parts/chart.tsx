/** Curves over time on a canvas: live ones, and the time line with handles, marks and a playhead. */

import { useEffect, useRef, useState } from "preact/hooks";
import { worstLast } from "../checks";
import { type Extent, extent, look, movers, ranges, thinned, ticks } from "../curves";
import { degrees, seconds, shortJoint } from "../format";
import { dark, pointed } from "../store";
import { TEXTS } from "../texts";
import type { Curves, Finding } from "../types";

const COLOURS = {
  dark: ["#5ecbe8", "#ffb454", "#8ee08a", "#d9a9ff", "#ff9db0", "#9db8ff", "#f0de6a", "#6fe0c8"],
  light: ["#0b7285", "#b35900", "#2b7a2b", "#8438b8", "#c2255c", "#2f55c9", "#7a6a00", "#0b7d68"],
} as const;
const EDGE = { left: 44, right: 14, top: 14, bottom: 24 };
const DASHES = [8, 4];
const MAX_CURVES = 8;
const MAX_POINTS = 700;

export interface Selection {
  from: number;
  to: number;
}

interface Props {
  curves: Curves;
  label: string;
  /** The time shown at least, in seconds. */
  span: number;
  playhead?: number;
  onSeek?: (time: number) => void;
  selection?: Selection;
  onSelect?: (selection: Selection) => void;
  marks?: Finding[];
}

interface Place {
  width: number;
  height: number;
  span: number;
  values: Extent;
}

const xOf = (place: Place, time: number): number =>
  EDGE.left + (time / place.span) * (place.width - EDGE.left - EDGE.right);
const yOf = (place: Place, value: number): number => {
  const share = (value - place.values.low) / (place.values.high - place.values.low);
  return place.height - EDGE.bottom - share * (place.height - EDGE.top - EDGE.bottom);
};

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function drawAxes(draw: CanvasRenderingContext2D, place: Place): void {
  draw.font = "12px system-ui, sans-serif";
  draw.fillStyle = colour("--muted");
  draw.strokeStyle = colour("--line");
  draw.lineWidth = 1;
  draw.textAlign = "right";
  draw.textBaseline = "middle";
  const toDegrees = 180 / Math.PI;
  for (const tick of ticks(
    place.values.low * toDegrees,
    place.values.high * toDegrees,
    Math.max(2, place.height / 48),
  )) {
    const y = Math.round(yOf(place, tick / toDegrees)) + 0.5;
    line(draw, [EDGE.left, y], [place.width - EDGE.right, y]);
    draw.fillText(degrees(tick / toDegrees), EDGE.left - 8, y);
  }
  draw.textAlign = "center";
  draw.textBaseline = "alphabetic";
  for (const tick of ticks(0, place.span, Math.max(2, place.width / 90))) {
    const x = Math.round(xOf(place, tick)) + 0.5;
    draw.globalAlpha = 0.6;
    line(draw, [x, EDGE.top], [x, place.height - EDGE.bottom]);
    draw.globalAlpha = 1;
    draw.fillText(`${tick} s`, x, place.height - 7);
  }
}

function line(draw: CanvasRenderingContext2D, from: [number, number], to: [number, number]): void {
  draw.beginPath();
  draw.moveTo(...from);
  draw.lineTo(...to);
  draw.stroke();
}

function drawCurves(
  draw: CanvasRenderingContext2D,
  place: Place,
  curves: Curves,
  shown: number[],
  paint: readonly string[],
): void {
  const at = thinned(curves.times_s.length, MAX_POINTS);
  draw.lineJoin = "round";
  // The one that moves most is drawn last, over the others.
  for (const column of shown.toReversed()) {
    const name = curves.names[column] as string;
    const { colour, dashed } = look(name);
    draw.strokeStyle = paint[colour] as string;
    draw.lineWidth = pointed.value === name ? 4 : 2;
    draw.setLineDash(dashed ? DASHES : []);
    draw.beginPath();
    for (const index of at) {
      draw.lineTo(
        xOf(place, curves.times_s[index] as number),
        yOf(place, (curves.joints_rad[index] as number[])[column] as number),
      );
    }
    draw.stroke();
  }
  draw.setLineDash([]);
}

function drawMarks(draw: CanvasRenderingContext2D, place: Place, marks: Finding[]): void {
  for (const mark of worstLast(marks)) {
    if (mark.time_s === null) continue;
    const x = xOf(place, mark.time_s);
    draw.strokeStyle = draw.fillStyle = colour(mark.severity === "error" ? "--bad" : "--warn");
    draw.lineWidth = 1.5;
    draw.setLineDash([3, 3]);
    line(draw, [x, EDGE.top], [x, place.height - EDGE.bottom]);
    draw.setLineDash([]);
    draw.beginPath();
    draw.moveTo(x - 6, 2);
    draw.lineTo(x + 6, 2);
    draw.lineTo(x, EDGE.top);
    draw.fill();
  }
}

function paint(canvas: HTMLCanvasElement, props: Props, shown: number[]): void {
  const box = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  const place: Place = {
    width: box.width,
    height: box.height,
    span: Math.max(props.span, 0.1),
    values: extent(props.curves.joints_rad, shown),
  };
  if (canvas.width !== Math.round(box.width * scale) || canvas.height !== Math.round(box.height * scale)) {
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
  }
  const draw = canvas.getContext("2d");
  if (!draw) return;
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  draw.clearRect(0, 0, box.width, box.height);
  drawAxes(draw, place);
  drawCurves(draw, place, props.curves, shown, dark.value ? COLOURS.dark : COLOURS.light);
  if (props.selection) {
    draw.fillStyle = colour("--veil");
    const [from, to] = [xOf(place, props.selection.from), xOf(place, props.selection.to)];
    draw.fillRect(EDGE.left, EDGE.top, from - EDGE.left, place.height - EDGE.top - EDGE.bottom);
    draw.fillRect(to, EDGE.top, place.width - EDGE.right - to, place.height - EDGE.top - EDGE.bottom);
  }
  drawMarks(draw, place, props.marks ?? []);
}

const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

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
  useEffect(() => {
    element.current?.style.setProperty("--share", String(span > 0 ? time / span : 0));
  }, [time, span]);
  const drag = (event: PointerEvent): void => {
    const target = event.currentTarget as HTMLElement;
    if (event.type === "pointerdown") target.setPointerCapture(event.pointerId);
    else if (!target.hasPointerCapture(event.pointerId)) return;
    event.preventDefault();
    event.stopPropagation();
    const box = (target.parentElement as HTMLElement).getBoundingClientRect();
    const share = (event.clientX - box.left - EDGE.left) / (box.width - EDGE.left - EDGE.right);
    onMove(clamp(share * span, low, high));
  };
  const press = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -0.05, ArrowRight: 0.05, PageDown: -0.5, PageUp: 0.5 }[event.key];
    const to = event.key === "Home" ? low : event.key === "End" ? high : by ? time + by : null;
    if (to === null) return;
    event.preventDefault();
    onMove(clamp(to, low, high));
  };
  return (
    <div
      ref={element}
      class={`handle ${kind}`}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={Number(span.toFixed(2))}
      aria-valuenow={Number(time.toFixed(2))}
      aria-valuetext={seconds(time)}
      onPointerDown={drag}
      onPointerMove={drag}
      onKeyDown={press}
      data-testid={`handle-${kind}`}
    />
  );
}

/** How far the joint that moves most has moved, in degrees. */
function reach(rows: readonly number[][]): number {
  return Math.round((Math.max(0, ...ranges(rows)) * 180) / Math.PI);
}

export function Chart(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [hidden, setHidden] = useState<string[]>([]);
  const [size, setSize] = useState(0);
  const { curves, selection, onSelect, onSeek, playhead } = props;
  const most = movers(curves.joints_rad, MAX_CURVES);
  const shown = most.filter((column) => !hidden.includes(curves.names[column] as string));
  const theme = dark.value;
  const lit = pointed.value;

  // The playhead is not on the canvas, so that moving it costs nothing.
  useEffect(() => {
    if (canvas.current) paint(canvas.current, props, shown);
  }, [
    curves.times_s,
    curves.joints_rad,
    props.span,
    selection?.from,
    selection?.to,
    props.marks,
    hidden,
    theme,
    lit,
    size,
  ]);
  useEffect(() => {
    const watch = new ResizeObserver(() => setSize((count) => count + 1));
    if (canvas.current) watch.observe(canvas.current);
    return () => watch.disconnect();
  }, []);

  const seek = (event: PointerEvent): void => {
    if (!onSeek || (event.type === "pointermove" && event.buttons === 0)) return;
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const share = (event.clientX - box.left - EDGE.left) / (box.width - EDGE.left - EDGE.right);
    onSeek(clamp(share, 0, 1) * props.span);
  };
  const toggle = (name: string): void =>
    setHidden(hidden.includes(name) ? hidden.filter((each) => each !== name) : [...hidden, name]);

  return (
    <figure class="chart" data-theme={theme ? "dark" : "light"} data-lit={lit ?? ""}>
      <div class="chart-area" onPointerDown={seek} onPointerMove={seek}>
        <canvas
          ref={canvas}
          role="img"
          data-testid="chart"
          data-samples={curves.times_s.length}
          data-curves={shown.length}
          data-reach={reach(curves.joints_rad)}
          aria-label={`${props.label}: ${most.map((column) => shortJoint(curves.names[column] as string)).join(", ")}`}
        />
        {playhead !== undefined && onSeek && (
          <Handle
            kind="playhead"
            label={TEXTS.edit.playhead}
            time={playhead}
            span={props.span}
            low={0}
            high={props.span}
            onMove={onSeek}
          />
        )}
        {selection && onSelect && (
          <>
            <Handle
              kind="from"
              label={TEXTS.edit.start}
              time={selection.from}
              span={props.span}
              low={0}
              high={selection.to - 0.05}
              onMove={(from) => onSelect({ ...selection, from })}
            />
            <Handle
              kind="to"
              label={TEXTS.edit.endHandle}
              time={selection.to}
              span={props.span}
              low={selection.from + 0.05}
              high={props.span}
              onMove={(to) => onSelect({ ...selection, to })}
            />
          </>
        )}
      </div>
      <figcaption class="legend">
        {most.map((column) => {
          const name = curves.names[column] as string;
          const { colour, dashed } = look(name);
          return (
            <button
              type="button"
              key={name}
              class={`legend-item c${colour}${dashed ? " dashed" : ""}`}
              aria-pressed={!hidden.includes(name)}
              onClick={() => toggle(name)}
              onPointerEnter={() => (pointed.value = name)}
              onPointerLeave={() => (pointed.value = null)}
            >
              <i />
              {shortJoint(name)}
            </button>
          );
        })}
      </figcaption>
    </figure>
  );
}
