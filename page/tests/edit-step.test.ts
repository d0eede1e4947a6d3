import { describe, expect, it } from "vitest";
import { made, parseNumbers } from "../src/edit-step";
import type { EditFacts, EditParameter } from "../src/types";

const parameter = (part: Partial<EditParameter>): EditParameter => ({
  name: "by",
  title: "",
  help: "",
  kind: "numbers",
  choices: [],
  columns: 3,
  form: "",
  unit: "",
  low: null,
  high: null,
  slider: null,
  default: null,
  required: false,
  ...part,
});
const EDIT: EditFacts = {
  name: "move_hand",
  title: "",
  summary: "",
  takes: 0,
  parameters: [
    parameter({ name: "hand", kind: "choice", choices: ["left", "right"] }),
    parameter({}),
    parameter({ name: "through", kind: "rows", columns: 4 }),
  ],
};

describe("numbers that are typed", () => {
  it("may be separated as documents write them", () => {
    expect(parseNumbers("0, 0, 0.05")).toEqual([0, 0, 0.05]);
    expect(parseNumbers("2.3 s: 0.35, -0.2, 1.1 m")).toEqual([2.3, 0.35, -0.2, 1.1]);
    expect(parseNumbers("up")).toBeNull();
  });
  it("become rows of a step", () => {
    const values = { hand: "left", by: "0,0,0.05", through: "1: 1,2,3; 2: 4,5,6" };
    expect(made(EDIT, values, [])).toEqual({
      op: "move_hand",
      hand: "left",
      by: [0, 0, 0.05],
      through: [
        [1, 1, 2, 3],
        [2, 4, 5, 6],
      ],
    });
  });
  it("are left out while they are not complete", () => {
    expect(made(EDIT, { hand: "left", by: "0,0", through: "" }, [])).toEqual({ op: "move_hand", hand: "left" });
  });
});
