/** The socket to the server: states in, stop and signs of life out; opened again when lost. */

import { api, identity } from "./api";
import {
  countdown,
  link,
  loadActions,
  loadModel,
  loadTakes,
  me,
  model,
  notices,
  now,
  people,
  poses,
  say,
  sayName,
  soft,
  stageAt,
  stageNow,
  status,
  statusAt,
  upNext,
} from "./store";
import { signal } from "@preact/signals";
import { recall, remember } from "./storage";
import { TEXTS } from "./texts";
import { worded } from "./wording";
import type { Message } from "./types";

/** Often enough that a page held up for a second by its own drawing is not taken for lost. */
const ALIVE_MS = 400;
const RETRY_MS = [300, 700, 1500, 3000];
/** How long the socket may take to answer a stop before it is asked for in the other way. */
const PATIENCE_MS = 400;
const STOPPING_MS = 3000;

let socket: WebSocket | null = null;
let tries = 0;
let answered: ((message: string) => void) | null = null;
/** What we were told a stop did; everybody is told it as news too, and we know it already. */
let known = "";

/** What the last stop did; shown beside the button. */
export const stopReport = signal<{ message: string; at: number; good: boolean } | null>(null);

/** Whether a stop is under way, from its click to its effect. */
export const stopping = signal(false);

export function open(): void {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const old = recall("sessionStorage", "client");
  const made = new WebSocket(`${scheme}://${location.host}/api/live${old ? `?client=${encodeURIComponent(old)}` : ""}`);
  socket = made;
  made.onmessage = (event) => receive(JSON.parse(String(event.data)) as Message);
  made.onclose = () => {
    if (socket !== made) return;
    socket = null;
    link.value = "closed";
    poses.clear();
    setTimeout(open, RETRY_MS[Math.min(tries, RETRY_MS.length - 1)]);
    tries += 1;
  };
}

function receive(message: Message): void {
  switch (message.type) {
    case "hello":
      identity.client = message.client;
      me.value = { number: message.number, role: message.role };
      sayName(message.name);
      remember("sessionStorage", "client", message.client);
      tries = 0;
      link.value = "open";
      void begin();
      break;
    case "state":
      // Not every robot tells where its joints are.
      if (message.joints_rad.length) poses.push({ time_s: message.time_s, joints_rad: message.joints_rad }, now());
      if (soft.peek() !== message.soft) soft.value = message.soft;
      break;
    case "status": {
      const { type: _, ...rest } = message;
      const was = status.peek()?.connection;
      statusAt.value = now();
      status.value = rest;
      if (rest.activity.kind === "idle") stopping.value = false;
      if (rest.build !== null && model.peek() && rest.build !== model.peek()?.build) void loadModel();
      if (was?.state !== rest.connection.state || was.url !== rest.connection.url) {
        if (rest.connection.state !== "connected") poses.clear();
        void loadActions();
      }
      break;
    }
    case "stage": {
      const { type: _, ...rest } = message;
      stageAt.value = now();
      stageNow.value = rest;
      break;
    }
    case "people":
      people.value = message.people;
      break;
    case "stopped":
      known = message.message;
      answered?.(message.message || TEXTS.stop.fallback[message.stopped]);
      answered = null;
      break;
    case "notice":
      if (message.message !== known) say(worded(message.text));
      known = "";
      break;
  }
}

async function begin(): Promise<void> {
  if (!model.peek()) await loadModel();
  void loadActions();
  void loadTakes();
}

setInterval(() => {
  if (socket?.readyState === WebSocket.OPEN) socket.send('{"type":"alive"}');
}, ALIVE_MS);

/** Ask by the socket, which waits behind nothing; by a request where that brings no answer. */
async function ask(): Promise<string> {
  if (socket?.readyState === WebSocket.OPEN) {
    const heard = new Promise<string>((resolve) => {
      answered = resolve;
      setTimeout(() => resolve(""), PATIENCE_MS);
    });
    socket.send('{"type":"stop"}');
    const message = await heard;
    answered = null;
    if (message) return message;
  }
  const { stopped, message } = await api.stop();
  return message || TEXTS.stop.fallback[stopped];
}

/** Stop the robot, and say what that did. */
export async function stop(): Promise<void> {
  upNext.value = null;
  if (countdown.peek() !== null) {
    countdown.value = null;
    say(TEXTS.countdownCancelled);
  }
  stopping.value = true;
  setTimeout(() => (stopping.value = false), STOPPING_MS);
  stopReport.value = { message: TEXTS.stop.sent, at: now(), good: true };
  try {
    stopReport.value = { message: await ask(), at: now(), good: true };
  } catch {
    stopReport.value = { message: TEXTS.stop.failed, at: now(), good: false };
    notices.value = notices.value.slice(0, 0);
  }
}
