/** What the 3D view shows besides the robot that is connected. */

import { type Signal, signal } from "@preact/signals";
import type { JointAngles, PoseLine } from "../pose";
import type { LimbEnd, RobotModel, Vector } from "../types";

const ghost = signal<number[] | null>(null);
/** Another robot than the one that is connected, and its pose: the view shows it instead. */
const guest = signal<{ model: RobotModel; pose: number[] } | null>(null);
/** The cast of a show, side by side: the view shows it instead of the robot. */
const robotGroup = signal<{ name: string; model: RobotModel }[] | null>(null);
const groupPoses = signal<number[][]>([]);
/** Where the end of a limb is in a pose of a robot, in metres from its base; by default the one that is dragged. */
export type Locate = (model: RobotModel, pose: readonly number[], end?: LimbEnd) => Vector;

/** Hands or feet of the ghost that can be dragged. */
export interface LimbHandles {
  ends: LimbEnd[];
  /** Whether all ends move by the same, so that they keep their distance. */
  together: boolean;
  /** The motion whose path the ends follow, drawn as a line; without `moment` it does not bend with a hand. */
  line: (PoseLine & { moment: (() => number) | null; onGrab: (time_s: number) => void }) | null;
  onMove: (pose: JointAngles, end: LimbEnd, locate: Locate) => void;
  onDone: () => void;
}
const limbHandles = signal<LimbHandles | null>(null);
/** The joint that is highlighted. */
const highlighted = signal<string | null>(null);
const onTurnJoint = signal<((joint: string | null, value_rad: number) => void) | null>(null);
const countdown = signal<number | null>(null);
/** What the countdown is for; empty before a teaching. */
const countdownText = signal("");

export const scene = {
  ghost,
  guest,
  robotGroup,
  groupPoses,
  limbHandles,
  highlighted,
  onTurnJoint,
  countdown,
  countdownText,
};

/** Return a function that shows a value in a signal of several screens; null removes only what it has shown itself. */
export function claim<Value>(shown: Signal<Value | null>): (value: Value | null) => void {
  let own: Value | null = null;
  return (value) => {
    if (value !== null || shown.peek() === own) shown.value = value;
    own = value;
  };
}
