/** The socket to the server: states in, stop and signs of life out; opened again when lost. */

import { ApiError, api, identity, lastBeat } from "./api";
import { host, type LiveSocket } from "./host";
import { Liveness } from "./liveness";
import { now } from "./state/clock";
import { connection } from "./state/connection";
import { eventLog } from "./state/event-log";
import { library } from "./state/library";
import { playback } from "./state/playback";
import { robot } from "./state/robot";
import { scene } from "./state/scene";
import { stage } from "./state/stage";
import { ui } from "./state/ui";
import { signal } from "@preact/signals";
import { recall, remember } from "./storage";
import { TEXTS } from "./texts";
import { worded } from "./wording";
import type { Message, Stopped } from "./types";

/** Often enough that a page held up for a second by its own drawing is not taken for lost. */
const ALIVE_MS = 400;
const RETRY_MS = [300, 700, 1500, 3000];
/** How long the socket may take to answer a stop before it is requested over HTTP too. */
const PATIENCE_MS = 400;
/** A stop that is not answered within this time has failed. */
const STOP_MS = 1500;
const STOPPING_MS = 3000;
const CHECK_MS = 100;

let socket: LiveSocket | null = null;
let tries = 0;
let answered: ((answer: Stopped) => void) | null = null;
/** The result of our own stop. The server sends it to all pages as a notice too, which this page does not repeat. */
let known = "";
/** Whether a stop has failed and must be sent again as soon as the server answers. */
let stopOwed = false;
const liveness = new Liveness();

/** The result of the last stop; shown beside the button for a while. */
export const stopReport = signal<{ message: string; at: number } | null>(null);

/** A stop that failed: shown until it is dismissed. `confirmed` is the answer that came later, if any. */
export const stopFailure = signal<{ why: string; confirmed: string } | null>(null);

/** Whether a stop is under way, from its click to its effect. */
export const stopping = signal(false);

export function open(): void {
  const made = host.openSocket(recall("sessionStorage", "client"));
  socket = made;
  liveness.wait(performance.now());
  made.onmessage = (event) => {
    if (socket === made) receive(JSON.parse(String(event.data)) as Message);
  };
  made.onclose = () => lose(made, "closed");
}

/** How long to wait before a full server is asked again. */
const FULL_MS = 5000;
/** The socket for which the server had no place. */
let refusedSocket: LiveSocket | null = null;

/** Give up a socket, and open another one soon. */
function lose(lost: LiveSocket, state: "closed" | "silent"): void {
  if (socket !== lost) return;
  socket = null;
  lost.close();
  const isFull = lost === refusedSocket;
  if (!isFull) notLive(state);
  setTimeout(open, isFull ? FULL_MS : RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
  tries += 1;
}

/** Show nothing old as if it were now, and begin nothing. */
function notLive(state: "closed" | "silent"): void {
  connection.link.value = state;
  robot.poses.clear();
  cancelCountdown();
}

/** The server answers again after a silence: a stop that failed is sent first. */
function goLive(): void {
  connection.link.value = "open";
  if (!stopOwed) return;
  socket?.send('{"type":"stop"}');
}

/** Return for how long no message has come. */
export function silentSeconds(): number {
  return liveness.silentS(performance.now());
}

setInterval(() => {
  const state = liveness.check(performance.now());
  if (state === "silent" && connection.link.peek() === "open") notLive("silent");
  // One that cannot even be opened, or a network that is gone, says nothing by itself.
  if (state === "dead" && socket) lose(socket, "silent");
}, CHECK_MS);

function receive(message: Message): void {
  liveness.noteMessage(performance.now());
  if (connection.link.peek() === "silent" && message.type !== "hello" && message.type !== "full") goLive();
  switch (message.type) {
    case "hello":
      identity.client = message.client;
      lastBeat.time_s = "";
      connection.me.value = { number: message.number, role: message.role };
      connection.sendName(message.name);
      remember("sessionStorage", "client", message.client);
      tries = 0;
      goLive();
      void begin();
      break;
    case "beat":
      lastBeat.time_s = String(message.time_s);
      break;
    case "state":
      // Not every robot tells where its joints are.
      if (message.joints_rad.length)
        robot.poses.push({ time_s: message.time_s, joints_rad: message.joints_rad }, now());
      break;
    case "status": {
      const { type: _, ...rest } = message;
      const before = robot.status.peek();
      const was = before?.connection;
      robot.statusAt.value = now();
      robot.status.value = rest;
      if (rest.activity.kind === "idle") stopping.value = false;
      if (rest.build !== null && robot.model.peek() && rest.build !== robot.model.peek()?.build) void robot.loadModel();
      if (was?.state !== rest.connection.state || was.url !== rest.connection.url) {
        if (rest.connection.state !== "connected") robot.poses.clear();
        void robot.loadActions();
      } else if (before && before.actions_changes !== rest.actions_changes) void robot.loadActions();
      if (before && before.takes_changes !== rest.takes_changes) void library.load();
      break;
    }
    case "stage": {
      const { type: _, ...rest } = message;
      stage.receivedAt.value = now();
      stage.current.value = rest;
      break;
    }
    case "full":
      connection.refusal.value = { message: message.message, remedy: message.remedy };
      connection.link.value = "full";
      refusedSocket = socket;
      break;
    case "events":
      eventLog.events.value = message.events;
      break;
    case "event":
      eventLog.note(message.event);
      break;
    case "people":
      connection.people.value = message.people;
      break;
    case "stopped":
      known = message.message;
      answered?.(message);
      answered = null;
      settleStop(message);
      break;
    case "notice":
      // A safety notice is shown until it is acknowledged, and not twice.
      if (message.message !== known && !eventLog.safety.peek().some(({ id }) => id === message.event))
        ui.notify(worded(message.text));
      known = "";
      break;
  }
}

async function begin(): Promise<void> {
  if (!robot.model.peek()) await robot.loadModel();
  void robot.loadActions();
  void library.load();
}

setInterval(() => {
  if (socket?.readyState === WebSocket.OPEN) socket.send('{"type":"alive"}');
}, ALIVE_MS);

/** Return what a stop did, in the words of its answer. */
function wordsOf({ message, stopped }: Stopped): string {
  return message || TEXTS.stop.fallback[stopped];
}

/** A stop was answered, in time or after it was shown as failed. */
function settleStop(answer: Stopped): void {
  stopOwed = false; // the server has it, and sends it again by itself while the robot does not confirm it
  const failed = stopFailure.peek();
  if (failed && !failed.confirmed && answer.confirmed) stopFailure.value = { ...failed, confirmed: wordsOf(answer) };
}

/**
 * Send a stop by the socket, which waits behind nothing, and over HTTP if the socket brings no answer; return the
 * answer. Raises if there is none within `STOP_MS`.
 */
async function requestStop(): Promise<Stopped> {
  const late = AbortSignal.timeout(STOP_MS);
  if (socket?.readyState !== WebSocket.OPEN) return api.stop(late);
  const answer = new Promise<Stopped>((resolve, reject) => {
    answered = resolve;
    late.onabort = () => reject(late.reason);
  });
  socket.send('{"type":"stop"}');
  const wait = connection.link.peek() === "open" ? PATIENCE_MS : 0;
  const soon = await Promise.race([answer, new Promise<null>((none) => setTimeout(() => none(null), wait))]);
  // The socket may still answer before the request does.
  return soon ?? Promise.any([answer, api.stop(late)]);
}

function cancelCountdown(): void {
  if (scene.countdown.peek() === null) return;
  scene.countdown.value = null;
  ui.notify(TEXTS.countdownCancelled);
}

let presses = 0;
/** The newest press that was confirmed: one that failed before it is of no interest any more. */
let confirmedPress = 0;

/** Stop the robot, and show what that did. A stop that fails is shown until dismissed, and sent again. */
export async function stop(): Promise<void> {
  presses += 1;
  const mine = presses;
  playback.upNext.value = null;
  cancelCountdown();
  stopping.value = true;
  setTimeout(() => (stopping.value = false), STOPPING_MS);
  stopReport.value = { message: TEXTS.stop.sent, at: now() };
  try {
    const answer = await requestStop();
    settleStop(answer);
    if (!answer.confirmed) return failStop(mine, wordsOf(answer));
    confirmedPress = Math.max(confirmedPress, mine);
    if (mine === presses) stopReport.value = { message: wordsOf(answer), at: now() };
  } catch (error) {
    const [first] = error instanceof AggregateError ? error.errors : [error];
    const refused = first instanceof ApiError && first.kind !== "network";
    // A server that says why has the stop, and goes on sending it.
    stopOwed = !refused;
    failStop(mine, refused ? first.message : "");
  }
}

function failStop(press: number, why: string): void {
  if (press < confirmedPress) return;
  stopReport.value = null;
  stopFailure.value = { why, confirmed: "" };
}
