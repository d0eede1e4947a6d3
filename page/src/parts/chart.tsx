/** Curves over time on a canvas: live ones, and those of the time line. */

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { worstLast } from "../checks";
import { type Extent, extent, curveStyle, movers, ranges, thinned, ticks } from "../curves";
import { degrees, shortJoint } from "../format";
import { before, rowAt } from "../interpolate";
import { scene } from "../state/scene";
import { ui } from "../state/ui";
import { share, type Span } from "../state/span";
import type { Curves, Finding } from "../types";
import { bindStyles } from "../css";
import styles from "./chart.module.css";

const css = bindStyles(styles);
const COLOURS = {
  dark: ["#5ecbe8", "#ffb454", "#8ee08a", "#d9a9ff", "#ff9db0", "#9db8ff", "#f0de6a", "#6fe0c8"],
  light: ["#0b7285", "#b35900", "#2b7a2b", "#8438b8", "#c2255c", "#2f55c9", "#7a6a00", "#0b7d68"],
} as const;
export const EDGE = { left: 44, right: 14, top: 14, bottom: 24 };
const DASHES = [8, 4];
const MAX_CURVES = 8;
/** A robot with so few joints has all of them drawn: the legs of a quadruped. */
const FEW_JOINTS = 12;
const MAX_POINTS = 700;

/** Where things are on a chart. */
export interface Place {
  width: number;
  height: number;
  view: Span;
  values: Extent;
}

interface Props {
  curves: Curves;
  label: string;
  /** The part that is shown. */
  view: Span;
  /** The same curves with more samples, of a part. */
  closer?: Curves | null;
  /** A curve that is drawn in place of one of them, at the same times. */
  instead?: { joint: string; values: readonly number[] } | null;
  /** The same joints as they would be: drawn over those that differ. */
  proposed?: Curves | null;
  /** How far each joint varies to both sides of its curve, at the same times: shaded. */
  spread?: readonly number[][];
  /** The joints that are drawn; those that move most where it is left open. */
  only?: readonly string[];
  /** Joints that are drawn in any case. */
  also?: readonly string[];
  /** The moment whose angles are shown. */
  moment?: number;
  selection?: Span;
  findings?: Finding[];
  onArea?: (area: HTMLElement) => (() => void) | undefined;
  /** What lies over the curves. */
  children?: (place: Place) => ComponentChildren;
  /** What stands between the curves and their names. */
  below?: ComponentChildren;
}

export const xOf = (place: Place, time: number): number =>
  EDGE.left + share(place.view, time) * (place.width - EDGE.left - EDGE.right);
export const yOf = (place: Place, value: number): number => {
  const part = (value - place.values.low) / (place.values.high - place.values.low);
  return place.height - EDGE.bottom - part * (place.height - EDGE.top - EDGE.bottom);
};

/** Return the time below a point of the screen. */
export function timeAt(area: HTMLElement, view: Span, clientX: number): number {
  const box = area.getBoundingClientRect();
  const part = (clientX - box.left - EDGE.left) / (box.width - EDGE.left - EDGE.right);
  return view.from + part * (view.to - view.from);
}

/** Return the value beside a point of the screen. */
export function valueAt(area: HTMLElement, values: Extent, clientY: number): number {
  const box = area.getBoundingClientRect();
  const part = (box.bottom - EDGE.bottom - clientY) / (box.height - EDGE.top - EDGE.bottom);
  return values.low + part * (values.high - values.low);
}

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
  for (const tick of ticks(place.view.from, place.view.to, Math.max(2, place.width / 90))) {
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
  { curves, closer, instead, proposed, spread, view }: Props,
  shown: number[],
  paint: readonly string[],
): void {
  const near = closer && (closer.times_s[0] ?? 0) <= view.from + 1e-3 && (closer.times_s.at(-1) ?? 0) >= view.to - 1e-3;
  const source = near ? closer : curves;
  // One sample more on each side, so that no curve ends inside.
  const first = before(source.times_s, view.from);
  const last = Math.min(before(source.times_s, view.to) + 1, source.times_s.length - 1);
  const at = thinned(last - first + 1, MAX_POINTS).map((index) => first + index);
  draw.save();
  draw.beginPath();
  draw.rect(EDGE.left - 2, 0, place.width - EDGE.left - EDGE.right + 4, place.height - EDGE.bottom + 2);
  draw.clip();
  draw.lineJoin = "round";
  // The one that moves most is drawn last, over the others.
  for (const column of shown.toReversed()) {
    const name = curves.names[column] as string;
    const { colour, dashed } = curveStyle(name);
    const other = instead?.joint === name ? instead.values : null;
    const next = proposed && differs(curves, proposed, name) ? proposed : null;
    draw.strokeStyle = paint[colour] as string;
    draw.lineWidth = scene.highlighted.value === name || other ? 4 : 2;
    draw.setLineDash(dashed ? DASHES : []);
    if (spread) drawSpread(draw, place, curves, spread, column);
    draw.globalAlpha = next ? 0.35 : 1;
    draw.beginPath();
    if (other)
      for (const [index, time] of curves.times_s.entries())
        draw.lineTo(xOf(place, time), yOf(place, other[index] as number));
    else
      for (const index of at)
        draw.lineTo(
          xOf(place, source.times_s[index] as number),
          yOf(place, (source.joints_rad[index] as number[])[column] as number),
        );
    draw.stroke();
    draw.globalAlpha = 1;
    if (next) drawProposed(draw, place, next, name);
  }
  draw.setLineDash([]);
  draw.restore();
}

/** Shade what lies within the spread of a curve, in its colour. */
function drawSpread(
  draw: CanvasRenderingContext2D,
  place: Place,
  { times_s, joints_rad }: Curves,
  spread: readonly number[][],
  column: number,
): void {
  const edge = (row: number, side: number): void => {
    const value = (joints_rad[row]?.[column] ?? 0) + side * (spread[row]?.[column] ?? 0);
    draw.lineTo(xOf(place, times_s[row] as number), yOf(place, value));
  };
  draw.beginPath();
  for (let row = 0; row < times_s.length; row += 1) edge(row, 1);
  for (let row = times_s.length - 1; row >= 0; row -= 1) edge(row, -1);
  draw.globalAlpha = 0.25;
  draw.fillStyle = draw.strokeStyle;
  draw.fill();
}

/** Whether a joint would move otherwise, by what can be seen. */
function differs(curves: Curves, proposed: Curves, name: string): boolean {
  const [old, other] = [curves.names.indexOf(name), proposed.names.indexOf(name)];
  return thinned(proposed.times_s.length, 60).some((index) => {
    const then = rowAt(curves.times_s, curves.joints_rad, proposed.times_s[index] as number)[old] ?? 0;
    return Math.abs(((proposed.joints_rad[index] as number[])[other] ?? then) - then) > 0.005;
  });
}

function drawProposed(draw: CanvasRenderingContext2D, place: Place, proposed: Curves, name: string): void {
  const column = proposed.names.indexOf(name);
  draw.lineWidth = 4;
  draw.beginPath();
  for (const [index, time] of proposed.times_s.entries())
    draw.lineTo(xOf(place, time), yOf(place, (proposed.joints_rad[index] as number[])[column] as number));
  draw.stroke();
}

function drawFindings(draw: CanvasRenderingContext2D, place: Place, findings: Finding[]): void {
  for (const mark of worstLast(findings)) {
    if (mark.time_s === null || mark.time_s < place.view.from || mark.time_s > place.view.to) continue;
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

function paint(canvas: HTMLCanvasElement, props: Props, shown: number[], values: Extent): void {
  const box = canvas.getBoundingClientRect();
  const scale = window.devicePixelRatio || 1;
  const place: Place = { width: box.width, height: box.height, view: props.view, values };
  if (canvas.width !== Math.round(box.width * scale) || canvas.height !== Math.round(box.height * scale)) {
    canvas.width = Math.round(box.width * scale);
    canvas.height = Math.round(box.height * scale);
  }
  const draw = canvas.getContext("2d");
  if (!draw) return;
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  draw.clearRect(0, 0, box.width, box.height);
  drawAxes(draw, place);
  drawCurves(draw, place, props, shown, ui.dark.value ? COLOURS.dark : COLOURS.light);
  if (props.selection) {
    draw.fillStyle = colour("--veil");
    const [left, right] = [EDGE.left, place.width - EDGE.right];
    const from = Math.min(right, Math.max(left, xOf(place, props.selection.from)));
    const to = Math.min(right, Math.max(left, xOf(place, props.selection.to)));
    draw.fillRect(left, EDGE.top, from - left, place.height - EDGE.top - EDGE.bottom);
    draw.fillRect(to, EDGE.top, right - to, place.height - EDGE.top - EDGE.bottom);
  }
  drawFindings(draw, place, props.findings ?? []);
}

/** How far the joint that moves most has moved, in degrees. */
function reach(rows: readonly number[][]): number {
  return Math.round((Math.max(0, ...ranges(rows)) * 180) / Math.PI);
}

/** Which columns have a name below the chart: those that are asked for, or those that move most. */
function columnsOf({ curves, only, also }: Props): number[] {
  const few = curves.names.length <= FEW_JOINTS;
  const most = only?.length ? curves.names.length : few ? FEW_JOINTS : MAX_CURVES;
  const all = movers(curves.joints_rad, most, few ? 0 : undefined);
  const wanted = only?.length ? all.filter((column) => only.includes(curves.names[column] as string)) : all;
  const chosen = wanted.length ? wanted.slice(0, FEW_JOINTS) : columnsNamed(curves, only ?? []).slice(0, FEW_JOINTS);
  const extra = columnsNamed(curves, also ?? []).filter((column) => !chosen.includes(column));
  return [...chosen, ...extra];
}

function columnsNamed(curves: Curves, names: readonly string[]): number[] {
  return curves.names.flatMap((name, column) => (names.includes(name) ? [column] : []));
}

export function Chart(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const area = useRef<HTMLDivElement>(null);
  const [hidden, setHidden] = useState<string[]>([]);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const { curves, selection, view, moment } = props;
  const most = useMemo(() => columnsOf(props), [curves.names, curves.joints_rad, props.only, props.also]);
  const shown = useMemo(
    () => most.filter((column) => !hidden.includes(curves.names[column] as string)),
    [most, hidden],
  );
  const values = useMemo(
    () => extent([...curves.joints_rad, ...(props.proposed?.joints_rad ?? [])], shown),
    [curves.joints_rad, props.proposed, shown],
  );
  const far = useMemo(() => reach(curves.joints_rad), [curves.joints_rad]);
  const theme = ui.dark.value;
  const lit = scene.highlighted.value;

  // The playhead is not on the canvas, so that moving it costs nothing.
  useEffect(() => {
    if (canvas.current) paint(canvas.current, props, shown, values);
  }, [
    curves.times_s,
    curves.joints_rad,
    props.closer,
    props.instead,
    props.proposed,
    view.from,
    view.to,
    selection?.from,
    selection?.to,
    props.findings,
    props.only,
    props.also,
    hidden,
    theme,
    lit,
    size,
  ]);
  useEffect(() => {
    const watch = new ResizeObserver(() => {
      const box = canvas.current?.getBoundingClientRect();
      if (box) setSize({ width: box.width, height: box.height });
    });
    if (canvas.current) watch.observe(canvas.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => (area.current ? props.onArea?.(area.current) : undefined), []);

  const toggle = (name: string): void =>
    setHidden(hidden.includes(name) ? hidden.filter((each) => each !== name) : [...hidden, name]);
  const drawn = props.proposed ?? curves;
  const row = moment === undefined ? null : rowAt(drawn.times_s, drawn.joints_rad, moment);

  return (
    <figure class={css("chart")} data-theme={theme ? "dark" : "light"} data-lit={lit ?? ""}>
      <div class={css("chart-area")} data-testid="chart-area" ref={area}>
        <canvas
          ref={canvas}
          role="img"
          data-testid="chart"
          data-samples={curves.times_s.length}
          data-curves={shown.length}
          data-reach={far}
          data-from={view.from.toFixed(2)}
          data-to={view.to.toFixed(2)}
          aria-label={`${props.label}: ${most.map((column) => shortJoint(curves.names[column] as string)).join(", ")}`}
        />
        {size.width > 0 && props.children?.({ ...size, view, values })}
      </div>
      {props.below}
      <figcaption class={css("legend")}>
        {most.map((column) => {
          const name = curves.names[column] as string;
          const { colour, dashed } = curveStyle(name);
          return (
            <button
              type="button"
              key={name}
              class={css(`legend-item c${colour}${dashed ? " dashed" : ""}`)}
              aria-pressed={!hidden.includes(name)}
              data-joint={name}
              onClick={() => toggle(name)}
              onPointerEnter={() => (scene.highlighted.value = name)}
              onPointerLeave={() => (scene.highlighted.value = null)}
            >
              <i />
              {shortJoint(name)}
              {row && (
                <span class={css("legend-value numbers")} data-testid="legend-value">
                  {" "}
                  {degrees(row[column] ?? 0)}
                </span>
              )}
            </button>
          );
        })}
      </figcaption>
    </figure>
  );
}
