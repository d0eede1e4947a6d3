/**
 * The edits that a browser can do alone, with the same results as rote's own; tests/web/test_web_demo_site.py compares
 * them. All other edits raise `NeedsRoteError`.
 */

import { bent } from "../keyframes";
import type { Joint, Mark, Step } from "../types";

export interface DemoTrack {
  names: string[];
  /** From 0 s. */
  times_s: number[];
  joints_rad: number[][];
  marks: Mark[];
  history: string[];
  /** What it was made from. */
  source: string;
}

/** An edit that cannot be done to this motion. */
export class EditError extends Error {
  constructor(
    message: string,
    readonly remedy = "",
  ) {
    super(message);
  }
}

/** An edit for which the browser is not enough. */
export class NeedsRoteError extends Error {}

/** What an edit knows beside the motion: the joints of its robot, and its limbs. */
export interface EditContext {
  joints: readonly Joint[];
  limbs: Readonly<Record<string, readonly string[]>>;
}

const ROUNDED_S = 1e-4;
const NEAR_MARK_S = 0.05;
const TOLERANCE_RAD = 0.02;
const MIN_WIDTH_S = 0.02;
/** The plane between left and right turns roll and yaw around, and leaves pitch. */
const TURNED = [-1, 1, -1] as const;

export function durationOf({ times_s }: DemoTrack): number {
  return times_s.length > 1 ? (times_s.at(-1) as number) - (times_s[0] as number) : 0;
}

/** Return a motion after all steps. Raises `EditError`, which names the step, and `NeedsRoteError`. */
export function applySteps(track: DemoTrack, steps: readonly Step[], context: EditContext): DemoTrack {
  return steps.reduce((made, step, index) => {
    try {
      return fromZero(applyStep(made, step, context));
    } catch (error) {
      if (!(error instanceof EditError)) throw error;
      throw new EditError(`step ${index + 1}, ${step.op}: ${error.message}`, error.remedy);
    }
  }, track);
}

function applyStep(track: DemoTrack, step: Step, context: EditContext): DemoTrack {
  const chosen = (names: readonly string[]): string[] => chooseJoints(track, names, context);
  switch (step.op) {
    case "trim":
      if (step.auto) throw new NeedsRoteError(step.op);
      return trim(track, step.start_s ?? 0, step.end_s ?? durationOf(track));
    case "speed":
      return speed(track, step.factor);
    case "reverse":
      if (step.joints?.length) throw new NeedsRoteError(step.op);
      return reverse(track);
    case "mirror":
      return mirror(track, step.joints?.length ? chosen(step.joints) : null, context.joints);
    case "keep":
      return keepColumns(track, chosen(step.joints), `keep ${chosen(step.joints).join(", ")}`);
    case "drop":
      return drop(track, chosen(step.joints));
    case "keyframe":
      if (step.to_s != null && step.to_s !== step.time_s) throw new NeedsRoteError(step.op);
      return keyframe(track, step.time_s, step.pose, [step.before_s ?? 0.5, step.after_s ?? 0.5], context.joints);
    case "mark":
      return edited(track, `mark at ${step.time_s.toFixed(2)} s: ${step.label}`, {
        marks: [...track.marks, { time_s: timeIn(track, step.time_s, "the time of the mark"), label: step.label }],
      });
    case "change_mark":
      return changeMark(track, step.time_s, step.label ?? null, step.to_s ?? null);
    case "remove_mark": {
      const old = markAt(track, step.time_s);
      const line = `remove the mark at ${old.time_s.toFixed(2)} s: ${old.label}`;
      return edited(track, line, { marks: track.marks.filter((mark) => mark !== old) });
    }
    default:
      throw new NeedsRoteError(step.op);
  }
}

function edited(track: DemoTrack, line: string, changes: Partial<DemoTrack>): DemoTrack {
  return { ...track, ...changes, history: [...track.history, line] };
}

function fromZero(track: DemoTrack): DemoTrack {
  const first = track.times_s[0] ?? 0;
  if (first === 0) return track;
  return {
    ...track,
    times_s: track.times_s.map((time) => time - first),
    marks: track.marks.map((mark) => ({ ...mark, time_s: mark.time_s - first })),
  };
}

function requireWithin(value: number, low: number, high: number, what: string, unit: string): void {
  if (!(value >= low - 1e-5 * Math.abs(low) && value <= high + 1e-5 * Math.abs(high)))
    throw new EditError(`${what} is ${brief(value)}${unit}; the range is ${brief(low)} to ${brief(high)}${unit}`);
}

/** Return a number with at most six digits. */
function brief(value: number): string {
  return String(Number(value.toPrecision(6)));
}

/** Return a time of the motion; one that was rounded beyond its end is the end. */
function timeIn(track: DemoTrack, time: number, what: string): number {
  const duration = durationOf(track);
  if (Math.abs(time - duration) < ROUNDED_S) return duration;
  requireWithin(time, 0, duration, what, " s");
  return time;
}

/** Return these joints in the order of the motion; a limb stands for all of its joints. */
function chooseJoints(track: DemoTrack, names: readonly string[], { limbs }: EditContext): string[] {
  const all = new Set(names.flatMap((name) => (track.names.includes(name) ? [name] : (limbs[name] ?? [name]))));
  const known = track.names.filter((name) => all.has(name));
  const unknown = names.filter((name) => !track.names.includes(name) && !(name in limbs));
  if (unknown.length) throw new EditError(`the track has no ${unknown.join(", ")}`);
  if (!known.length) throw new EditError("no joint was named");
  return known;
}

function trim(track: DemoTrack, start: number, wanted: number): DemoTrack {
  const duration = durationOf(track);
  const end = Math.abs(wanted - duration) < ROUNDED_S ? duration : wanted;
  requireWithin(start, 0, duration, "the start", " s");
  requireWithin(end, start, duration, "the end", " s");
  const inside = (time: number): boolean => time >= start && time <= end;
  const rows = track.joints_rad.filter((_, index) => inside(track.times_s[index] as number));
  if (rows.length < 2)
    throw new EditError(`${brief(start)} to ${brief(end)} s holds ${rows.length} samples; 2 are needed`);
  const kept = `kept ${start.toFixed(2)} to ${end.toFixed(2)} of 0.00 to ${duration.toFixed(2)} s`;
  return edited(track, `trim: ${rows.length === track.times_s.length ? "nothing was cut" : kept}`, {
    times_s: track.times_s.filter(inside),
    joints_rad: rows,
    marks: track.marks.filter(({ time_s }) => inside(time_s)),
  });
}

function speed(track: DemoTrack, factor: number): DemoTrack {
  if (!(factor > 0)) throw new EditError(`the speed is ${brief(factor)}; it must be above 0`);
  return edited(track, `speed ${brief(factor)} times`, {
    times_s: track.times_s.map((time) => time / factor),
    marks: track.marks.map((mark) => ({ ...mark, time_s: mark.time_s / factor })),
  });
}

function reverse(track: DemoTrack): DemoTrack {
  const end = durationOf(track);
  return edited(track, "reverse", {
    times_s: track.times_s.map((time) => end - time).reverse(),
    joints_rad: [...track.joints_rad].reverse(),
    marks: track.marks.map((mark) => ({ ...mark, time_s: end - mark.time_s })),
  });
}

function opposite(name: string): string {
  if (name.startsWith("left_")) return name.replace("left_", "right_");
  return name.startsWith("right_") ? name.replace("right_", "left_") : name;
}

/** Exchange left and right; with `only` these joints become the image of their partners, which stay. */
function mirror(track: DemoTrack, only: readonly string[] | null, joints: readonly Joint[]): DemoTrack {
  const byName = new Map(joints.map((joint) => [joint.name, joint]));
  const sources = track.names.map((name) => {
    const [own, other] = [byName.get(name), byName.get(opposite(name))];
    const column = track.names.indexOf(opposite(name));
    if (only && !only.includes(name)) return null;
    // A side alone becomes the other side under other names.
    if (!own || !other || column < 0) throw new NeedsRoteError("mirror");
    const along = own.axis.reduce((sum, part, at) => sum + part * (other.axis[at] ?? 0) * (TURNED[at] ?? 0), 0);
    return { own, column, sign: Math.sign(along) };
  });
  const rows = track.joints_rad.map((row) =>
    row.map((angle, at) => {
      const source = sources[at];
      if (!source) return angle;
      const { own, column, sign } = source;
      const image = sign * (row[column] as number);
      if (image < own.lower_rad - TOLERANCE_RAD || image > own.upper_rad + TOLERANCE_RAD)
        throw new EditError(`${own.name} would leave its range at ${image.toFixed(2)} rad`);
      return image;
    }),
  );
  const line = only ? `mirror image: ${only.join(", ")}` : "mirror left and right";
  return edited(track, line, { joints_rad: rows });
}

function keepColumns(track: DemoTrack, names: readonly string[], line: string): DemoTrack {
  const columns = names.map((name) => track.names.indexOf(name));
  const joints_rad = track.joints_rad.map((row) => columns.map((column) => row[column] as number));
  return edited(track, line, { names: [...names], joints_rad });
}

function drop(track: DemoTrack, names: readonly string[]): DemoTrack {
  const kept = track.names.filter((name) => !names.includes(name));
  if (!kept.length) throw new EditError(`dropping all ${names.length} joints would leave no track; keep at least 1`);
  return keepColumns(track, kept, `drop ${names.join(", ")}`);
}

/** Return how far a minimum-jerk movement is at a share of its time. */
export function minimumJerk(share: number): number {
  const u = Math.min(1, Math.max(0, share));
  return u ** 3 * (10 - 15 * u + 6 * u * u);
}

/** Lead joints through other angles at a sample near `time_s`; the bend is the one that the page draws during a drag. */
function keyframe(
  track: DemoTrack,
  time_s: number,
  pose: Readonly<Record<string, number>>,
  [before, after]: readonly [number, number],
  joints: readonly Joint[],
): DemoTrack {
  const duration = durationOf(track);
  const old = timeIn(track, time_s, "the moment");
  const start = Math.max(old - before, 0);
  const end = Math.min(old + after, duration);
  if ((old > 0 && old - start < MIN_WIDTH_S) || (old < duration && end - old < MIN_WIDTH_S))
    throw new EditError(`the keyframe at ${old.toFixed(2)} s would cause a jump`);
  const near = track.times_s.reduce((best, time) => (Math.abs(time - old) < Math.abs(best - old) ? time : best));
  const names = track.names.filter((name) => name in pose);
  if (!names.length) throw new EditError("no joint was named");
  const columns = new Map(
    names.map((name) => {
      const limits = joints.find((joint) => joint.name === name);
      if (!limits) throw new NeedsRoteError("keyframe");
      const wanted = pose[name] as number;
      requireWithin(wanted, limits.lower_rad - TOLERANCE_RAD, limits.upper_rad + TOLERANCE_RAD, name, " rad");
      const column = track.names.indexOf(name);
      const bend = { start, old: near, at: near, end };
      return [column, bent(track.times_s, track.joints_rad, column, bend, wanted, limits)];
    }),
  );
  const joints_rad = track.joints_rad.map((row, index) =>
    row.map((angle, column) => columns.get(column)?.[index] ?? angle),
  );
  const angles = names.map((name) => `${name} ${(pose[name] as number).toFixed(3)} rad`).join(", ");
  return edited(track, `keyframe at ${near.toFixed(2)} s: ${angles}`, { joints_rad });
}

function markAt(track: DemoTrack, time: number): Mark {
  const [near] = [...track.marks].sort((a, b) => Math.abs(a.time_s - time) - Math.abs(b.time_s - time));
  if (!near || Math.abs(near.time_s - time) > NEAR_MARK_S)
    throw new EditError(`there is no mark at ${time.toFixed(2)} s`);
  return near;
}

function changeMark(track: DemoTrack, time: number, label: string | null, to: number | null): DemoTrack {
  const old = markAt(track, time);
  const made = {
    time_s: to === null ? old.time_s : timeIn(track, to, "the time of the mark"),
    label: label ?? old.label,
  };
  const line =
    `mark at ${old.time_s.toFixed(2)} s, ${old.label}: ` + `now at ${made.time_s.toFixed(2)} s, ${made.label}`;
  return edited(track, line, { marks: [...track.marks.filter((mark) => mark !== old), made] });
}

/** Return the root mean square of the third derivative over time and joints, in rad/s³; null for too few samples. */
export function jerkOf({ times_s, joints_rad }: DemoTrack): number | null {
  if (times_s.length < 4) return null;
  let [times, rows] = [times_s, joints_rad];
  for (let order = 0; order < 3; order += 1) {
    rows = slopes(times, rows);
    times = times.slice(1).map((time, index) => (time + (times[index] as number)) / 2);
  }
  const squares = rows.flat().map((value) => value * value);
  return Math.sqrt(squares.reduce((sum, value) => sum + value, 0) / squares.length);
}

/** Return the highest speed of any joint, from one sample to the next, in rad/s. */
export function peakSpeedOf({ times_s, joints_rad }: DemoTrack): number {
  return slopes(times_s, joints_rad).reduce((best, row) => Math.max(best, ...row.map(Math.abs)), 0);
}

function slopes(times: readonly number[], rows: readonly number[][]): number[][] {
  return rows.slice(1).map((row, index) => {
    const before = rows[index] as number[];
    const width = (times[index + 1] as number) - (times[index] as number);
    return row.map((value, at) => (value - (before[at] as number)) / width);
  });
}
