/** A document on a time line: history, playhead, preview and selection, the same for a take and for a show. */

import { computed, effect, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { now } from "./clock";
import { addEntry, type History, NOTHING_DONE, redoEntry, replaceEntry, undoEntry } from "./history";
import type { Span } from "./span";

export interface TimelineOptions<Entry, Picked> {
  /** The selection of an empty time line. */
  nothingPicked: Picked;
  /** How many of the oldest entries cannot be undone: 1 if the first entry is the document as it was opened. */
  keep?: number;
  /** The largest number of entries; older ones are forgotten. */
  max?: number;
  /** The end of the time line, in seconds. */
  end_s: () => number;
  /** The part to preview, in seconds; null if there is nothing to preview. */
  previewSpan: () => Span | null;
  /** A playhead that is nearer to the end of that part than this, in seconds, starts at its beginning again. */
  restartWithin_s: number;
  /** Whether there are changes that are not saved. */
  isUnsaved: () => boolean;
  /** Whether the screen of this time line is open: leaving it ends the preview. */
  isShown: () => boolean;
  /** Called with the time of every previewed frame; it may lie just after the end. */
  onFrame?: (time_s: number) => void;
  onPreviewEnd?: () => void;
  /** Called with the history that an undo or redo would make; it is adopted at once by default. */
  adopt?: (history: History<Entry>) => void;
  /** The history that undo and redo start from; the current one by default. */
  newestHistory?: () => History<Entry>;
}

export interface Timeline<Entry, Picked> {
  readonly history: Signal<History<Entry>>;
  readonly canUndo: ReadonlySignal<boolean>;
  readonly canRedo: ReadonlySignal<boolean>;
  readonly unsaved: ReadonlySignal<boolean>;
  /** The moment shown, in seconds. */
  readonly playhead: Signal<number>;
  readonly previewing: Signal<boolean>;
  readonly picked: Signal<Picked>;
  /** Whether a request is under way that the controls wait for. */
  readonly working: Signal<boolean>;
  /** Start over with these entries, at the beginning and with nothing selected. */
  reset(history?: History<Entry>): void;
  add(entry: Entry): void;
  replace(entry: Entry): void;
  undo(): void;
  redo(): void;
  /** Show a moment and end the preview; times outside the time line are clamped. */
  seek(time_s: number): void;
  /** Like `seek`, but a preview goes on. */
  moveTo(time_s: number): void;
  preview(): void;
  stopPreview(): void;
}

export function createTimeline<Entry, Picked>(options: TimelineOptions<Entry, Picked>): Timeline<Entry, Picked> {
  const { keep = 0, max = Infinity, nothingPicked } = options;
  const history = signal<History<Entry>>(NOTHING_DONE);
  const playhead = signal(0);
  const previewing = signal(false);
  const picked = signal(nothingPicked);
  const working = signal(false);
  const newestHistory = options.newestHistory ?? (() => history.peek());
  let frame = 0;

  const adopt =
    options.adopt ??
    ((next: History<Entry>) => {
      if (next === history.peek()) return;
      history.value = next;
      picked.value = nothingPicked;
    });

  function stopPreview(): void {
    cancelAnimationFrame(frame);
    previewing.value = false;
    options.onPreviewEnd?.();
  }

  function moveTo(time_s: number): void {
    playhead.value = Math.min(Math.max(time_s, 0), options.end_s());
  }

  function preview(): void {
    const span = options.previewSpan();
    if (!span) return;
    stopPreview();
    const { from, to } = span;
    const isInside = playhead.peek() > from && playhead.peek() < to - options.restartWithin_s;
    const first = isInside ? playhead.peek() : from;
    const start = now();
    previewing.value = true;
    playhead.value = first;
    const step = (): void => {
      const time = first + now() - start;
      playhead.value = Math.min(time, to);
      options.onFrame?.(time);
      if (time >= to) stopPreview();
      else frame = requestAnimationFrame(step);
    };
    frame = requestAnimationFrame(step);
  }

  effect(() => {
    if (!options.isShown()) stopPreview();
  });

  return {
    history,
    canUndo: computed(() => history.value.done.length > keep),
    canRedo: computed(() => history.value.undone.length > 0),
    unsaved: computed(options.isUnsaved),
    playhead,
    previewing,
    picked,
    working,
    reset(next = NOTHING_DONE) {
      stopPreview();
      history.value = next;
      picked.value = nothingPicked;
      playhead.value = 0;
    },
    add: (entry) => {
      history.value = addEntry(history.peek(), entry, max);
    },
    replace: (entry) => {
      history.value = replaceEntry(history.peek(), entry);
    },
    undo: () => adopt(undoEntry(newestHistory(), keep)),
    redo: () => adopt(redoEntry(newestHistory())),
    seek: (time_s) => {
      stopPreview();
      moveTo(time_s);
    },
    moveTo,
    preview,
    stopPreview,
  };
}
