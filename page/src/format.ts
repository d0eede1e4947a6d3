/** Numbers and names as a person reads them. */

import { TEXTS } from "./texts";

const DEGREES = 180 / Math.PI;
const MAX_NAME_BYTES = 31;
/** A first word that is a file, an address or a name of a program: it keeps its letters. */
const SPELT = /^[^\s.]*[./\\:_][^\s.]/;

/** `8.2 s`, and `1:05.0` from a minute on. */
export function seconds(value: number): string {
  const tenths = Math.max(0, Math.round(value * 10));
  if (tenths < 600) return `${decimal((tenths / 10).toFixed(1))} s`;
  const rest = decimal(((tenths % 600) / 10).toFixed(1).padStart(4, "0"));
  return `${Math.floor(tenths / 600)}:${rest}`;
}

/** `8.25 s`, and `1:05.00` from a minute on: as the time line counts. */
export function hundredths(value: number): string {
  const whole = Math.max(0, Math.round(value * 100));
  if (whole < 6000) return `${decimal((whole / 100).toFixed(2))} s`;
  return `${Math.floor(whole / 6000)}:${decimal(((whole % 6000) / 100).toFixed(2).padStart(5, "0"))}`;
}

/** A number as this language writes it. */
export function decimal(written: string): string {
  return written.replace(".", TEXTS.decimal);
}

export function degrees(rad: number): string {
  const value = Math.round(rad * DEGREES);
  return `${value === 0 ? 0 : value}°`.replace("-", "\u2212");
}

/** The same with a tenth, for small ones. */
export function fineDegrees(rad: number): string {
  return `${decimal((rad * DEGREES).toFixed(1))}°`.replace("-", "\u2212");
}

const LEGS: Record<string, string> = { FR: "front right", FL: "front left", RR: "rear right", RL: "rear left" };

function jointWords(name: string): string[] {
  return name
    .replace(/_joint$/, "")
    .replace(/^([FR][LR])(?=_)/, (leg) => LEGS[leg] as string)
    .split(/[_ ]/);
}

/** `left_shoulder_pitch_joint` as `Left shoulder pitch`, `FR_hip_joint` as `Front right hip`. */
export function joint(name: string): string {
  return capital(TEXTS.jointName(jointWords(name)));
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `high_five` as `High five`: a factory's name for a motion. */
export function motion(name: string): string {
  return capital(name.replaceAll("_", " "));
}

/** `left_shoulder_pitch_joint` as `L shoulder pitch`, where there is little room. */
export function shortJoint(name: string): string {
  return capital(TEXTS.jointShort(jointWords(name)));
}

/** Whether a take is of another family than a robot; what no family is known of may be tried. */
export function foreign(take: string | null, robot: string | null): boolean {
  return take !== null && robot !== null && take !== robot;
}

/** Which part of the body a joint belongs to, as the list of joints is divided. */
export function group({ name, part }: { name: string; part: string }): Group {
  const leg = /^([FR])([LR])_/.exec(name);
  if (leg) return `${leg[1] === "F" ? "front" : "rear"}_${leg[2] === "L" ? "left" : "right"}` as Group;
  if (part === "leg") return "legs";
  if (part === "arm" || part === "wrist")
    return name.startsWith("left") ? "left_arm" : name.startsWith("right") ? "right_arm" : "others";
  return part === "waist" || part === "head" ? part : "others";
}

/** In the order in which they are listed. */
export const GROUPS = [
  "left_arm",
  "right_arm",
  "front_left",
  "front_right",
  "rear_left",
  "rear_right",
  "waist",
  "head",
  "legs",
  "others",
] as const;
export type Group = (typeof GROUPS)[number];

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
  return new TextEncoder().encode(name.trim()).length > MAX_NAME_BYTES ? TEXTS.nameLong : "";
}

/** Return the text with a capital first letter and a full stop, in words that suit the page. */
export function sentence(words: string): string {
  const text = words
    .trim()
    .replace(/(?<![\w,])[a-z]+(?:_[a-z]+)*_(?:link|joint)\b/g, (part) =>
      part.replace(/_(link|joint)$/, "").replaceAll("_", " "),
    );
  if (!text) return "";
  const closed = /[.!?…]$/.test(text) ? text : `${text}.`;
  if (SPELT.test(closed)) return closed;
  return closed.charAt(0).toUpperCase() + closed.slice(1);
}

/** Return an SVG text as an address an `<img>` can show; scripts in it never run there. */
export function picture(svg: string): string {
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
}
