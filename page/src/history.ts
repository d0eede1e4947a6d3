/** What was done to a take, with undo and redo. Nothing is lost until something new is done. */

import type { Step } from "./types";

export interface History {
  readonly steps: readonly Step[];
  readonly undone: readonly Step[];
}

export const NOTHING_DONE: History = { steps: [], undone: [] };

export function done(history: History, step: Step): History {
  return { steps: [...history.steps, step], undone: [] };
}

export function undo(history: History): History {
  const last = history.steps.at(-1);
  if (!last) return history;
  return { steps: history.steps.slice(0, -1), undone: [last, ...history.undone] };
}

export function redo(history: History): History {
  const [next, ...rest] = history.undone;
  return next ? { steps: [...history.steps, next], undone: rest } : history;
}
