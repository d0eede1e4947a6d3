/**
 * Edits that were not saved yet, kept by the browser for each take, over a reload and a change of take. Each tab
 * writes only its own drafts, so two tabs that edit the same take do not overwrite each other.
 */

import { signal } from "@preact/signals";
import type { Step } from "../types";
import type { History } from "./history";
import { recall, remember } from "../storage";

export interface Draft {
  readonly steps: readonly Step[];
  readonly undone: readonly Step[];
  readonly take: string;
  /** The tab that keeps it. */
  readonly tab: string;
  /** The version of the take that was edited. */
  readonly version: number;
  /** When it was kept, in ms since 1970. */
  readonly at: number;
}

const KEY = "drafts";
const TAB_KEY = "tab";
const MOST = 40;

/**
 * The name of this tab, the same after a reload. It is in the tab's storage only while the page is away: a tab that is
 * duplicated copies that storage, and must not write under the same name.
 */
export const TAB = recall("sessionStorage", TAB_KEY) || Math.random().toString(36).slice(2);
remember("sessionStorage", TAB_KEY, "");
addEventListener("pagehide", () => remember("sessionStorage", TAB_KEY, TAB));
addEventListener("pageshow", () => remember("sessionStorage", TAB_KEY, ""));

const keyOf = (take: string, tab = TAB): string => `${tab}/${take}`;

function asDraft(key: string, value: unknown): Draft | null {
  // Older pages kept one draft for each take, by its name.
  const { steps, undone, version, at, take = key, tab = "" } = (value ?? {}) as Partial<Draft>;
  const isSteps = (list: unknown): list is Draft["steps"] =>
    Array.isArray(list) && list.every((step) => typeof (step as { op?: unknown } | null)?.op === "string");
  const named = typeof take === "string" && typeof tab === "string";
  return named && isSteps(steps) && isSteps(undone) && typeof version === "number" && typeof at === "number"
    ? { steps, undone, version, at, take, tab }
    : null;
}

/** Read what was kept; what is not a draft is left out. */
export function parsed(text: string | null): Record<string, Draft> {
  try {
    const found: unknown = JSON.parse(text || "{}");
    if (typeof found !== "object" || found === null || Array.isArray(found)) return {};
    const all = Object.entries(found).map(([key, value]) => asDraft(key, value));
    return Object.fromEntries(all.filter((each) => each !== null).map((each) => [keyOf(each.take, each.tab), each]));
  } catch {
    return {};
  }
}

/** Return the newest drafts, as many as are kept. */
export function newest(all: Record<string, Draft>, most = MOST): Record<string, Draft> {
  const order = Object.entries(all).sort(([, a], [, b]) => b.at - a.at);
  return Object.fromEntries(order.slice(0, most));
}

/** The drafts of all tabs. */
export const drafts = signal<Record<string, Draft>>(parsed(recall("localStorage", KEY)));
/** Whether the browser keeps them: where it refuses, they are lost with the page. */
export const keeps = signal(true);

addEventListener("storage", (event) => {
  if (event.key === `rote.${KEY}`) drafts.value = parsed(event.newValue);
});

/** Change what is stored, as it is now: another tab may have written since this one read. */
function write(change: (all: Record<string, Draft>) => Record<string, Draft>): void {
  drafts.value = newest(change(keeps.peek() ? parsed(recall("localStorage", KEY)) : drafts.peek()));
  keeps.value = remember("localStorage", KEY, JSON.stringify(drafts.value));
}

function ofTake(take: string): Draft[] {
  return Object.values(drafts.value)
    .filter((each) => each.take === take)
    .sort((a, b) => b.at - a.at);
}

const isSame = ({ steps, undone }: Draft, history: History<Step>): boolean =>
  JSON.stringify([steps, undone]) === JSON.stringify([history.done, history.undone]);

/** Keep the edits of a take; without any steps there is nothing to keep. */
export function keepDraft(take: string, history: History<Step>, version: number): void {
  const { done: steps, undone } = history;
  if (!steps.length && !undone.length) {
    dropDraft(take);
    return;
  }
  const known = drafts.peek()[keyOf(take)];
  if (known?.version === version && isSame(known, history)) return;
  write((all) => ({ ...all, [keyOf(take)]: { steps, undone, version, at: Date.now(), take, tab: TAB } }));
}

/**
 * Return the draft of this tab, or take over the newest of another tab, which may be closed; null if there is none.
 * A tab that is still open keeps its own again as soon as it sees this.
 */
export function adoptDraft(take: string): Draft | null {
  const own = drafts.peek()[keyOf(take)];
  const [other] = ofTake(take);
  if (own || !other) return own ?? null;
  const mine = { ...other, tab: TAB };
  write(({ [keyOf(take, other.tab)]: _, ...others }) => ({ ...others, [keyOf(take)]: mine }));
  return mine;
}

/** Return the newest edits of a take by another tab that are not these; null if there are none. */
export function otherDraft(take: string, mine: History<Step>): Draft | null {
  return ofTake(take).find((each) => each.tab !== TAB && each.steps.length && !isSame(each, mine)) ?? null;
}

/** Forget the draft of a tab, of this one by default. */
export function dropDraft(take: string, tab = TAB): void {
  if (keyOf(take, tab) in drafts.peek()) write(({ [keyOf(take, tab)]: _, ...others }) => others);
}

/** A take has another name: its edits go with it. */
export function moveDraft(old: string, name: string): void {
  if (!ofTake(old).length) return;
  write((all) =>
    Object.fromEntries(
      Object.values(all).map((each) => {
        const take = each.take === old ? name : each.take;
        return [keyOf(take, each.tab), { ...each, take }];
      }),
    ),
  );
}

/** Whether a take has edits that are not saved, by any tab. */
export function isUnsaved(take: string): boolean {
  return ofTake(take).some(({ steps }) => steps.length > 0);
}

/** Whether this tab has edits of a take that are not saved. */
export function isUnsavedHere(take: string): boolean {
  return (drafts.value[keyOf(take)]?.steps.length ?? 0) > 0;
}
