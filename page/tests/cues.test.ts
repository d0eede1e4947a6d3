import { describe, expect, it } from "vitest";
import { type Cue, cueOfKey, followingCue, MAX_CUES, movedCue, parsedCues, toggledCue } from "../src/cues";

const cue = (name: string, kind: Cue["kind"] = "take"): Cue => ({ kind, name });
const three = [cue("a"), cue("b"), cue("c")];

describe("cues", () => {
  it("are added and taken off, up to the number of keys", () => {
    expect(toggledCue(three, cue("d"))).toEqual([...three, cue("d")]);
    expect(toggledCue(three, cue("b"))).toEqual([cue("a"), cue("c")]);
    expect(toggledCue(three, cue("b", "action"))).toHaveLength(4);
    const full = Array.from({ length: MAX_CUES }, (_, number) => cue(String(number)));
    expect(toggledCue(full, cue("more"))).toEqual(full);
  });
  it("are moved within their order", () => {
    expect(movedCue(three, 0, 1).map(({ name }) => name)).toEqual(["b", "a", "c"]);
    expect(movedCue(three, 2, 0).map(({ name }) => name)).toEqual(["c", "a", "b"]);
    expect(movedCue(three, 0, -1)).toEqual(three);
    expect(movedCue(three, 2, 3)).toEqual(three);
  });
  it("follow one another, and begin again", () => {
    expect(followingCue(three, null)).toBe(0);
    expect(followingCue(three, cue("a"))).toBe(1);
    expect(followingCue(three, cue("c"))).toBe(0);
    expect(followingCue(three, cue("gone"))).toBe(0);
    expect(followingCue([], null)).toBeNull();
  });
  it("are read as they were kept, without what is none", () => {
    expect(parsedCues(JSON.stringify(three))).toEqual(three);
    expect(parsedCues('[{"kind":"take","name":"a"},{"kind":"odd","name":"b"},3,null]')).toEqual([cue("a")]);
    for (const odd of [null, "", "{", "3", '"x"']) expect(parsedCues(odd)).toEqual([]);
    expect(parsedCues(JSON.stringify(Array.from({ length: 20 }, () => cue("a"))))).toHaveLength(MAX_CUES);
  });
  it("have keys: digits, and those of a presenter", () => {
    expect(["1", "9", "0", "PageDown", "PageUp"].map(cueOfKey)).toEqual([0, 8, "again", "next", "again"]);
    expect(["a", "10", "Enter", " "].map(cueOfKey)).toEqual([null, null, null, null]);
  });
});
