import { Vector3 } from "three";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { hundredths } from "../src/format";
import { amount, bendOf, bent, movedTo, ofJoint, room, stepOf, warped } from "../src/keyframes";
import { endOf, reached } from "../src/scene/reach";
import { isPart, panned, share, showing, wheelFactor, within, zoomed } from "../src/state/span";
import type { Joint, LimbEnd, RobotModel } from "../src/types";

describe("times on the time line", () => {
  it("are in hundredths", () => {
    expect([0, 1.234, 59.996, 65.5, 180].map(hundredths)).toEqual([
      "0.00 s",
      "1.23 s",
      "1:00.00",
      "1:05.50",
      "3:00.00",
    ]);
  });
});

describe("the part of a take that is shown", () => {
  it("comes closer around a moment, which stays where it is seen", () => {
    const view = zoomed({ from: 0, to: 10 }, 10, 2, 4);
    expect(view).toEqual({ from: 2, to: 7 });
    expect(share(view, 4)).toBeCloseTo(0.4);
  });
  it("never leaves the take, and is never closer than a few samples", () => {
    expect(zoomed({ from: 8, to: 10 }, 10, 0.5, 10)).toEqual({ from: 6, to: 10 });
    expect(zoomed({ from: 0, to: 10 }, 10, 0.1, 5)).toEqual({ from: 0, to: 10 });
    const closest = zoomed({ from: 0, to: 10 }, 10, 1e9, 5);
    expect(closest.to - closest.from).toBeCloseTo(0.1);
    expect(within({ from: 8, to: 12 }, 5)).toEqual({ from: 1, to: 5 });
  });
  it("is moved, and follows a moment only where that is outside", () => {
    expect(panned({ from: 2, to: 4 }, 10, 100)).toEqual({ from: 8, to: 10 });
    const view = { from: 2, to: 4 };
    expect(showing(view, 10, 3)).toBe(view);
    expect(showing(view, 10, 7)).toEqual({ from: 6, to: 8 });
  });
  it("knows whether it is a part, and which way a wheel turns", () => {
    expect([isPart({ from: 0, to: 10 }, 10), isPart({ from: 0, to: 9 }, 10)]).toEqual([false, true]);
    expect(wheelFactor(-100)).toBeGreaterThan(1);
    expect(wheelFactor(100) * wheelFactor(-100)).toBeCloseTo(1);
  });
});

/** The same numbers as in tests/motion/test_motion_keyframe_edit.py. */
const PYTHON = [0.702639, 0.679924, 0.945216, 1.14074, 1.1, 0.913395, 0.403407, 0.416175];

describe("a keyframe that is dragged", () => {
  const times = Array.from({ length: 401 }, (_, index) => index / 100);
  const rows = times.map((time) => [0, 0.5 + 0.3 * Math.sin(2 * time)]);
  const limits = { lower_rad: -1.0472, upper_rad: 2.0944 };
  it("bends the curve as the server does", () => {
    const curve = bent(times, rows, 1, { start: 1.2, old: 2, at: 2.3, end: 3 }, 1.1, limits);
    const at = [1.2, 1.5, 1.8, 2.1, 2.3, 2.5, 2.8, 3].map((time) => curve[Math.round(100 * time)] as number);
    for (const [index, value] of PYTHON.entries()) expect(at[index]).toBeCloseTo(value, 3);
  });
  it("leaves what is further away, and passes through where it was put", () => {
    const curve = bent(times, rows, 1, { start: 1, old: 2, at: 2, end: 3 }, -0.5, limits);
    expect(curve[200]).toBeCloseTo(-0.5);
    for (const index of [0, 50, 100, 300, 400])
      expect(curve[index]).toBeCloseTo((rows[index] as number[])[1] as number);
  });
  it("does not leave the joint's limits", () => {
    const curve = bent(times, rows, 1, { start: 0, old: 2, at: 2, end: 4 }, 2.0944, limits);
    expect(Math.max(...curve)).toBeLessThanOrEqual(2.0944 + 1e-9);
  });
  it("goes from nothing to all and back, and time goes forwards", () => {
    const bend = { start: 1, old: 2, at: 2.9, end: 3 };
    expect([1, 2.9, 3].map((time) => amount(bend, time))).toEqual([0, 1, 0]);
    const passed = times.map((time) => warped(bend, time));
    expect(passed.every((time, index) => index === 0 || time >= (passed[index - 1] as number) - 1e-9)).toBe(true);
    expect(warped(bend, 2.9)).toBeCloseTo(2);
  });
  it("stays between its neighbours, and the first and last stay ends", () => {
    const all = [0, 1, 2, 4].map((time_s) => ({ joint: "a", time_s, value_rad: time_s }));
    const own = ofJoint([...all.toReversed(), { joint: "b", time_s: 3, value_rad: 0 }], "a");
    expect(own).toEqual(all);
    expect(room(own, 1, 4)).toEqual({ low: 0.03, high: 1.97 });
    expect(room(own, 0, 4)).toEqual({ low: 0, high: 0 });
    expect(room(own, 3, 4)).toEqual({ low: 4, high: 4 });
    expect(stepOf("a", bendOf(own, 1, 1.25, 4), 0.5)).toEqual({
      op: "keyframe",
      time_s: 1,
      to_s: 1.25,
      pose: { a: 0.5 },
      before_s: 1,
      after_s: 1,
    });
    expect(stepOf("a", bendOf(own, 1, 1, 4), 0.5)).not.toHaveProperty("to_s");
    expect(movedTo(all, all[1] as (typeof all)[0], 1.5, 9)[1]).toEqual({ joint: "a", time_s: 1.5, value_rad: 9 });
  });
});

/** An arm of three joints, 0.3 m and 0.3 m long, that turns about y, y and z. */
function arm(): { model: RobotModel; end: LimbEnd } {
  const joint = (index: number, parent: string, origin: [number, number, number], axis: [number, number, number]) =>
    ({
      index,
      name: `j${index}`,
      parent,
      link: `l${index}`,
      origin,
      rpy: [0, 0, 0],
      axis,
      lower_rad: -1.5,
      upper_rad: 1.5,
      taught: true,
      part: "arm",
    }) as Joint;
  const joints = [
    joint(0, "base", [0, 0, 1], [0, 0, 1]),
    joint(1, "l0", [0, 0, 0], [0, 1, 0]),
    joint(2, "l1", [0.3, 0, 0], [0, 1, 0]),
  ];
  const model = { base: "base", joints, fixed: [], rest_rad: [0, 0, 0] } as unknown as RobotModel;
  return { model, end: { link: "l2", at: [0.3, 0, 0], limb: "left_arm", joints: ["j0", "j1", "j2"] } };
}

describe("a hand that is dragged", () => {
  const { model, end } = arm();
  it("is where its joints bring it", () => {
    expect(endOf(model, end, [0, 0, 0]).toArray()).toEqual([0.6, 0, 1]);
    expect(endOf(model, end, [Math.PI / 2, 0, 0]).y).toBeCloseTo(0.6);
    expect(endOf(model, end, [0, -Math.PI / 2, 0]).z).toBeCloseTo(1.6);
  });
  it("reaches what can be reached, in one go", () => {
    const target = new Vector3(0.3, 0.25, 1.2);
    const pose = reached(model, end, [0, -0.3, 0.6], target);
    expect(endOf(model, end, pose).distanceTo(target)).toBeLessThan(1e-3);
  });
  it("goes as near as it can, with every joint within its limits", () => {
    const pose = reached(model, end, [0, -0.3, 0.6], new Vector3(-5, 3, 4));
    for (const angle of pose) expect(Math.abs(angle)).toBeLessThanOrEqual(1.5 + 1e-9);
    const far = reached(model, end, [0, -0.3, 0.6], new Vector3(3, 0, 1));
    expect(endOf(model, end, far).x).toBeGreaterThan(0.585);
  });
  it("leaves the joints that are not of the limb, and a joint at its stop is not thrown inside", () => {
    const pose = reached(model, { ...end, joints: ["j1", "j2"] }, [0.2, 0, 0.1], new Vector3(0.4, 0.1, 1.3));
    expect(pose[0]).toBe(0.2);
    expect(reached(model, end, [0, 1.51, 0.1], endOf(model, end, [0, 1.51, 0.1]))[1]).toBe(1.51);
  });
});

describe("edits that are not saved", () => {
  beforeEach(() => {
    vi.resetModules();
    const kept = new Map<string, string>();
    vi.stubGlobal("addEventListener", () => undefined);
    vi.stubGlobal("window", {
      localStorage: {
        getItem: (key: string) => kept.get(key) ?? null,
        setItem: (key: string, value: string) => void kept.set(key, value),
      },
    });
  });
  const steps = [{ op: "reverse" }] as const;
  it("are kept for each take, found again, and go with its name", async () => {
    const { keepDraft, moveDraft } = await import("../src/state/drafts");
    keepDraft("wave", { done: steps, undone: [] }, 2);
    moveDraft("wave", "greeting");
    vi.resetModules();
    const again = await import("../src/state/drafts");
    expect(again.adoptDraft("greeting")).toMatchObject({ steps, undone: [], version: 2 });
    expect([again.isUnsaved("greeting"), again.isUnsaved("wave")]).toEqual([true, false]);
    again.dropDraft("greeting");
    expect(again.drafts.value).toEqual({});
  });
  it("are nothing where nothing was done, and what is no draft is left out", async () => {
    const { drafts, keepDraft, newest, parsed } = await import("../src/state/drafts");
    keepDraft("wave", { done: [], undone: [] }, 1);
    expect(drafts.value).toEqual({});
    expect(parsed('{"a":{"steps":[{"op":1}],"undone":[],"version":1,"at":1},"b":3}')).toEqual({});
    for (const broken of [null, "", "[]", "null", "{", "7"]) expect(parsed(broken)).toEqual({});
    const draft = (at: number) => ({ steps, undone: [], version: 1, at, take: "wave", tab: "t" });
    expect(Object.keys(newest({ a: draft(1), b: draft(3), c: draft(2) }, 2))).toEqual(["b", "c"]);
  });
  it("of two tabs do not overwrite each other, and the draft of a closed tab is taken over", async () => {
    const first = await import("../src/state/drafts");
    vi.resetModules();
    const second = await import("../src/state/drafts"); // another tab: the same storage, another name
    expect(first.TAB).not.toBe(second.TAB);
    const other = [{ op: "mirror" }] as const;
    first.keepDraft("wave", { done: steps, undone: [] }, 1);
    second.keepDraft("wave", { done: other, undone: [] }, 1);
    second.keepDraft("bow", { done: [], undone: [] }, 1);
    vi.resetModules();
    const third = await import("../src/state/drafts");
    expect(third.isUnsaved("wave")).toBe(true);
    expect(third.isUnsavedHere("wave")).toBe(false);
    const mine = third.adoptDraft("wave");
    expect(mine?.tab).toBe(third.TAB);
    const left = third.otherDraft("wave", { done: mine?.steps ?? [], undone: mine?.undone ?? [] });
    expect([mine?.steps, left?.steps].map((each) => each?.[0]?.op).sort()).toEqual(["mirror", "reverse"]);
    // A tab that is done, and one that never did anything, take nothing from the others.
    third.keepDraft("wave", { done: [], undone: [] }, 1);
    expect(third.isUnsavedHere("wave")).toBe(false);
    expect(third.otherDraft("wave", { done: [], undone: [] })?.steps).toEqual(left?.steps);
    expect(first.otherDraft("wave", { done: steps, undone: [] })).toBeNull(); // it has not read the storage since
  });
  it("of an older page are read by the names of their takes", async () => {
    const { parsed } = await import("../src/state/drafts");
    const old = JSON.stringify({ wave: { steps, undone: [], version: 3, at: 1 } });
    expect(Object.values(parsed(old))).toEqual([{ steps, undone: [], version: 3, at: 1, take: "wave", tab: "" }]);
  });
  it("are known to be lost with the page where the browser keeps nothing", async () => {
    const { keepDraft, keeps } = await import("../src/state/drafts");
    vi.stubGlobal("window", {});
    keepDraft("wave", { done: steps, undone: [] }, 1);
    expect(keeps.value).toBe(false);
  });
});
