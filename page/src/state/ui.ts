/** The page itself: its screen and colours, and what it asks or reports to the operator. */

import { computed, effect, type Signal, signal } from "@preact/signals";
import { ApiError } from "../api";
import { sentence } from "../format";
import { recall, remember } from "../storage";

export type Screen = "robot" | "teach" | "library" | "edit" | "cues" | "show";
export const SCREENS: Screen[] = ["robot", "teach", "library", "edit", "cues", "show"];
export const THEMES = ["auto", "dark", "light"] as const;
export const QUALITIES = ["auto", "high", "low"] as const;

export interface Notice {
  id: number;
  tone: "good" | "bad" | "plain";
  message: string;
  remedy: string;
  /** Notices of one group are shown together. */
  group: string;
}

export interface Question {
  title: string;
  message: string;
  confirm: string;
  danger?: boolean;
  /** A text to enter: its label and first value; a free one is no name. */
  field?: { label: string; value: string; free?: boolean };
  /** More to show in the dialog. It stays open while `then` returns false. */
  content?: () => preact.JSX.Element;
  /** Called on confirmation. If a text is entered, an error is shown beside it and the text can be corrected. */
  then: (text: string) => unknown;
}

// ---- the screen ---------------------------------------------------------------------------------

function screenOf(hash: string): Screen {
  const name = hash.replace(/^#\/?/, "").split("/")[0];
  return SCREENS.find((each) => each === name) ?? "robot";
}

function takeOf(hash: string): string | null {
  const name = /^#\/edit\/(.+)$/.exec(hash)?.[1];
  try {
    return name ? decodeURIComponent(name) : null;
  } catch {
    return null; // an address that was typed, or cut off
  }
}

const screen = signal<Screen>(screenOf(location.hash));
/** The take that the address names, for the editor. */
const take = signal<string | null>(takeOf(location.hash));

addEventListener("hashchange", () => {
  screen.value = screenOf(location.hash);
  if (screen.value === "edit") take.value = takeOf(location.hash) ?? take.peek();
});

function go(to: Screen, name?: string): void {
  location.hash = name ? `#/${to}/${encodeURIComponent(name)}` : `#/${to}`;
}

// ---- settings -----------------------------------------------------------------------------------

/** Return a signal whose value the browser keeps; a stored value that is not one of `values` is ignored. */
export function persisted<Value extends string>(key: string, values: readonly Value[], first: Value): Signal<Value> {
  const stored = recall("localStorage", key) as Value | null;
  const made = signal<Value>(stored && values.includes(stored) ? stored : first);
  effect(() => void remember("localStorage", key, made.value));
  return made;
}

const theme = persisted("theme", THEMES, "auto");
const quality = persisted("quality", QUALITIES, "auto");
/** Whether the processor draws, because the browser has no graphics card. */
const softwareRendering = signal(false);
effect(() => {
  document.documentElement.toggleAttribute("data-bare", softwareRendering.value);
});

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const systemIsDark = signal(systemDark.matches);
systemDark.addEventListener("change", (event) => {
  systemIsDark.value = event.matches;
});
const dark = computed(() => (theme.value === "auto" ? systemIsDark.value : theme.value === "dark"));
effect(() => {
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
});

// ---- notices and questions ----------------------------------------------------------------------

/** Many files may be added at once, and each has its notice. */
const MAX_NOTICES = 20;
const notices = signal<Notice[]>([]);
let count = 0;

function notify(message: string, tone: Notice["tone"] = "plain", remedy = "", group = ""): void {
  count += 1;
  const notice = { id: count, tone, message: sentence(message), remedy: sentence(remedy), group };
  notices.value = [...notices.value.slice(1 - MAX_NOTICES), notice];
  setTimeout(() => dismiss(notice.id), tone === "bad" ? 10000 : 4000);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

function report(error: unknown): void {
  if (error instanceof ApiError) notify(error.message, "bad", error.remedy);
  else notify(String(error), "bad");
}

/** Run a request that may be refused and report its error; return whether it succeeded. */
async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    report(error);
    return false;
  }
}

const question = signal<Question | null>(null);

export const ui = {
  screen,
  take,
  go,
  theme,
  dark,
  quality,
  softwareRendering,
  notices,
  notify,
  dismiss,
  report,
  attempt,
  question,
};
