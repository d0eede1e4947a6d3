import { describe, expect, it } from "vitest";
import { extent, movers, ranges, thinned, ticks } from "../src/curves";
import {
  badName,
  degrees,
  foreign,
  freeName,
  group,
  joint,
  motion,
  partly,
  picture,
  seconds,
  sentence,
  shortJoint,
} from "../src/format";
import { addEntry, type History, NOTHING_DONE, redoEntry, replaceEntry, undoEntry } from "../src/state/history";
import type { Step } from "../src/types";
import { focusOf, stops } from "../src/keys";
import { FrameTimes } from "../src/scene/frame-times";
import { TEXTS } from "../src/texts";

const REST = { typing: false, onControl: false, moving: false };

describe("stopping by key", () => {
  it("works with Escape from everywhere", () => {
    for (const typing of [true, false])
      for (const moving of [true, false]) expect(stops("Escape", { typing, onControl: !typing, moving })).toBe(true);
  });
  it("works with a space, but not in a text", () => {
    expect(stops(" ", REST)).toBe(true);
    expect(stops(" ", { ...REST, typing: true, moving: true })).toBe(false);
  });
  it("leaves a space to a focused button while the robot is at rest, and not while it moves", () => {
    expect(stops(" ", { ...REST, onControl: true })).toBe(false);
    expect(stops(" ", { ...REST, onControl: true, moving: true })).toBe(true);
  });
  it("does not stop for any other key", () => {
    for (const key of ["a", "Enter", "Tab", "s"]) expect(stops(key, { ...REST, moving: true })).toBe(false);
  });
  it("knows a text from a slider", () => {
    const fake = (tagName: string, type: string) =>
      ({
        tagName,
        getAttribute: (name: string) => (name === "type" ? type : null),
        hasAttribute: () => false,
      }) as unknown as Element;
    expect(focusOf(fake("INPUT", "text"), true).typing).toBe(true);
    expect(focusOf(fake("INPUT", "range"), true)).toEqual({ typing: false, onControl: true, moving: true });
    expect(focusOf(null, false)).toEqual(REST);
  });
});

describe("the pace of drawing", () => {
  const after = (frames: number[]): number => {
    const times = new FrameTimes();
    return frames.findIndex((took) => times.tooSlow(took));
  };
  it("is too slow after a few frames of a second, and not after one", () => {
    expect(after([900, 900, 900])).toBe(2);
    expect(after([5000, 16, 16, 16])).toBe(-1);
  });
  it("is too slow when many a little too slow follow each other", () => {
    const at = after(Array<number>(100).fill(80));
    expect(at).toBeGreaterThan(10);
    expect(at * 80).toBeLessThan(2000);
  });
  it("is right where slow ones are few", () => {
    expect(after(Array.from({ length: 100 }, (_, at) => (at % 3 ? 90 : 16)))).toBe(-1);
  });
});

describe("history", () => {
  const mirrored: History<Step> = addEntry<Step>(NOTHING_DONE, { op: "mirror" });
  const both = addEntry<Step>(mirrored, { op: "reverse" });
  it("undoes and redoes in order", () => {
    expect(undoEntry(both).done).toEqual(mirrored.done);
    expect(redoEntry(undoEntry(both))).toEqual(both);
    expect(redoEntry(redoEntry(undoEntry(undoEntry(both))))).toEqual(both);
  });
  it("forgets what was undone when something new is done", () => {
    const other = addEntry<Step>(undoEntry(both), { op: "retime" });
    expect(other.done.map(({ op }) => op)).toEqual(["mirror", "retime"]);
    expect(redoEntry(other)).toBe(other);
  });
  it("has an end on both sides", () => {
    expect(undoEntry(NOTHING_DONE)).toBe(NOTHING_DONE);
    expect(undoEntry(mirrored, 1)).toBe(mirrored);
    expect(redoEntry(both)).toBe(both);
  });
  it("drops the oldest entries beyond its limit", () => {
    expect(addEntry<Step>(both, { op: "retime" }, 2).done.map(({ op }) => op)).toEqual(["reverse", "retime"]);
  });
  it("replaces the newest entry while something is dragged", () => {
    expect(replaceEntry<Step>(both, { op: "retime" }).done.map(({ op }) => op)).toEqual(["mirror", "retime"]);
  });
});

describe("curves", () => {
  const rows = [
    [0, 1, 5],
    [1, 1, 2],
    [0.5, 1.01, 8],
  ];
  it("are ranked by how far they move", () => {
    expect(ranges(rows)[2]).toBe(6);
    expect(movers(rows, 8)).toEqual([2, 0]);
    expect(movers(rows, 1)).toEqual([2]);
  });
  it("are never none where there is a joint", () => {
    expect(movers([[1, 1]], 8)).toEqual([0]);
    expect(movers([], 8)).toEqual([]);
  });
  it("fit into their extent, and a still one is not blown up", () => {
    const { low, high } = extent(rows, [0, 2]);
    expect(low).toBeLessThan(0);
    expect(high).toBeGreaterThan(8);
    const still = extent([[1], [1.001]], [0]);
    expect(still.high - still.low).toBeGreaterThan(0.4);
    expect(extent([], [0]).high).toBeGreaterThan(0);
  });
  it("have round numbers on their axes", () => {
    expect(ticks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
    expect(ticks(-0.3, 0.3, 4)).toEqual([-0.2, 0, 0.2]);
    expect(ticks(1, 1, 4)).toEqual([]);
  });
  it("are thinned from the first to the last", () => {
    expect(thinned(3, 10)).toEqual([0, 1, 2]);
    const few = thinned(1000, 5);
    expect(few).toHaveLength(5);
    expect([few[0], few.at(-1)]).toEqual([0, 999]);
  });
});

describe("words and numbers", () => {
  it("tell times", () => {
    expect([0, 8.249, 59.94, 59.96, 65, -1].map(seconds)).toEqual([
      "0.0 s",
      "8.2 s",
      "59.9 s",
      "1:00.0",
      "1:05.0",
      "0.0 s",
    ]);
  });
  it("tell angles and joints", () => {
    expect([Math.PI / 2, -0.001, -0.5].map(degrees)).toEqual(["90°", "0°", "\u221229°"]);
    expect(joint("left_shoulder_pitch_joint")).toBe("Left shoulder pitch");
    expect(shortJoint("right_elbow_joint")).toBe("R elbow");
    expect(motion("high_five")).toBe("High five");
  });
  it("make sentences, with the robot's parts in words", () => {
    expect(sentence("right_hip_roll_link meets left_elbow_joint")).toBe("Right hip roll meets left elbow.");
    expect(sentence("Done!")).toBe("Done!");
    expect(sentence(" ")).toBe("");
  });
  it("leave the letters of a file, an address and a table's titles", () => {
    expect(sentence("broken.csv: it has no rows")).toBe("broken.csv: it has no rows.");
    expect(sentence("udp://127.0.0.1:1 says nothing")).toBe("udp://127.0.0.1:1 says nothing.");
    expect(sentence("like: t,left_elbow_joint")).toBe("Like: t,left_elbow_joint.");
    expect(sentence("it ended... then it stood")).toBe("It ended... then it stood.");
  });
  it("say what is wrong with a name", () => {
    expect(["", "   "].map(badName)).toEqual([TEXTS.nameMissing, TEXTS.nameMissing]);
    expect(["wave", "x".repeat(31), ` ${"x".repeat(31)} `].map(badName)).toEqual(["", "", ""]);
    expect(["x".repeat(32), "é".repeat(16)].map(badName)).toEqual([TEXTS.nameLong, TEXTS.nameLong]);
  });
  it("do not call a warning an unsafe motion", () => {
    expect(TEXTS.warned.message("unsafe motion: left_elbow_joint at 1.00 s: fast")).toBe(
      "A warning for left_elbow_joint at 1.00 s: fast",
    );
    expect(TEXTS.warned.message("unsafe motion at 1.00 s: near")).toBe("A warning at 1.00 s: near");
  });
  it("find a name that is free", () => {
    expect(freeName("wave", [])).toBe("wave");
    expect(freeName("wave", ["wave", "wave 2"])).toBe("wave 3");
    expect(freeName("motion 1", ["motion 1"])).toBe("motion 2");
  });
  it("make a picture that cannot break out of its address", () => {
    expect(picture('<svg onload="x"/>')).not.toMatch(/["<>]/);
  });
  it("always say that STOP is a software stop", () => {
    expect(TEXTS.stop.note).toMatch(/not an emergency stop/);
    expect(TEXTS.stop.noteLong).toMatch(/not an emergency stop/);
  });
});

describe("a take of another robot", () => {
  it("is of another family, and one of no family that is known may be tried", () => {
    expect(foreign("a1", "g1")).toBe(true);
    expect(foreign("g1", "g1")).toBe(false);
    expect(foreign(null, "g1")).toBe(false);
    expect(foreign("a1", null)).toBe(false);
  });
  it("is not said to be checked for collisions if a note says that they were not checked", () => {
    expect(partly([{ severity: "note", kind: "self-collision" }])).toBe(true);
    expect(
      partly([
        { severity: "note", kind: "jump" },
        { severity: "error", kind: "self-collision" },
      ]),
    ).toBe(false);
  });
});

describe("a leg of a quadruped", () => {
  it("has a name that can be read, and a short one", () => {
    expect(joint("FR_hip_joint")).toBe("Front right hip");
    expect(shortJoint("RL_calf_joint")).toBe("RL calf");
  });
  it("is listed apart from the others, and a humanoid's legs together", () => {
    expect(group({ name: "FL_thigh_joint", part: "leg" })).toBe("front_left");
    expect(group({ name: "left_knee_joint", part: "leg" })).toBe("legs");
    expect(group({ name: "right_wrist_yaw_joint", part: "wrist" })).toBe("right_arm");
    expect(group({ name: "waist_yaw_joint", part: "waist" })).toBe("waist");
    expect(group({ name: "tail_joint", part: "tail" })).toBe("others");
  });
});
