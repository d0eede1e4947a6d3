import { describe, expect, it } from "vitest";
import { worstLast } from "../src/checks";
import { COLOURS, curveStyle } from "../src/curves";

describe("what a check says", () => {
  it("is painted with errors on top", () => {
    const marks = (["error", "note", "warning", "error"] as const).map((severity, id) => ({ severity, id }));
    expect(worstLast(marks).map(({ id }) => id)).toEqual([1, 2, 0, 3]);
  });
});

describe("a joint's curve", () => {
  const arm = ["shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw"];
  const styles = (names: string[]): Set<string> => new Set(names.map((name) => JSON.stringify(curveStyle(name))));
  it("looks like no other of both arms and the waist's turn", () => {
    const names = ["left", "right"].flatMap((side) => arm.map((part) => `${side}_${part}_joint`));
    expect(styles([...names, "waist_yaw_joint"]).size).toBe(15);
  });
  it("looks like no other of a dog's legs", () => {
    const names = ["FR", "FL", "RR", "RL"].flatMap((leg) =>
      ["hip", "thigh", "calf"].map((part) => `${leg}_${part}_joint`),
    );
    expect(styles(names).size).toBe(12);
  });
  it("has one of the colours there are, also where nobody knows the joint", () => {
    for (const name of ["thumb_joint", "Left", "x", ""]) {
      expect(curveStyle(name).colour).toBeGreaterThanOrEqual(0);
      expect(curveStyle(name).colour).toBeLessThan(COLOURS);
    }
  });
});
