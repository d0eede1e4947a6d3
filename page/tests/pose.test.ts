import { describe, expect, it } from "vitest";
import { signal } from "@preact/signals";
import { bendShare, handOf, movedMiddle, poseAt, poseLine } from "../src/pose";
import { claim } from "../src/state/scene";
import type { Curves, RobotModel } from "../src/types";

const model = {
  joints: [
    { name: "a", index: 0 },
    { name: "b", index: 1 },
    { name: "c", index: 2 },
  ],
} as unknown as RobotModel;
const curves: Curves = {
  names: ["b", "elsewhere"],
  times_s: [0, 1, 2],
  joints_rad: [
    [0, 9],
    [1, 9],
    [0, 9],
  ],
};

describe("the middle between two hands", () => {
  it("moves as the hand that is dragged, because both move by the same", () => {
    const hands: [number, number, number][] = [
      [0.3, 0.2, 0.1],
      [0.3, -0.2, 0.3],
    ];
    const middle = movedMiddle(hands, 1, [0.4, -0.2, 0.2]);
    for (const [axis, wanted] of [0.4, 0, 0.1].entries()) expect(middle[axis]).toBeCloseTo(wanted);
  });
});

describe("a pose of the whole robot", () => {
  it("has the joints of the motion, and the others as they were", () => {
    expect(poseAt(curves, 0.5, model, [7, 7, 7])).toEqual([7, 0.5, 7]);
  });
  it("has angles that replace those of the motion", () => {
    expect(poseAt(curves, 0.5, model, [7, 7, 7], { b: 3, c: 4 })).toEqual([7, 3, 4]);
  });
  it("is one of a line with both ends of the motion", () => {
    expect(poseLine(curves, model, [0, 0, 0], 2)).toEqual({
      times_s: [0, 2],
      poses: [
        [0, 0, 0],
        [0, 0, 0],
      ],
    });
  });
});

describe("the bend of a path", () => {
  it("is whole where the hand is, and nothing at the ends", () => {
    expect([0, 2, 6].map((time) => bendShare(time, 2, 6))).toEqual([0, 1, 0]);
    expect(bendShare(1, 0, 6)).toBe(0);
  });
  it("is smooth where the hand is: its slope and curvature go on", () => {
    const [step, at] = [1e-3, 2];
    const slope = (time: number): number =>
      (bendShare(time + step, at, 6) - bendShare(time - step, at, 6)) / (2 * step);
    expect(slope(at - 2 * step)).toBeCloseTo(slope(at + 2 * step), 1);
    const curvature = (time: number): number => (slope(time + 5 * step) - slope(time - 5 * step)) / (10 * step);
    expect(curvature(at - 0.02)).toBeCloseTo(curvature(at + 0.02), 1);
  });
});

describe("a hand", () => {
  it("is that of an arm", () => {
    expect(["left_arm", "right_arm", "right_leg", "front_left_leg"].map(handOf)).toEqual(["left", "right", null, null]);
  });
});

describe("what several screens show in one place", () => {
  it("is removed only by the screen that has shown it", () => {
    const shown = signal<string | null>(null);
    const [one, other] = [claim(shown), claim(shown)];
    one("one");
    other(null);
    expect(shown.value).toBe("one");
    other("other");
    one(null);
    expect(shown.value).toBe("other");
    other(null);
    expect(shown.value).toBe(null);
  });
});
