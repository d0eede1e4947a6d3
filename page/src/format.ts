/** Numbers and names as a person reads them. */

import { TEXTS } from "./texts";

const DEGREES = 180 / Math.PI;
const MOST_NAME_BYTES = 31;
/** A first word that is a file, an address or a name of a program: it keeps its letters. */
const SPELT = /^[^\s.]*[./\\:_][^\s.]/;

/** `8.2 s`, and `1:05.0` from a minute on. */
export function seconds(value: number): string {
  const tenths = Math.max(0, Math.round(value * 10));
  if (tenths < 600) return `${(tenths / 10).toFixed(1)} s`;
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  return `${Math.floor(tenths / 600)}:${rest}`;
}

export function degrees(rad: number): string {
  const value = Math.round(rad * DEGREES);
  return `${value === 0 ? 0 : value}°`.replace("-", "\u2212");
}

/** `left_shoulder_pitch_joint` as `Left shoulder pitch`. */
export function joint(name: string): string {
  const words = name.replace(/_joint$/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `high_five` as `High five`: a factory's name for a motion. */
export function motion(name: string): string {
  const words = name.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `left_shoulder_pitch_joint` as `L shoulder pitch`, where there is little room. */
export function shortJoint(name: string): string {
  return joint(name).replace(/^Left /, "L ").replace(/^Right /, "R ");
}

/** Whether a take is of a robot that the pendant cannot show or play: it knows the G1 alone. */
export function foreign(names: readonly string[], known: readonly string[]): boolean {
  return !names.some((name) => known.includes(name));
}

/** Whether a check has left out what touches what; it says so in a note. */
export function partly(findings: readonly { severity: string; kind: string }[]): boolean {
  return findings.some(({ severity, kind }) => severity === "note" && kind === "self-collision");
}

/** Return a name that is not taken: `wave`, `wave 2`, `wave 3`... */
export function freeName(wanted: string, taken: readonly string[]): string {
  const used = new Set(taken);
  if (!used.has(wanted)) return wanted;
  const stem = wanted.replace(/ \d+$/, "");
  for (let number = 2; ; number += 1) {
    const name = `${stem} ${number}`;
    if (!used.has(name)) return name;
  }
}

/** Return what speaks against a name; empty where nothing does. */
export function badName(name: string): string {
  if (!name.trim()) return TEXTS.nameMissing;
  return new TextEncoder().encode(name.trim()).length > MOST_NAME_BYTES ? TEXTS.nameLong : "";
}

/** Return a remedy for the page: where it names a command of the terminal, the button that does it. */
export function remedied(words: string): string {
  return TEXTS.remedies.reduce((text, [told, here]) => text.replaceAll(told, here), words);
}

/** Return the text with a capital first letter and a full stop, in words that suit the page. */
export function sentence(words: string): string {
  const text = remedied(words.trim()).replace(/(?<![\w,])[a-z]+(?:_[a-z]+)*_(?:link|joint)\b/g, (part) => part.replace(/_(link|joint)$/, "").replaceAll("_", " "));
  if (!text) return "";
  const closed = /[.!?…]$/.test(text) ? text : `${text}.`;
  if (SPELT.test(closed)) return closed;
  return closed.charAt(0).toUpperCase() + closed.slice(1);
}

/** Return an SVG text as an address an `<img>` can show; scripts in it never run there. */
export function picture(svg: string): string {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}
