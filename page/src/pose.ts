/** Poses of a whole robot from the curves of some of its joints, and the path of a hand: pure. */

import { thinned } from "./curves";
import { rowAt } from "./interpolate";
import type { Curves, RobotModel, Vector } from "./types";

/** Angles in rad by the names of joints. */
export type JointAngles = Record<string, number>;

/** Return the pose at a moment of a motion; joints that it does not have stay as in `from`, and `instead` goes first. */
export function poseAt(
  curves: Curves,
  time_s: number,
  model: RobotModel,
  from: readonly number[],
  instead: JointAngles = {},
): number[] {
  const pose = [...from];
  const row = rowAt(curves.times_s, curves.joints_rad, time_s);
  const angles = {
    ...Object.fromEntries(curves.names.map((name, column) => [name, row[column] as number])),
    ...instead,
  };
  for (const { name, index } of model.joints) pose[index] = angles[name] ?? (pose[index] as number);
  return pose;
}

/** A motion as a line that the hands follow. */
export interface PoseLine {
  times_s: number[];
  poses: number[][];
}

/** Return at most `most` poses of a motion, for the line of a hand. */
export function poseLine(curves: Curves, model: RobotModel, from: readonly number[], most = 120): PoseLine {
  const times_s = thinned(curves.times_s.length, most).map((index) => curves.times_s[index] as number);
  return { times_s, poses: times_s.map((time_s) => poseAt(curves, time_s, model, from)) };
}

/** Return where the middle of some places is after one of them was moved to `at_m`, and the others by the same. */
export function movedMiddle(before: readonly Vector[], moved: number, at_m: Vector): Vector {
  const own = before[moved] as Vector;
  const middle = (axis: number): number =>
    before.reduce((sum, each) => sum + (each[axis] as number), 0) / before.length;
  return at_m.map((each, axis) => middle(axis) + each - (own[axis] as number)) as Vector;
}

/** The hand of a limb as edits name it; null for a limb that is no arm. */
export function handOf(limb: string): "left" | "right" | null {
  return (/^(left|right)_arm$/.exec(limb)?.[1] as "left" | "right" | undefined) ?? null;
}

/**
 * Return how much of a change at `at_s` there is at `time_s`: 1 at the moment itself, 0 at both ends of the motion. The
 * cubic spline that the server's edit of a hand's path uses.
 */
export function bendShare(time_s: number, at_s: number, duration_s: number): number {
  const [before, after] = [at_s, duration_s - at_s];
  if (before <= 0 || after <= 0) return 0;
  const slope = 1.5 * (1 / before - 1 / after);
  const [u, length, sign] = time_s <= at_s ? [time_s / before, before, -1] : [(duration_s - time_s) / after, after, 1];
  return u * u * (3 - 2 * u) + sign * slope * length * u * u * (1 - u);
}
