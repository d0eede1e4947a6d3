/** What the 3D view shows besides the robot that is connected. */

import { signal } from "@preact/signals";
import type { LimbEnd, RobotModel } from "../types";

const ghost = signal<number[] | null>(null);
/** Another robot than the one that is connected, and its pose: the view shows it instead. */
const guest = signal<{ model: RobotModel; pose: number[] } | null>(null);
/** The cast of a show, side by side: the view shows it instead of the robot. */
const robotGroup = signal<{ name: string; model: RobotModel }[] | null>(null);
const groupPoses = signal<number[][]>([]);
/** Hands or feet of the ghost that can be dragged; `onMove` gets the angles by the names of joints. */
const limbHandles = signal<{
  ends: LimbEnd[];
  onMove: (pose: Record<string, number>) => void;
  onDone: () => void;
} | null>(null);
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
