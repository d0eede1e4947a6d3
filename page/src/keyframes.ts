/** Keyframes of a joint, and how its curve bends when one is dragged: as the server's edit does it. */

import type { JointKeyframe, Step } from "./types";
import { rowAt } from "./interpolate";

const STEEPEST = 3;
/** The least time between two keyframes: nearer, it would be a jump. */
export const LEAST_S = 0.03;

/** From where to where a curve bends, and where a moment of it goes. */
export interface Bend {
  start: number;
  old: number;
  at: number;
  end: number;
}

/** Minimum jerk, from 0 to 1. */
function softly(share: number): number {
  const u = Math.min(1, Math.max(0, share));
  return u ** 3 * (10 - 15 * u + 6 * u * u);
}

/** Return how much of the change there is at a time: 1 at the moment itself. */
export function amount({ start, at, end }: Bend, time: number): number {
  if (time === at) return 1;
  if (time < at) return at > start ? softly((time - start) / (at - start)) : 0;
  return end > at ? 1 - softly((time - at) / (end - at)) : 0;
}

/** Return the old time whose angle is reached at a time. */
export function warped({ start, old, at, end }: Bend, time: number): number {
  if (old === at || time <= start || time >= end) return time;
  const before = (old - start) / Math.max(at - start, 1e-9);
  const later = (end - old) / Math.max(end - at, 1e-9);
  const middle = before + later > 0 ? (2 * before * later) / (before + later) : 0;
  const after = time > at;
  const [begin, stop] = after ? [at, end] : [start, at];
  const [first, last] = after ? [old, end] : [start, old];
  const mean = (last - first) / (stop - begin);
  const [atBegin, atEnd] = (after ? [middle, 1] : [1, middle]).map((slope) => Math.min(slope, STEEPEST * mean)) as [
    number,
    number,
  ];
  const u = (time - begin) / (stop - begin);
  return first + (last - first) * u * u * (3 - 2 * u) + (stop - begin) * u * (1 - u) * ((1 - u) * atBegin - u * atEnd);
}

/** Return a joint's angles at some times after a keyframe of it was dragged to `value`. */
export function bent(
  times: readonly number[],
  rows: readonly number[][],
  column: number,
  bend: Bend,
  value: number,
  limits: { lower_rad: number; upper_rad: number },
): number[] {
  const old = (time: number): number => rowAt(times, rows, time)[column] ?? 0;
  const by = value - old(bend.old);
  return times.map((time, index) => {
    if (time < bend.start || time > bend.end) return (rows[index] as number[])[column] as number;
    const moved = old(warped(bend, time));
    const wanted = moved + amount(bend, time) * by;
    return Math.min(Math.max(limits.upper_rad, moved), Math.max(Math.min(limits.lower_rad, moved), wanted));
  });
}

/** Return the keyframes of one joint, by time. */
export function ofJoint(all: readonly JointKeyframe[], joint: string): JointKeyframe[] {
  return all.filter((each) => each.joint === joint).sort((a, b) => a.time_s - b.time_s);
}

/** Return between which times a keyframe can be moved: not past its neighbours, and the ends stay ends. */
export function room(own: readonly JointKeyframe[], index: number, duration: number): { low: number; high: number } {
  const time = own[index]?.time_s ?? 0;
  if (index === 0 && time <= 1e-3) return { low: 0, high: 0 };
  if (time >= duration - 1e-3) return { low: duration, high: duration };
  return {
    low: (own[index - 1]?.time_s ?? 0) + LEAST_S,
    high: (own[index + 1]?.time_s ?? duration) - LEAST_S,
  };
}

/** Return how a curve bends when a keyframe goes to another time: between its neighbours. */
export function bendOf(own: readonly JointKeyframe[], index: number, to: number, duration: number): Bend {
  return {
    start: own[index - 1]?.time_s ?? 0,
    old: own[index]?.time_s ?? 0,
    at: to,
    end: own[index + 1]?.time_s ?? duration,
  };
}

const rounded = (value: number): number => Number(value.toFixed(4));

/** Return the step that moves a keyframe. */
export function stepOf(joint: string, bend: Bend, value: number): Step {
  return {
    op: "keyframe",
    time_s: rounded(bend.old),
    pose: { [joint]: rounded(value) },
    ...(bend.at === bend.old ? {} : { to_s: rounded(bend.at) }),
    before_s: rounded(bend.old - bend.start),
    after_s: rounded(bend.end - bend.old),
  };
}

/** Return the keyframes after one was moved; the others stay where they are. */
export function movedTo(
  all: readonly JointKeyframe[],
  old: JointKeyframe,
  time_s: number,
  value_rad: number,
): JointKeyframe[] {
  return all.map((each) => (each === old ? { ...each, time_s, value_rad } : each));
}
