import { signal } from "@preact/signals";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { createTimeline, type TimelineOptions } from "../src/state/timeline";

let frames: (() => void)[] = [];
let clock_ms = 0;

/** Let the time pass that a frame takes, and draw it. */
function drawFrame(passed_ms: number): void {
  clock_ms += passed_ms;
  for (const draw of frames.splice(0)) draw();
}

beforeEach(() => {
  frames = [];
  clock_ms = 0;
  vi.stubGlobal("performance", { now: () => clock_ms });
  vi.stubGlobal("requestAnimationFrame", (draw: () => void) => frames.push(draw));
  vi.stubGlobal("cancelAnimationFrame", () => {
    frames = [];
  });
});
afterEach(() => vi.unstubAllGlobals());

const shown = signal(true);
const make = (more: Partial<TimelineOptions<string, number | null>> = {}) =>
  createTimeline<string, number | null>({
    nothingPicked: null,
    end_s: () => 4,
    previewSpan: () => ({ from: 1, to: 3 }),
    restartWithin_s: 0.1,
    isUnsaved: () => false,
    isShown: () => shown.value,
    ...more,
  });

describe("the playhead", () => {
  it("stays within the time line", () => {
    const timeline = make();
    timeline.seek(9);
    expect(timeline.playhead.value).toBe(4);
    timeline.seek(-1);
    expect(timeline.playhead.value).toBe(0);
  });
  it("ends a preview when it is moved by hand, and does not when the page moves it", () => {
    const timeline = make();
    timeline.preview();
    timeline.moveTo(2);
    expect(timeline.previewing.value).toBe(true);
    timeline.seek(2);
    expect(timeline.previewing.value).toBe(false);
    drawFrame(500);
    expect(timeline.playhead.value).toBe(2);
  });
});

describe("a preview", () => {
  it("goes from the beginning of the selection to its end, and ends there", () => {
    const times: number[] = [];
    const ended = vi.fn();
    const timeline = make({ onFrame: (time) => times.push(time), onPreviewEnd: ended });
    timeline.preview();
    ended.mockClear();
    drawFrame(500);
    expect(timeline.playhead.value).toBeCloseTo(1.5);
    drawFrame(2000);
    expect(timeline.playhead.value).toBe(3);
    expect(timeline.previewing.value).toBe(false);
    expect(times).toEqual([1.5, 3.5]);
    expect(ended).toHaveBeenCalledOnce();
  });
  it("goes on from a playhead within the selection, and starts again near its end", () => {
    const timeline = make();
    timeline.seek(2);
    timeline.preview();
    drawFrame(100);
    expect(timeline.playhead.value).toBeCloseTo(2.1);
    timeline.seek(2.95);
    timeline.preview();
    drawFrame(100);
    expect(timeline.playhead.value).toBeCloseTo(1.1);
  });
  it("does not begin without something to preview", () => {
    const timeline = make({ previewSpan: () => null });
    timeline.preview();
    expect(timeline.previewing.value).toBe(false);
  });
  it("ends when its screen is left", () => {
    const timeline = make();
    timeline.preview();
    shown.value = false;
    expect(timeline.previewing.value).toBe(false);
    shown.value = true;
  });
});

describe("the history of a time line", () => {
  it("undoes and redoes, clears the selection, and keeps the document as it was opened", () => {
    const timeline = make({ keep: 1, max: 3 });
    timeline.reset({ done: ["opened"], undone: [] });
    expect([timeline.canUndo.value, timeline.canRedo.value]).toEqual([false, false]);
    timeline.add("first");
    timeline.picked.value = 7;
    timeline.undo();
    expect(timeline.history.value).toEqual({ done: ["opened"], undone: ["first"] });
    expect(timeline.picked.value).toBeNull();
    timeline.undo();
    expect(timeline.history.value.done).toEqual(["opened"]);
    timeline.redo();
    timeline.replace("dragged");
    timeline.add("second");
    timeline.add("third");
    expect(timeline.history.value).toEqual({ done: ["dragged", "second", "third"], undone: [] });
  });
  it("starts undo at the newest history and leaves it to the owner to adopt the result", () => {
    const adopt = vi.fn();
    const timeline = make({ adopt, newestHistory: () => ({ done: ["a", "pending"], undone: [] }) });
    timeline.undo();
    expect(adopt).toHaveBeenCalledWith({ done: ["a"], undone: ["pending"] });
    expect(timeline.history.value.done).toEqual([]);
  });
  it("forgets everything on a reset", () => {
    const timeline = make();
    timeline.add("a");
    timeline.seek(2);
    timeline.reset();
    expect([timeline.history.value.done, timeline.playhead.value]).toEqual([[], 0]);
  });
});
