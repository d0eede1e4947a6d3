/** Plays cues: after a lead-in, one after the other, and never after a stop. */

import { effect, signal } from "@preact/signals";
import { api } from "./api";
import { type Cue, followingCue, hasCue, MAX_CUES, parsedCues, toggledCue } from "./cues";
import { motion } from "./format";
import { library } from "./state/library";
import { playback } from "./state/playback";
import { robot } from "./state/robot";
import { scene } from "./state/scene";
import { ui } from "./state/ui";
import { recall, remember } from "./storage";
import { TEXTS } from "./texts";

const T = TEXTS.cues;
/** What has come so far has ended by itself, and not by a stop. */
const TO_ITS_END = 0.97;
export const LEAD_TIMES_S = [0, 1, 2, 3, 5, 10] as const;

export const cues = signal<readonly Cue[]>(parsedCues(recall("localStorage", "cues")));
effect(() => {
  remember("localStorage", "cues", JSON.stringify(cues.value));
});
/** Seconds that are counted before a cue plays. */
export const leadTimeS = signal(Number(recall("localStorage", "lead")) || 0);
effect(() => {
  remember("localStorage", "lead", String(leadTimeS.value));
});
/** The cue that was played last. */
export const lastCue = signal<Cue | null>(null);

export function cueName(cue: Cue): string {
  return cue.kind === "preset" ? motion(cue.name) : cue.name;
}

/** Add a cue or take it off; says why where that is not possible. */
export function toggle(cue: Cue): void {
  if (!hasCue(cues.peek(), cue) && cues.peek().length >= MAX_CUES) ui.notify(T.full, "bad");
  else cues.value = toggledCue(cues.peek(), cue);
}

/** Whether the robot that is connected can play a cue now. */
export function isThere(cue: Cue): boolean {
  if (cue.kind === "take") return robot.can("stream") && library.takes.value.some(({ name }) => name === cue.name);
  if (cue.kind === "preset")
    return robot.can("presets") && (robot.actions.value?.presets.some(({ name }) => name === cue.name) ?? false);
  return robot.actions.value?.taught.some(({ name }) => name === cue.name) ?? false;
}

function begin(cue: Cue): Promise<unknown> {
  if (cue.kind === "take") return playback.playTake(cue.name);
  if (cue.kind === "preset") {
    const id = robot.actions.peek()?.presets.find(({ name }) => name === cue.name)?.id;
    return ui.attempt(async () => id !== undefined && (await api.perform(id)));
  }
  const how = robot.can("tempo") ? { speed: playback.speed.value, loop: playback.loop.value } : {};
  return ui.attempt(() => api.play(cue.name, how));
}

/** Count the lead-in; false where a stop has ended it. */
async function counted(cue: Cue): Promise<boolean> {
  scene.countdownText.value = T.soon(cueName(cue));
  for (let left = leadTimeS.peek(); left > 0; left -= 1) {
    scene.countdown.value = left;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (scene.countdown.peek() === null) return false;
  }
  scene.countdown.value = null;
  return true;
}

async function play(cue: Cue): Promise<void> {
  if (scene.countdown.peek() !== null) return;
  try {
    if (!(await counted(cue))) return;
  } finally {
    scene.countdownText.value = "";
  }
  lastCue.value = cue;
  await begin(cue);
}

/** Play the cue at a place now; while something else plays, once that has ended by itself. */
export function fire(place: number): void {
  const cue = cues.peek()[place];
  if (!cue || !robot.ready.peek() || !isThere(cue)) return;
  if (!robot.moving.peek()) void play(cue);
  else if (robot.activity.peek()?.kind !== "teaching") {
    stopsBefore = robot.status.peek()?.stops ?? 0;
    playback.upNext.value = playback.upNext.peek() === place ? null : place;
  }
}

/** The place of the cue that plays next. */
export function nextPlace(): number | null {
  return playback.upNext.value ?? followingCue(cues.value, lastCue.value);
}

export function fireNext(): void {
  const place = nextPlace();
  if (place !== null && place !== playback.upNext.peek()) fire(place);
}

export function fireAgain(): void {
  const last = lastCue.peek();
  const place = last ? cues.peek().findIndex((each) => each.kind === last.kind && each.name === last.name) : -1;
  if (place >= 0) fire(place);
}

/** The last known progress of what plays, and the number of stops before the next cue was queued. */
let lastKnown = { fraction: 0, performing: false };
let stopsBefore = 0;
effect(() => {
  const doing = robot.activity.value;
  if (doing && doing.kind !== "idle") {
    lastKnown = { fraction: doing.fraction, performing: doing.kind === "performing" };
    return;
  }
  const place = playback.upNext.peek();
  const cue = place === null ? undefined : cues.peek()[place];
  playback.upNext.value = null;
  if (!cue) return;
  // Any browser may have stopped it, which the server counts; or the remote has, so that it ended earlier.
  const stopped = robot.status.peek()?.stops !== stopsBefore;
  if (!stopped && (lastKnown.performing || lastKnown.fraction >= TO_ITS_END)) void play(cue);
  else ui.notify(T.dropped(cueName(cue)));
});
