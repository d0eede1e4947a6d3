import { describe, expect, it } from "vitest";
import { languageFor, translated } from "../src/languages";
import { ENGLISH } from "../src/texts";
import { GERMAN } from "../src/texts-de";

type Tree = { readonly [key: string]: unknown };

/** Every text of a catalogue, by its path; a function is called with marks in place of its facts. */
function flat(tree: Tree, path = ""): Map<string, string> {
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(tree)) {
    const at = path ? `${path}.${key}` : key;
    if (typeof value === "string") found.set(at, value);
    else if (typeof value === "function") found.set(at, `function of ${value.length}`);
    else for (const [inner, words] of flat(value as Tree, at)) found.set(inner, words);
  }
  return found;
}

/** Every sentence a catalogue can say, functions with odd facts included. */
function spoken(tree: Tree): string[] {
  return Object.values(tree).flatMap((value): string[] => {
    if (typeof value === "string") return [value];
    if (typeof value !== "function") return spoken(value as Tree);
    const facts = [
      [["x"], ["x"]],
      [1, 1, "x"],
      ["x", 1, "x"],
      [
        { time: "x", speed: "x" },
        { time: "x", speed: "x" },
      ],
    ];
    return facts.flatMap((each) => {
      try {
        return [String((value as (...facts: unknown[]) => string)(...each))];
      } catch {
        return []; // facts of another kind
      }
    });
  });
}

const english = flat(ENGLISH);
const german = flat(GERMAN as Tree);

describe("the catalogues", () => {
  it("have the same keys, and functions of the same facts", () => {
    expect([...german.keys()].sort()).toEqual([...english.keys()].sort());
    const functions = [...english].filter(([, words]) => words.startsWith("function of"));
    // A text without a plural needs fewer facts, never more.
    for (const [at, words] of functions)
      expect(Number(german.get(at)?.slice(12)), at).toBeLessThanOrEqual(Number(words.slice(12)));
  });
  it("leave no sentence untranslated", () => {
    const same = [...english].filter(
      ([at, words]) => words.includes(" ") && german.get(at) === words && !words.startsWith("function of"),
    );
    expect(same).toEqual([]);
  });
  it("name no command and no terminal", () => {
    for (const words of [...spoken(ENGLISH), ...spoken(GERMAN as Tree)])
      expect(words).not.toMatch(/`|\brote [a-z]|terminal|command line|Kommandozeile|(^|\s)--\w/i);
  });
  it("have the phone app's texts as written, where the app shows them", () => {
    const { teach, library, health } = ENGLISH;
    expect(teach.tipsOfApp.arms).toBe(
      "Safety: Before teaching, keep the robot standing under control. Ensure smooth trajectories, stable balance, and avoid self-collision or singularities.",
    );
    expect(library.playTip.arms).toContain(
      "Before playback, keep the robot standing under control with enough space. Operator must hold remote or app for emergency stop.",
    );
    expect(health.dampQuestion).toBe("Enter damping mode?");
    expect(teach.unbalanced).toContain("Ensure the robot is in a balanced standing");
    expect(teach.full).toContain("Up to 15 actions can be created");
    for (const text of [teach.taken, teach.replaces]) expect(text).toContain("Filename already exists.");
  });
  it("are chosen by the browser, unless a person has chosen", () => {
    expect(languageFor("auto", ["de-AT", "en"])).toBe("de");
    expect(languageFor("auto", ["fr", "en-GB", "de"])).toBe("en");
    expect(languageFor("auto", ["fr"])).toBe("en");
    expect(languageFor("de", ["en"])).toBe("de");
  });
  it("say in English what a translation lacks", () => {
    const made = translated({ a: "one", b: { c: "two", d: "three" } }, { b: { c: "zwei" } });
    expect(made).toEqual({ a: "one", b: { c: "zwei", d: "three" } });
  });
});

describe("the page's sources", () => {
  const sources = import.meta.glob<string>("../src/**/*.tsx", { query: "?raw", import: "default", eager: true });
  it("have their words in the catalogue", () => {
    expect(Object.keys(sources).length).toBeGreaterThan(10);
    for (const [name, written] of Object.entries(sources)) {
      const source = written.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
      const texts = source.matchAll(/(?<!\w)<\/?[A-Za-z][^<>=]*>([^<>{}]*[A-Za-z]{3,}[^<>{}]*)</g);
      // What is between two tags may be code, between two parts that are drawn.
      const between = [...texts].map((each) => each[1]?.trim() ?? "").filter((text) => !/[;=]|^[)&|?:]/.test(text));
      const labels = source.matchAll(/\b(?:aria-label|title|placeholder|alt)="([^"]*[A-Za-z]{3,}[^"]*)"/g);
      const given = [...labels].map((each) => each[1]);
      expect([...between, ...given], name).toEqual([]);
    }
  });
});
