import { describe, expect, it } from "vitest";
import { folded, inDegrees, worstLast } from "../src/checks";
import { COLOURS, look } from "../src/curves";

describe("what a check says", () => {
  it("is told in degrees", () => {
    expect(inDegrees("left_elbow_joint is at 1.49 rad; it reaches -0.52 to 1.40 rad")).toBe("left_elbow_joint is at 85.4°; it reaches \u221229.8° to 80.2°");
    expect(inDegrees("waist moves at 9.1 rad/s, allowed 3.0 rad/s")).toBe("waist moves at 521°/s, allowed 172°/s");
  });
  it("keeps units that would leave a number without its own", () => {
    const words = "waist would need 80 rad/s2; about 50 can be followed";
    expect(inDegrees(words)).toBe(words);
    expect(inDegrees("g1-29 has 3 radios")).toBe("g1-29 has 3 radios");
  });
  it("is parted from a long list of names, not from a short one", () => {
    const { words, names } = folded("the track leaves 5 joints of g1-29 alone: a, b, c, d, e");
    expect(words).toBe("the track leaves 5 joints of g1-29 alone");
    expect(names).toEqual(["a", "b", "c", "d", "e"]);
    for (const short of ["it leaves 2 alone: a, b", "nothing to part"]) expect(folded(short)).toEqual({ words: short, names: [] });
  });
  it("is painted with errors on top", () => {
    const marks = (["error", "note", "warning", "error"] as const).map((severity, id) => ({ severity, id }));
    expect(worstLast(marks).map(({ id }) => id)).toEqual([1, 2, 0, 3]);
  });
});

describe("a joint's curve", () => {
  const arm = ["shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_roll", "wrist_pitch", "wrist_yaw"];
  const looks = (names: string[]): Set<string> => new Set(names.map((name) => JSON.stringify(look(name))));
  it("looks like no other of both arms and the waist's turn", () => {
    const names = ["left", "right"].flatMap((side) => arm.map((part) => `${side}_${part}_joint`));
    expect(looks([...names, "waist_yaw_joint"]).size).toBe(15);
  });
  it("looks like no other of a dog's legs", () => {
    const names = ["FR", "FL", "RR", "RL"].flatMap((leg) => ["hip", "thigh", "calf"].map((part) => `${leg}_${part}_joint`));
    expect(looks(names).size).toBe(12);
  });
  it("has one of the colours there are, also where nobody knows the joint", () => {
    for (const name of ["thumb_joint", "Left", "x", ""]) {
      expect(look(name).colour).toBeGreaterThanOrEqual(0);
      expect(look(name).colour).toBeLessThan(COLOURS);
    }
  });
});
