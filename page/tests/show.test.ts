import { describe, expect, it } from "vitest";
import {
  addedClip,
  clipLength,
  filled,
  laneEnd,
  lightOf,
  hexOf,
  movedClip,
  newShow,
  oscArgsText,
  readOscArgs,
  renamedRole,
  rolePose,
  rowsOf,
  type Section,
  trimmedFrom,
  trimmedTo,
  withClip,
  withoutRole,
  withRole,
} from "../src/show-document";
import type { RobotModel } from "../src/types";

const lengths = new Map([["wave", 4]]);
const section: Section = {
  name: "one",
  clips: [{ role: "a", take: "wave", at_s: 1 }],
  cues: [{ role: "a", say: "x" }],
};

describe("a clip", () => {
  it("is as long as its trim, speed and rounds make it", () => {
    expect(clipLength({ role: "a", take: "wave" }, lengths)).toBe(4);
    expect(clipLength({ role: "a", take: "wave", from_s: 1, to_s: 3, speed: 2 }, lengths)).toBe(1);
    expect(clipLength({ role: "a", take: "wave", loop: 2, blend_s: 0.5 }, lengths)).toBe(8.5);
  });
  it("keeps its end where it is when its beginning is trimmed", () => {
    const trimmed = trimmedFrom({ role: "a", take: "wave", at_s: 1 }, 2.5, lengths);
    expect(trimmed).toEqual({ at_s: 2.5, from_s: 1.5 });
    expect(trimmedFrom({ role: "a", take: "wave", at_s: 1 }, 0, lengths)).toEqual({ at_s: 1, from_s: null });
  });
  it("is trimmed at its end, and not beyond the take", () => {
    expect(trimmedTo({ role: "a", take: "wave", at_s: 1 }, 3, lengths)).toEqual({ to_s: 2 });
    expect(trimmedTo({ role: "a", take: "wave", at_s: 1 }, 9, lengths)).toEqual({ to_s: null });
    expect(trimmedTo({ role: "a", take: "wave", at_s: 1 }, 0, lengths).to_s).toBeCloseTo(0.05);
  });
  it("does not begin before its section", () => {
    expect(movedClip({ role: "a", take: "wave" }, -3)).toEqual({ at_s: 0, role: "a" });
    expect(laneEnd(section, "a", lengths)).toBe(5);
  });
  it("loses what is left open, as the file has it", () => {
    const changed = withClip(section, 0, { from_s: null, mirror: true });
    expect(changed.clips).toEqual([{ role: "a", take: "wave", at_s: 1, mirror: true }]);
    expect(addedClip(section, { role: "b", take: "wave", at_s: 0.30000000000000004 }).clips?.[1]?.at_s).toBe(0.3);
  });
});

describe("a show", () => {
  it("takes clips and cues along when a role is renamed, and away with it", () => {
    const show = { ...newShow("t", ["a", "b"], "one"), sections: [section] };
    const renamed = renamedRole(show, "a", "c");
    expect(Object.keys(renamed.roles)).toEqual(["c", "b"]);
    expect(renamed.sections?.[0]?.clips?.[0]?.role).toBe("c");
    expect(renamed.sections?.[0]?.cues?.[0]?.role).toBe("c");
    expect(withoutRole(show, "a").sections?.[0]).toMatchObject({ clips: [], cues: [] });
  });
  it("is checked without its empty sections", () => {
    expect(filled(newShow("t", ["a"], "one")).sections).toEqual([]);
  });
  it("gives cues at one time a row each", () => {
    expect(
      rowsOf([
        { at: 0, length: 2 },
        { at: 1, length: 1 },
        { at: 2, length: 1 },
      ]),
    ).toEqual([0, 1, 0]);
  });
  it("has fields of its roles, without those that are left open", () => {
    const show = withRole(newShow("", ["a", "b"], "one"), "a", { on_loss: "drop", title: null });
    expect(show.roles).toEqual({ a: { on_loss: "drop" }, b: {} });
  });
  it("keeps OSC arguments as they are, numbers and texts", () => {
    const args = [1, -0.5, "go", "two words", "12", "", 'a "quoted" one', "a\\b"];
    expect(readOscArgs(oscArgsText(args))).toEqual(args);
    expect(readOscArgs('1 go "2" "open')).toEqual([1, "go", "2", '"open']);
  });
  it("knows colours both ways", () => {
    expect(lightOf(hexOf([0, 160, 255]))).toEqual([0, 160, 255]);
  });
});

describe("a role's pose", () => {
  const joint = { index: 0, name: "elbow" };
  const model = { rest_rad: [0.1, 0.2], joints: [joint] } as unknown as RobotModel;
  const curves = { role: "a", at_s: 2, build: "", names: ["elbow"], times_s: [0, 1], joints_rad: [[1], [2]] };
  it("comes from rest, follows the motion, and holds its last one", () => {
    expect(rolePose(model, curves, 0)).toEqual([0.1, 0.2]);
    expect(rolePose(model, curves, 2)[0]).toBeCloseTo(1);
    expect(rolePose(model, curves, 2.5)[0]).toBeCloseTo(1.5);
    expect(rolePose(model, curves, 9)[0]).toBeCloseTo(2);
    expect(rolePose(model, undefined, 1)).toEqual([0.1, 0.2]);
  });
});
