/** What was done, with undo and redo. Nothing is lost until something new is done. */

export interface History<Entry> {
  readonly done: readonly Entry[];
  readonly undone: readonly Entry[];
}

export const NOTHING_DONE: History<never> = { done: [], undone: [] };

/** Add an entry; of more than `max` entries the oldest are dropped. */
export function addEntry<Entry>(history: History<Entry>, entry: Entry, max = Infinity): History<Entry> {
  const done = [...history.done, entry];
  return { done: done.slice(Math.max(0, done.length - max)), undone: [] };
}

/** Replace the newest entry, as one drag does with each of its moves. */
export function replaceEntry<Entry>(history: History<Entry>, entry: Entry): History<Entry> {
  return { ...history, done: [...history.done.slice(0, -1), entry] };
}

/** Undo the newest entry, unless only `keep` entries are left. */
export function undoEntry<Entry>(history: History<Entry>, keep = 0): History<Entry> {
  const last = history.done.at(-1);
  if (last === undefined || history.done.length <= keep) return history;
  return { done: history.done.slice(0, -1), undone: [last, ...history.undone] };
}

export function redoEntry<Entry>(history: History<Entry>): History<Entry> {
  const [next, ...rest] = history.undone;
  return next === undefined ? history : { done: [...history.done, next], undone: rest };
}
