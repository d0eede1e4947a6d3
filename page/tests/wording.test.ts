import { describe, expect, it } from "vitest";
import { ENGLISH, TEXTS } from "../src/texts";
import { GERMAN } from "../src/texts-de";
import { folded, remedy, worded, message } from "../src/wording";

const at = {
  template: "{joint} is at {value}, allowed {allowed}",
  facts: {
    joint: { text: "left_elbow_joint" },
    value: { value: 1.49, unit: "rad", digits: 2 },
    allowed: { low: -0.52, high: 1.4, unit: "rad", digits: 2 },
  },
};
const stop = { template: "Wait, or end it: {stop}.", facts: { stop: { act: "stop" } } } as const;

describe("sentences of the server", () => {
  it("have angles and turning speeds in degrees", () => {
    expect(worded(at)).toBe("left_elbow_joint is at 85.4°, allowed \u221229.8° to 80.2°");
    expect(worded({ template: "at {speed}", facts: { speed: { value: 9.1, unit: "rad/s", digits: 1 } } })).toBe(
      "at 521°/s",
    );
    expect(worded({ template: "{far} deep", facts: { far: { value: 1.25, unit: "cm", digits: 1 } } })).toBe(
      "1.3 cm deep",
    );
  });
  it("name this page's buttons, and no command", () => {
    expect(worded(stop)).toBe(`Wait, or end it: ${TEXTS.acts.stop}.`);
    for (const said of Object.values(TEXTS.acts)) expect(said).not.toMatch(/\brote [a-z]|--/);
  });
  it("may hold another sentence", () => {
    expect(
      worded({ template: "at {when}: {what}", facts: { when: { value: 2, unit: "s", digits: 2 }, what: at } }),
    ).toContain("2.00 s: left_elbow_joint is at 85.4°");
  });
  it("keep braces that are no facts", () => {
    expect(worded({ template: "a robot called {{b}}", facts: {} })).toBe("a robot called {b}");
  });
  it("are translated by their template, and keep their facts", () => {
    const missed = {
      template: ENGLISH.refusals.outOfReach,
      facts: { far: { value: 31.4, unit: "mm", digits: 0 }, time: { value: 2.5, unit: "s", digits: 2 } },
    };
    const german = new Map([[missed.template as string, GERMAN.refusals?.outOfReach ?? ""]]);
    expect(worded(missed)).toBe("the hand misses its new path by 31 mm at 2.50 s: it is out of reach");
    expect(worded(missed, german)).toBe(
      "Die Hand verfehlt ihren neuen Weg bei 2.50 s um 31 mm: Er ist außer Reichweite",
    );
    const facts = (template: string): string[] => (template.match(/\{\w+\}/g) ?? []).sort();
    for (const [key, template] of Object.entries(ENGLISH.refusals)) {
      const known = new Set(facts(template));
      for (const fact of facts(GERMAN.refusals?.[key as keyof typeof ENGLISH.refusals] ?? ""))
        expect(known.has(fact), `${key}: ${fact}`).toBe(true);
    }
  });
  it("stay as they came where they came without facts", () => {
    expect(message({ message: "odd", remedy: "Mend it.", texts: null })).toBe("odd");
    expect(remedy({ message: "odd", remedy: "Mend it." })).toBe("Mend it.");
  });
  it("part with a long list of names, and keep a short one", () => {
    const said = (names: string[]) => ({
      message: "",
      remedy: "",
      texts: {
        message: {
          template: "the track leaves {several} alone: {names}",
          facts: { several: { text: "5 joints" }, names: { names } },
        },
        remedy: { template: "", facts: {} },
      },
    });
    expect(folded(said(["a", "b", "c", "d", "e"]))).toEqual({
      message: "the track leaves 5 joints alone",
      names: ["a", "b", "c", "d", "e"],
    });
    expect(folded(said(["a", "b"]))).toEqual({ message: "the track leaves 5 joints alone: a, b", names: [] });
  });
});
