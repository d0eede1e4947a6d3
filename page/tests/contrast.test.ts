import { describe, expect, it } from "vitest";
import css from "../src/styles.css?raw";

/** The colours of a theme, by name. */
function colours(selector: string): Map<string, string> {
  const block = css.slice(css.indexOf(`${selector} {`)).split("}")[0] as string;
  return new Map(
    [...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map(([, name, value]) => [name as string, value as string]),
  );
}

/** How bright a colour is to the eye, 0 to 1, as WCAG reckons it. */
function brightness(hex: string): number {
  const [red, green, blue] = [1, 3, 5].map((at) => {
    const share = parseInt(hex.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [low, high] = [brightness(one), brightness(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

const dark = new Map([...colours(":root"), ...colours(':root[data-theme="dark"]')]);

describe.each([
  ["light", colours(":root")],
  ["dark", dark],
])("in %s colours", (_, theme) => {
  const of = (name: string): string => theme.get(name) as string;
  const grounds = ["bg", "panel", "raised", "field"];
  it.each(["text", "muted", "accent", "good", "warn", "bad"])("%s can be read on every ground", (name) => {
    for (const ground of grounds) expect(contrast(of(name), of(ground)), ground).toBeGreaterThanOrEqual(4.5);
  });
  it("buttons and STOP can be read", () => {
    expect(contrast(of("on-accent"), of("accent"))).toBeGreaterThanOrEqual(4.5);
    expect(contrast("#ffffff", of("stop"))).toBeGreaterThanOrEqual(4.5);
    for (const name of ["text", "accent"]) expect(contrast(of(name), of("accent-soft"))).toBeGreaterThanOrEqual(4.5);
  });
  it("the edges of fields can be seen", () => {
    for (const ground of ["panel", "field"]) expect(contrast(of("edge"), of(ground))).toBeGreaterThanOrEqual(3);
  });
});
