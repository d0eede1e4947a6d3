/** What the page knows, as signals: a part that reads one is drawn anew when it changes. */

import { computed, effect, signal } from "@preact/signals";
import { ApiError, api } from "./api";
import { foreign, sentence } from "./format";
import { PoseStream } from "./interpolate";
import { recall, remember } from "./storage";
import { TEXTS } from "./texts";
import { worded } from "./wording";
import type {
  Actions,
  Connection,
  EventNow,
  FormatFacts,
  LimbEnd,
  Limbs,
  Person,
  RobotModel,
  StageNow,
  Status,
  Step,
  Take,
} from "./types";

export type Screen = "robot" | "teach" | "library" | "edit" | "cues" | "show";
export const SCREENS: Screen[] = ["robot", "teach", "library", "edit", "cues", "show"];

// ---- the server and the robot ---------------------------------------------------------------

/** The connection to the server; it is silent when no message came for a second. */
export const link = signal<"opening" | "open" | "silent" | "closed" | "full">("opening");
/** Whether what the page shows, if anything, is not live. */
export const stale = computed(() => link.value !== "open" && link.value !== "opening");
/** Why the server has no place for this page, as the server says it. */
export const full = signal<{ message: string; remedy: string }>({ message: "", remedy: "" });
export const status = signal<Status | null>(null);
/** When the status came, on the page's clock in seconds. */
export const statusAt = signal(0);
/** The robot that is connected; where none is, the last one, or the usual one. */
export const model = signal<RobotModel | null>(null);
export const poses = new PoseStream();

export const now = (): number => performance.now() / 1000;

export const connection = computed(() => status.value?.connection ?? null);
export const activity = computed(() => status.value?.activity ?? null);
export const moving = computed(() => (activity.value?.kind ?? "idle") !== "idle");
export const connected = computed(() => link.value === "open" && connection.value?.state === "connected");
/** Who this browser is to the others: its number, and what its link allows. */
export const me = signal<{ number: number; role: Person["role"] } | null>(null);
/** Everybody who is here, this browser included. */
export const people = signal<Person[]>([]);

/** Whether this browser may command: it does already, or nobody does and nothing forbids it. */
export const mayCommand = computed(() => {
  const commander = status.value?.commander;
  const role = me.value?.role;
  if (link.value !== "open" || role === "watch") return false;
  if (!commander || commander.you) return true;
  return commander.number === null && (!commander.locked || role === "teacher");
});
export const ready = computed(() => connected.value && mayCommand.value);

export function can(ability: string): boolean {
  return status.value?.abilities.includes(ability) ?? false;
}

/** Whether the robot could do something at another level, which is connected to anew. */
export function canElsewhere(ability: string): boolean {
  return status.value?.elsewhere.includes(ability) ?? false;
}

/** The stage that the server conducts, and the show that is under way there. */
export const stageNow = signal<StageNow | null>(null);
/** When that came, on the page's clock in seconds. */
export const stageAt = signal(0);
/** Whether robots of a stage move, or are about to. */
export const showRuns = computed(() => {
  const run = stageNow.value?.run;
  return link.value === "open" && !!run && run.state !== "waiting";
});

/** Whether what is being taught is not recorded for the moment. */
export const paused = computed(() => status.value?.paused ?? false);
/** In how many seconds limbs that were taught return by themselves, when the status came; null where they do not. */
export const untilReturn = computed(() => (connected.value ? (status.value?.return_in_s ?? null) : null));

/** What the robot is taught by. */
export const limbs = computed<Limbs>(() => model.value?.limbs ?? "arms");

let asking = false;

/** Learn to know the robot that is connected. */
export async function loadModel(): Promise<void> {
  if (asking) return;
  asking = true;
  try {
    model.value = await api.joints();
  } catch (error) {
    report(error);
  } finally {
    asking = false;
  }
}

const known = new Map<string, Promise<RobotModel>>();

/** Return a robot by its build, asked for once. */
export function modelOf(build: string): Promise<RobotModel> {
  const found = known.get(build) ?? api.joints(build);
  known.set(build, found);
  found.catch(() => known.delete(build));
  return found;
}

/** Why a take cannot be played by the robot that is connected: it is of another kind. Empty where it can. */
export function stranger(take: { family: string | null; title: string }): string {
  const there = status.value;
  return there?.family && foreign(take.family, there.family)
    ? TEXTS.foreign(take.title, there.title ?? there.family)
    : "";
}

// ---- events ---------------------------------------------------------------------------------

/** What has happened lately, the oldest first; the server keeps it. */
export const events = signal<EventNow[]>([]);
/** Events that this page alone does not show any more: a page that only watches acknowledges nothing for others. */
const hidden = signal<ReadonlySet<number>>(new Set());
/** Safety notices: each is shown until a person has acknowledged it. */
export const safety = computed(() =>
  events.value.filter((each) => each.safety && !each.acknowledged && !hidden.value.has(each.id)),
);
/** Why the last playback ended early; until something else begins. */
export const cutShort = signal("");

/** Note a new event, or one that has changed. */
export function noteEvent(event: EventNow): void {
  const known = events.peek().some(({ id }) => id === event.id);
  events.value = known
    ? events.peek().map((each) => (each.id === event.id ? event : each))
    : [...events.peek(), event].slice(-MAX_EVENTS);
  if (!known && event.kind === "ended") cutShort.value = sentence(worded(event.text));
}

const MAX_EVENTS = 200;

effect(() => {
  if (moving.value) cutShort.value = "";
});

export async function acknowledge(event: EventNow): Promise<void> {
  if (me.peek()?.role === "watch") hidden.value = new Set([...hidden.peek(), event.id]);
  else await attempt(() => api.acknowledge(event.id));
}

// ---- motions --------------------------------------------------------------------------------

export const actions = signal<Actions | null>(null);
export const takes = signal<Take[]>([]);
/** Whether the list of takes has come. */
export const takesKnown = signal(false);
/** The file formats of takes; the first is the native one. */
export const formats = signal<FormatFacts[]>([]);

/** The address at which a robot was last reached. */
export const reached = signal<string | null>(null);
let address: string | null = null;
effect(() => {
  const { url = null, state = "off" } = connection.value ?? {};
  if (state === "connected") reached.value = url;
  // Another address is another robot: what is on the former says nothing of it.
  if (url !== address) actions.value = null;
  address = url;
});

/** How it stands with the robot; one that never answered is not lost. */
export function stateWords(there: Connection | null): string {
  if (stale.value) return TEXTS.link.notLive;
  const state = there?.state ?? "off";
  return state === "lost" && there?.url !== reached.value ? TEXTS.connection.unreached : TEXTS.connection[state];
}

export async function loadActions(): Promise<void> {
  // A robot that keeps no actions has no list of them.
  if (!connected.peek() || !can("list")) return;
  const asked = address;
  try {
    const told = await api.actions();
    if (asked === address) actions.value = told;
  } catch (error) {
    report(error);
  }
}

async function loadFormats(): Promise<void> {
  if (!formats.peek().length) formats.value = (await api.formats()).formats;
}

/** So many takes are asked for at a time. */
const TAKES_PAGE = 200;
let pages: { takes: Take[]; tag: string }[] = [];
let takesAsked: Promise<void> | null = null;
let takesAgain = false;

/** Ask for the takes page by page; a page that has not changed is not sent again. */
async function askTakes(): Promise<void> {
  for (let page = 0; ; page += 1) {
    const told = await api.takes(page * TAKES_PAGE, TAKES_PAGE, pages[page]?.tag ?? "");
    const last = (page + 1) * TAKES_PAGE >= told.total;
    const fewer = last && pages.length > page + 1;
    if (!told.same) pages[page] = { takes: told.takes, tag: told.tag };
    if (last) pages = pages.slice(0, page + 1);
    if (!told.same || fewer) takes.value = pages.flatMap((each) => each.takes);
    if (last) {
      takesKnown.value = true;
      return;
    }
  }
}

export async function loadTakes(): Promise<void> {
  void attempt(loadFormats);
  takesAgain = takesAsked !== null;
  if (takesAsked) return takesAsked;
  takesAsked = attempt(async () => {
    do {
      takesAgain = false;
      await askTakes();
    } while (takesAgain);
  }).then(() => {
    takesAsked = null;
  });
  return takesAsked;
}

/** How the next action is played. */
export const speed = signal(1);
export const loop = signal(false);
/** Where a cue waits until what plays has ended by itself: its place among the cues. A stop forgets it. */
export const upNext = signal<number | null>(null);

// ---- the page itself ------------------------------------------------------------------------

function screenOf(hash: string): Screen {
  const name = hash.replace(/^#\/?/, "").split("/")[0];
  return SCREENS.find((each) => each === name) ?? "robot";
}

function takeOf(hash: string): string | null {
  const name = /^#\/edit\/(.+)$/.exec(hash)?.[1];
  try {
    return name ? decodeURIComponent(name) : null;
  } catch {
    return null; // an address that somebody has typed, or cut off
  }
}

export const screen = signal<Screen>(screenOf(location.hash));
export const editing = signal<string | null>(takeOf(location.hash));

addEventListener("hashchange", () => {
  screen.value = screenOf(location.hash);
  if (screen.value === "edit") editing.value = takeOf(location.hash) ?? editing.peek();
});

export function go(to: Screen, take?: string): void {
  location.hash = take ? `#/${to}/${encodeURIComponent(take)}` : `#/${to}`;
}

function kept<Value extends string>(key: string, values: readonly Value[], first: Value) {
  const stored = recall("localStorage", key) as Value | null;
  const made = signal<Value>(stored && values.includes(stored) ? stored : first);
  effect(() => void remember("localStorage", key, made.value));
  return made;
}

export const THEMES = ["auto", "dark", "light"] as const;
export const QUALITIES = ["auto", "high", "low"] as const;
export const theme = kept("theme", THEMES, "auto");
export const quality = kept("quality", QUALITIES, "auto");
/** Whether the browser draws without a graphics card. */
export const bare = signal(false);
effect(() => {
  document.documentElement.toggleAttribute("data-bare", bare.value);
});
const tipsReadFor = {
  arms: kept("tips", ["no", "yes"] as const, "no"),
  legs: kept("tips.legs", ["no", "yes"] as const, "no"),
};
/** Whether the tips for this kind of robot were read: legs are another matter than arms. */
export const tipsRead = {
  get value() {
    return tipsReadFor[limbs.value].value;
  },
  set value(read: "no" | "yes") {
    tipsReadFor[limbs.value].value = read;
  },
};

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(systemDark.matches);
systemDark.addEventListener("change", (event) => {
  systemIsDark.value = event.matches;
});
export const dark = computed(() => (theme.value === "auto" ? systemIsDark.value : theme.value === "dark"));
effect(() => {
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
});

// ---- what the 3D view shows besides the robot -----------------------------------------------

export const ghost = signal<number[] | null>(null);
/** Another robot than the live one, and its pose: the view shows it instead. */
export const guest = signal<{ model: RobotModel; pose: number[] } | null>(null);
/** The cast of a show, side by side: the view shows it instead of the robot. */
export const company = signal<{ name: string; model: RobotModel }[] | null>(null);
export const companyPoses = signal<number[][]>([]);
/** Hands or feet of the ghost that can be dragged, and what comes of it: angles by the names of joints. */
export const ends = signal<{
  ends: LimbEnd[];
  onMove: (pose: Record<string, number>) => void;
  onDone: () => void;
} | null>(null);
export const pointed = signal<string | null>(null);
export const onTurn = signal<((joint: string | null, value_rad: number) => void) | null>(null);
export const countdown = signal<number | null>(null);
/** What the countdown is for; empty before a teaching. */
export const countdownFor = signal("");

// ---- words for the person -------------------------------------------------------------------

export interface Notice {
  id: number;
  tone: "good" | "bad" | "plain";
  message: string;
  remedy: string;
  /** Notices of one group are shown together. */
  group: string;
}

/** Many files may be added at once, and each has its notice. */
const MAX_NOTICES = 20;
export const notices = signal<Notice[]>([]);
let count = 0;

export function say(message: string, tone: Notice["tone"] = "plain", remedy = "", group = ""): void {
  count += 1;
  const notice = { id: count, tone, message: sentence(message), remedy: sentence(remedy), group };
  notices.value = [...notices.value.slice(1 - MAX_NOTICES), notice];
  setTimeout(() => dismiss(notice.id), tone === "bad" ? 10000 : 4000);
}

export function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

export function report(error: unknown): void {
  if (error instanceof ApiError) say(error.message, "bad", error.remedy);
  else say(String(error), "bad");
}

/** Do something that may be refused; returns whether it went well. */
export async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    report(error);
    return false;
  }
}

const NAME_KEY = "name";

/** Give this browser the name that others see, and remember it. */
export async function setName(name: string): Promise<void> {
  if (await attempt(() => api.callMe(name))) remember("localStorage", NAME_KEY, name.trim());
}

/** Say again which name this browser was given earlier. */
export function sayName(known: string | null): void {
  const name = recall("localStorage", NAME_KEY);
  if (name && name !== known) void attempt(() => api.callMe(name));
}

export interface Question {
  title: string;
  message: string;
  confirm: string;
  danger?: boolean;
  /** Where a text is asked for: its label and first value; a free one is no name. */
  field?: { label: string; value: string; free?: boolean };
  /** Where more is asked: what to show. It stays open while `then` answers false. */
  content?: () => preact.JSX.Element;
  /** Done at a yes. Where a text is asked for, a refusal is shown beside it and it can be mended. */
  then: (text: string) => unknown;
}

export const question = signal<Question | null>(null);

/** Play a take of this computer. Where a check only warns, or it is of another build, the person decides. */
export function playTake(
  take: string,
  steps: readonly Step[] = [],
  version?: number,
  yes: { force?: boolean; mapped?: boolean; imported?: boolean; speed?: number } = {},
): Promise<boolean> {
  return attempt(async () => {
    try {
      await api.playTake(take, steps, version, { speed: speed.value, loop: loop.value, ...yes });
    } catch (error) {
      const { title, message, confirm } = TEXTS.warned;
      const ask = (more: typeof yes, said: string): void => {
        question.value = {
          title,
          message: said,
          confirm,
          danger: true,
          then: () => playTake(take, steps, version, { ...yes, ...more }),
        };
      };
      if (!(error instanceof ApiError)) throw error;
      if (error.kind === "warned-motion") ask({ force: true }, sentence(message(error.message)));
      else if (error.kind === "other-build") ask({ mapped: true }, sentence(error.message));
      else if (error.kind === "imported-motion")
        ask(
          { imported: true, speed: Math.min(speed.value, 0.5) },
          `${sentence(error.message)} ${TEXTS.importedMotion}`,
        );
      else throw error;
    }
  });
}

export { TEXTS };
