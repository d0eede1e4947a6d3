/** The take being edited: what was done to it, what came of it, and the moment shown. */

import { computed, effect, signal } from "@preact/signals";
import { api } from "../api";
import { seconds } from "../format";
import { done, type History, NOTHING_DONE, redo, undo } from "../history";
import { rowAt } from "../interpolate";
import type { Selection } from "../parts/chart";
import {
  activity,
  editing,
  ghost,
  go,
  guest,
  loadTakes,
  model,
  modelOf,
  now,
  playTake,
  poses,
  report,
  say,
  screen,
  statusAt,
  stranger,
  takes,
} from "../store";
import { TEXTS } from "../texts";
import type { EditFacts, Edited, KnownRobots, RobotModel, Step } from "../types";

export const history = signal<History>(NOTHING_DONE);
export const edited = signal<Edited | null>(null);
export const selection = signal<Selection>({ from: 0, to: 0 });
export const playhead = signal(0);
export const previewing = signal(false);
export const working = signal(false);
export const opened = signal<string | null>(null);
/** The edits there are, as the server's table has them. */
export const edits = signal<EditFacts[]>([]);
/** The builds that a motion can be brought to. */
export const builds = signal<KnownRobots["simulated"]>([]);

effect(() => {
  if (screen.value !== "edit" || edits.peek().length) return;
  api.edits().then((told) => (edits.value = told.edits), report);
  api.robots().then((told) => (builds.value = told.simulated), report);
});
/** Why the robot that is connected cannot play the take: it is of another kind. Empty where it can. */
export const strange = computed(() => (edited.value ? stranger(edited.value) : ""));

/** The robot that the take is of; nothing while it is asked for, null where it is not known. */
export const whose = signal<RobotModel | null | undefined>(undefined);

effect(() => {
  const build = edited.value?.build;
  if (!build) {
    whose.value = edited.value ? null : undefined;
    return;
  }
  if (whose.peek()?.build === build) return;
  whose.value = undefined;
  modelOf(build).then((found) => edited.peek()?.build === build && (whose.value = found), report);
});

/** The versions of the take that can be edited, the oldest first. */
export const versions = computed(() => takes.value.find(({ name }) => name === opened.value)?.versions ?? []);
/** Whether somebody chose the version; without that it is the newest. */
let chosen = false;
let asked = 0;

/**
 * Ask what the steps make of a version of the take; the answer to the newest question counts. The version
 * stays the one that was opened, whatever is saved under the take's name meanwhile.
 */
async function apply(take: string, next: History, version = edited.peek()?.version): Promise<boolean> {
  asked += 1;
  const mine = asked;
  working.value = true;
  try {
    const made = await api.edit(take, next.steps, version);
    if (mine !== asked) return false;
    opened.value = take;
    history.value = next;
    edited.value = made;
    selection.value = { from: 0, to: made.duration_s };
    seek(playhead.peek());
    return true;
  } catch (error) {
    if (mine === asked) report(error);
    return false;
  } finally {
    if (mine === asked) working.value = false;
  }
}

/** Look at a moment; the take has none before its beginning or after its end. */
export function seek(time: number): void {
  playhead.value = Math.min(Math.max(time, 0), edited.peek()?.duration_s ?? 0);
}

export async function openTake(take: string): Promise<void> {
  stopPreview();
  chosen = false;
  edited.value = null;
  playhead.value = 0;
  opened.value = take;
  if (!(await apply(take, NOTHING_DONE)) && opened.peek() === take && edited.peek() === null) opened.value = null;
}

export function step(made: Step): void {
  if (opened.peek()) void apply(opened.peek() as string, done(history.peek(), made));
}

export function undoStep(): void {
  if (opened.peek()) void apply(opened.peek() as string, undo(history.peek()));
}

export function redoStep(): void {
  if (opened.peek()) void apply(opened.peek() as string, redo(history.peek()));
}

/** Do the same steps to another version of the take. */
export function chooseVersion(version: number): void {
  chosen = true;
  if (opened.peek()) void apply(opened.peek() as string, history.peek(), version);
}

/** Save what the steps have made; it is what is edited from then on. */
export async function save(name: string): Promise<void> {
  const take = opened.peek();
  const made = edited.peek();
  if (!take || !made) return;
  const entry = await api.saveEdit(take, history.peek().steps, name, made.version);
  say(TEXTS.edit.saved(entry.name), "good");
  void loadTakes();
  if (opened.peek() !== take || !(await apply(entry.name, NOTHING_DONE, entry.version))) return;
  chosen = false;
  if (name !== take) go("edit", entry.name);
}

// ---- the robot plays it -----------------------------------------------------------------------

/** What was sent to the robot from here. */
const played = signal<Edited | null>(null);

export function play(): void {
  const made = edited.peek();
  if (!made || !opened.peek()) return;
  played.value = made;
  void playTake(opened.peek() as string, history.peek().steps, made.version);
}

/** Whether the robot plays what the time line shows. */
export const following = computed(() => {
  const made = edited.value;
  const untouched = !history.value.steps.length && made?.version === versions.value.at(-1);
  return (
    made !== null &&
    activity.value?.kind === "playing" &&
    activity.value.name === opened.value &&
    (untouched || made === played.value)
  );
});

/** Let the playhead go with the robot, also between the server's words. */
function follow(): void {
  const doing = activity.peek();
  const made = edited.peek();
  if (!doing?.duration_s || !made) return;
  const since = doing.phase === "playing" ? Math.min(1.5, Math.max(0, now() - statusAt.peek())) : 0;
  seek(Math.min(1, doing.fraction + since / doing.duration_s) * made.duration_s);
}

effect(() => {
  if (!following.value || screen.value !== "edit") return undefined;
  stopPreview();
  const timer = setInterval(follow, 50);
  return () => clearInterval(timer);
});

// ---- the ghost ------------------------------------------------------------------------------

/** The whole robot as it would be at a moment of the take; other joints stay as they are. */
function poseAt(made: Edited, time: number, robot: RobotModel, from: readonly number[]): number[] {
  const pose = [...from];
  const row = rowAt(made.times_s, made.joints_rad, time);
  made.names.forEach((name, column) => {
    const index = robot.joints.find((joint) => joint.name === name)?.index;
    if (index !== undefined) pose[index] = row[column] as number;
  });
  return pose;
}

effect(() => {
  const made = edited.value;
  const robot = whose.value;
  const time = playhead.value;
  const live = model.value;
  const shown = screen.value === "edit" && opened.value && made && robot;
  // A take of the same kind of robot is a ghost beside it; another robot is shown in its stead.
  const same = shown && live?.family === robot.family;
  ghost.value = same && !following.value ? poseAt(made, time, live, poses.at(now()) ?? live.rest_rad) : null;
  guest.value = shown && !same ? { model: robot, pose: poseAt(made, time, robot, robot.rest_rad) } : null;
});

let frame = 0;

export function preview(): void {
  const made = edited.peek();
  if (!made) return;
  stopPreview();
  previewing.value = true;
  const { from, to } = selection.peek();
  const begin = now() - (playhead.peek() > from && playhead.peek() < to - 0.1 ? playhead.peek() - from : 0);
  const run = (): void => {
    const time = from + (now() - begin);
    playhead.value = Math.min(time, to);
    if (time >= to) stopPreview();
    else frame = requestAnimationFrame(run);
  };
  frame = requestAnimationFrame(run);
}

export function stopPreview(): void {
  cancelAnimationFrame(frame);
  previewing.value = false;
}

effect(() => {
  if (screen.value !== "edit") stopPreview();
});

/** Whether the take has a newer version than the one that is shown, and nobody wanted this one. */
function stale(): boolean {
  const newest = versions.peek().at(-1) ?? 0;
  return !chosen && !history.peek().steps.length && newest > (edited.peek()?.version ?? newest);
}

effect(() => {
  const wanted = editing.value;
  if (screen.value === "edit" && wanted && (wanted !== opened.peek() || stale())) void openTake(wanted);
});

/** A step in words: the edit's title, and what was chosen. */
export function describe(made: Step): string {
  const { op, ...given } = made as { op: string } & Record<string, unknown>;
  const edit = edits.value.find(({ name }) => name === op);
  if (made.op === "trim")
    return made.auto ? TEXTS.edit.trimIdle : TEXTS.edit.step.trim(seconds(made.start_s ?? 0), seconds(made.end_s ?? 0));
  const said = Object.entries(given).map(([name, value]) => {
    const parameter = edit?.parameters.find((each) => each.name === name);
    if (value === true) return parameter?.title.toLowerCase() ?? name;
    if (typeof value === "number") return `${value} ${parameter?.unit ?? ""}`.trim();
    return `“${Array.isArray(value) ? value.join(", ") : String(value)}”`;
  });
  return [edit?.title ?? op, ...said].join(" · ");
}
