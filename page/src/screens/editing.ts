/** The take being edited: what was done to it, what came of it, and the moment shown. */

import { computed, effect, signal } from "@preact/signals";
import { api } from "../api";
import { foreign, seconds } from "../format";
import { done, type History, NOTHING_DONE, redo, undo } from "../history";
import { rowAt } from "../interpolate";
import type { Selection } from "../parts/chart";
import { editing, ghost, loadTakes, model, now, poses, report, say, screen } from "../store";
import { TEXTS } from "../texts";
import type { Edited, Step } from "../types";

export const history = signal<History>(NOTHING_DONE);
export const edited = signal<Edited | null>(null);
export const selection = signal<Selection>({ from: 0, to: 0 });
export const playhead = signal(0);
export const previewing = signal(false);
export const working = signal(false);
export const opened = signal<string | null>(null);
/** Whether the take is of a robot that is neither shown nor played here. */
export const isForeign = computed(() => {
  const known = model.value?.joints.map(({ name }) => name);
  return known !== undefined && edited.value !== null && foreign(edited.value.names, known);
});

let asked = 0;

/** Ask what the steps make of the take; the answer to the newest question counts. */
async function apply(take: string, next: History): Promise<boolean> {
  asked += 1;
  const mine = asked;
  working.value = true;
  try {
    const made = await api.edit(take, next.steps);
    if (mine !== asked) return false;
    history.value = next;
    edited.value = made;
    selection.value = { from: 0, to: made.duration_s };
    playhead.value = Math.min(playhead.peek(), made.duration_s);
    return true;
  } catch (error) {
    if (mine === asked) report(error);
    return false;
  } finally {
    if (mine === asked) working.value = false;
  }
}

export async function openTake(take: string): Promise<void> {
  stopPreview();
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

export async function save(name: string): Promise<void> {
  const take = opened.peek();
  if (!take) return;
  try {
    const entry = await api.saveEdit(take, history.peek().steps, name);
    say(TEXTS.edit.saved(entry.name), "good");
    void loadTakes();
  } catch (error) {
    report(error);
  }
}

// ---- the ghost ------------------------------------------------------------------------------

/** The whole robot as it would be at a moment of the take; other joints stay as they are. */
function poseAt(made: Edited, time: number): number[] {
  const known = model.peek();
  const pose = [...(poses.at(now()) ?? known?.rest_rad ?? [])];
  const row = rowAt(made.times_s, made.joints_rad, time + (made.times_s[0] ?? 0));
  made.names.forEach((name, column) => {
    const index = known?.joints.find((joint) => joint.name === name)?.index;
    if (index !== undefined) pose[index] = row[column] as number;
  });
  return pose;
}

effect(() => {
  const made = edited.value;
  const time = playhead.value;
  ghost.value = made && screen.value === "edit" && opened.value && !isForeign.value ? poseAt(made, time) : null;
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

effect(() => {
  const wanted = editing.value;
  if (screen.value === "edit" && wanted && wanted !== opened.peek()) void openTake(wanted);
});

/** A step in words. */
export function describe(made: Step): string {
  const words = TEXTS.edit.step;
  switch (made.op) {
    case "trim":
      return words.trim(seconds(made.start_s), seconds(made.end_s));
    case "smooth":
      return words.smooth(made.cutoff_hz);
    case "speed":
      return words.speed(made.factor);
    case "cross_fade":
      return words.cross_fade(made.other, made.overlap_s);
    case "concatenate":
      return words.concatenate(made.other);
    case "close_loop":
      return words.close_loop(made.seconds);
    default:
      return words[made.op];
  }
}
