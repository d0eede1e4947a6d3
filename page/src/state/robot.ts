/** The robot that is connected: its state, its model, its actions, and what it can do. */

import { computed, effect, signal } from "@preact/signals";
import { api } from "../api";
import { foreign } from "../format";
import { PoseStream } from "../interpolate";
import { TEXTS } from "../texts";
import type { Actions, Connection, Limbs, RobotModel, Status } from "../types";
import { connection as server } from "./connection";
import { persisted, ui } from "./ui";

const status = signal<Status | null>(null);
/** When the status was received, on the page's clock in seconds. */
const statusAt = signal(0);
/** The robot that is connected; without one the last one, or the usual one. */
const model = signal<RobotModel | null>(null);
const poses = new PoseStream();

const connection = computed(() => status.value?.connection ?? null);
const activity = computed(() => status.value?.activity ?? null);
const moving = computed(() => (activity.value?.kind ?? "idle") !== "idle");
const connected = computed(() => server.link.value === "open" && connection.value?.state === "connected");

/** Whether this browser may command: it does already, or no browser does and nothing forbids it. */
const mayCommand = computed(() => {
  const commander = status.value?.commander;
  const role = server.me.value?.role;
  if (server.link.value !== "open" || role === "watch") return false;
  if (!commander || commander.you) return true;
  return commander.number === null && (!commander.locked || role === "teacher");
});
const ready = computed(() => connected.value && mayCommand.value);

function can(ability: string): boolean {
  return status.value?.abilities.includes(ability) ?? false;
}

/** Whether the robot has an ability at another level, which needs a new connection. */
function canElsewhere(ability: string): boolean {
  return status.value?.elsewhere.includes(ability) ?? false;
}

/** Whether the recording of a teaching is paused. */
const paused = computed(() => status.value?.paused ?? false);
/** Seconds, from when the status was received, until taught limbs return by themselves; null if they do not. */
const returnIn_s = computed(() => (connected.value ? (status.value?.return_in_s ?? null) : null));
/** The limbs that are taught. */
const limbs = computed<Limbs>(() => model.value?.limbs ?? "arms");

let isLoading = false;

/** Load the model of the robot that is connected. */
async function loadModel(): Promise<void> {
  if (isLoading) return;
  isLoading = true;
  try {
    model.value = await api.joints();
  } catch (error) {
    ui.report(error);
  } finally {
    isLoading = false;
  }
}

const models = new Map<string, Promise<RobotModel>>();

/** Return the model of a build; it is requested once. */
function modelOf(build: string): Promise<RobotModel> {
  const found = models.get(build) ?? api.joints(build);
  models.set(build, found);
  found.catch(() => models.delete(build));
  return found;
}

/** Return why the robot that is connected cannot play a take: it is of another family. Empty if it can. */
function explainForeign(take: { family: string | null; title: string }): string {
  const current = status.value;
  return current?.family && foreign(take.family, current.family)
    ? TEXTS.foreign(take.title, current.title ?? current.family)
    : "";
}

// ---- the address --------------------------------------------------------------------------------

/** The address at which a robot last answered. */
const lastUrl = signal<string | null>(null);
const actions = signal<Actions | null>(null);
let address: string | null = null;
effect(() => {
  const { url = null, state = "off" } = connection.value ?? {};
  if (state === "connected") lastUrl.value = url;
  // Another address is another robot, with other actions.
  if (url !== address) actions.value = null;
  address = url;
});

/** Describe the state of the connection to the robot; a robot that never answered is not lost. */
function describeState(current: Connection | null): string {
  if (server.stale.value) return TEXTS.link.notLive;
  const state = current?.state ?? "off";
  return state === "lost" && current?.url !== lastUrl.value ? TEXTS.connection.unreached : TEXTS.connection[state];
}

async function loadActions(): Promise<void> {
  // A robot that keeps no actions has no list of them.
  if (!connected.peek() || !can("list")) return;
  const requested = address;
  try {
    const list = await api.actions();
    if (requested === address) actions.value = list;
  } catch (error) {
    ui.report(error);
  }
}

const tipsReadFor = {
  arms: persisted("tips", ["no", "yes"] as const, "no"),
  legs: persisted("tips.legs", ["no", "yes"] as const, "no"),
};
/** Whether the tips for this kind of robot were read: those for legs differ from those for arms. */
const tipsRead = {
  get value() {
    return tipsReadFor[limbs.value].value;
  },
  set value(read: "no" | "yes") {
    tipsReadFor[limbs.value].value = read;
  },
};

export const robot = {
  status,
  statusAt,
  model,
  poses,
  connection,
  activity,
  moving,
  connected,
  mayCommand,
  ready,
  can,
  canElsewhere,
  paused,
  returnIn_s,
  limbs,
  loadModel,
  modelOf,
  explainForeign,
  lastUrl,
  describeState,
  actions,
  loadActions,
  tipsRead,
};
