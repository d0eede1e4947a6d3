/** Edits that were not saved yet, kept by the browser for each take, over a reload and a change of take. */

import { signal } from "@preact/signals";
import type { History } from "./history";
import { recall, remember } from "./storage";

export interface Draft extends History {
  /** The version of the take that was edited. */
  readonly version: number;
  /** When it was kept, in ms since 1970. */
  readonly at: number;
}

const KEY = "drafts";
const MOST = 40;

function isDraft(value: unknown): value is Draft {
  const { steps, undone, version, at } = (value ?? {}) as Partial<Draft>;
  const isSteps = (list: unknown): boolean =>
    Array.isArray(list) && list.every((step) => typeof (step as { op?: unknown } | null)?.op === "string");
  return isSteps(steps) && isSteps(undone) && typeof version === "number" && typeof at === "number";
}

/** Read what was kept; what is not a draft is left out. */
export function parsed(text: string | null): Record<string, Draft> {
  try {
    const found: unknown = JSON.parse(text ?? "{}");
    if (typeof found !== "object" || found === null || Array.isArray(found)) return {};
    return Object.fromEntries(Object.entries(found).filter(([, value]) => isDraft(value)));
  } catch {
    return {};
  }
}

/** Return the newest drafts, as many as are kept. */
export function newest(all: Record<string, Draft>, most = MOST): Record<string, Draft> {
  const order = Object.entries(all).sort(([, a], [, b]) => b.at - a.at);
  return Object.fromEntries(order.slice(0, most));
}

/** The drafts, by the names of their takes. */
export const drafts = signal<Record<string, Draft>>(parsed(recall("localStorage", KEY)));
/** Whether the browser keeps them: where it refuses, they are lost with the page. */
export const keeps = signal(true);

addEventListener("storage", (event) => {
  if (event.key === `rote.${KEY}`) drafts.value = parsed(event.newValue);
});

function write(all: Record<string, Draft>): void {
  drafts.value = newest(all);
  keeps.value = remember("localStorage", KEY, JSON.stringify(drafts.value));
}

/** Keep the edits of a take; without any steps there is nothing to keep. */
export function keepDraft(take: string, { steps, undone }: History, version: number): void {
  if (!steps.length && !undone.length) {
    dropDraft(take);
    return;
  }
  const known = drafts.peek()[take];
  if (known?.steps === steps && known.undone === undone && known.version === version) return;
  write({ ...drafts.peek(), [take]: { steps, undone, version, at: Date.now() } });
}

export function dropDraft(take: string): void {
  if (!(take in drafts.peek())) return;
  const { [take]: _, ...others } = drafts.peek();
  write(others);
}

/** A take has another name: its edits go with it. */
export function moveDraft(old: string, name: string): void {
  const { [old]: draft, ...others } = drafts.peek();
  if (draft) write({ ...others, [name]: draft });
}

/** Whether a take has edits that are not saved. */
export function isUnsaved(take: string): boolean {
  return (drafts.value[take]?.steps.length ?? 0) > 0;
}
