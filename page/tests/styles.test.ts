import { describe, expect, it } from "vitest";

const sheets = import.meta.glob<string>("../src/**/*.module.css", { query: "?raw", import: "default", eager: true });
const components = import.meta.glob<string>("../src/**/*.tsx", { query: "?raw", import: "default", eager: true });

/** The classes that a module defines: all but those it marks as global. */
function definedIn(sheet: string): string[] {
  const selectors = sheet.replace(/\/\*[\s\S]*?\*\/|:global\([^)]*\)/g, "").matchAll(/([^{};]+)\{/g);
  const rules = [...selectors].map(([, selector]) => selector as string).filter((each) => !each.trim().startsWith("@"));
  return [
    ...new Set(rules.flatMap((each) => [...each.matchAll(/\.([a-z][\w-]*)/g)].map(([, name]) => name as string))),
  ];
}

describe.each(Object.entries(sheets))("%s", (path, sheet) => {
  const component = components[path.replace(".module.css", ".tsx")] ?? "";
  // These are put together from a fixed part and a number or a state.
  const composed = /^c\d$|^(teaching|performing|playing|done|failed|sound|light|error|from|to|mark|keyframe|playhead)$/;
  it("is the style of the component beside it", () => {
    expect(component).toContain(`.module.css"`);
  });
  it("styles only what the component has", () => {
    const unused = definedIn(sheet).filter(
      (name) => !composed.test(name) && !new RegExp(`[ "\`]${name}[ "\`$]`).test(component),
    );
    expect(unused).toEqual([]);
  });
});
