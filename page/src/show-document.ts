/** A show as the page edits it: what becomes of the document when something is put, moved or trimmed. Without any state. */

import type * as api from "./api-types";
import { rowAt } from "./interpolate";
import type { RobotModel } from "./types";

export type Show = api.ShowDocument;
export type Role = api.ShowRoleNow;
export type Section = api.ShowSectionNow;
export type Clip = api.ShowClip;
export type ShowCue = api.ShowCue;
export type CueKind = "sound" | "say" | "light" | "osc";
export type ShowFinding = api.ShowFindingNow;
export const CUE_KINDS: readonly CueKind[] = ["sound", "say", "light", "osc"];
/** What keys and fingers put things on, in seconds. */
const GRAIN_S = 0.01;
export const LEAST_S = 0.05;
/** The length of an action stored on a robot is not known here. */
const UNKNOWN_S = 3;
const MOMENT_S = 0.25;
const BLEND_S = 0.5;

export const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));
export const grained = (value: number): number => Math.round(value / GRAIN_S) * GRAIN_S;
/** A number as the file should have it: no 0.30000000000000004. */
const neat = (value: number): number => Number(value.toFixed(3));

/** Return how long takes are, by name. */
export type Lengths = ReadonlyMap<string, number>;

/** Return how long a clip plays, as nearly as the page can tell. */
export function clipLength(clip: Clip, lengths: Lengths): number {
  if (clip.action) return UNKNOWN_S;
  const whole = lengths.get(clip.take ?? "") ?? UNKNOWN_S;
  const once = Math.max(LEAST_S, (clip.to_s ?? whole) - (clip.from_s ?? 0)) / (clip.speed ?? 1);
  const rounds = clip.loop ?? 1;
  return rounds * once + (rounds - 1) * (clip.blend_s ?? BLEND_S);
}

export const clipsOf = (section: Section): Clip[] => section.clips ?? [];
export const cuesOf = (section: Section): ShowCue[] => section.cues ?? [];
export const sectionsOf = (show: Show): Section[] => show.sections ?? [];

export function cueKind(cue: ShowCue): CueKind {
  return CUE_KINDS.find((kind) => cue[kind] !== undefined && cue[kind] !== null) ?? "osc";
}

/** Return when the last thing of a section ends. */
export function sectionLength(section: Section, lengths: Lengths, sounds: Lengths): number {
  const clips = clipsOf(section).map((clip) => (clip.at_s ?? 0) + clipLength(clip, lengths));
  const cues = cuesOf(section).map((cue) => (cue.at_s ?? 0) + cueLength(cue, sounds));
  return Math.max(0, ...clips, ...cues);
}

export function cueLength(cue: ShowCue, sounds: Lengths): number {
  return cue.sound ? (sounds.get(cue.sound) ?? 1) : MOMENT_S;
}

/** Return when the last clip of a role ends. */
export function laneEnd(section: Section, role: string, lengths: Lengths): number {
  const own = clipsOf(section).filter((clip) => clip.role === role);
  return Math.max(0, ...own.map((clip) => (clip.at_s ?? 0) + clipLength(clip, lengths)));
}

/** Without what is left open, as a file is written. */
function bare<Thing extends object>(thing: Thing): Thing {
  return Object.fromEntries(
    Object.entries(thing).filter(([, value]) => value !== null && value !== undefined && value !== ""),
  ) as Thing;
}

// ---- making and changing ----------------------------------------------------------------------

export function newShow(title: string, roles: readonly string[], section: string): Show {
  return {
    rote_show: 1,
    title,
    roles: Object.fromEntries(roles.map((name) => [name, {}])),
    sections: [{ name: section, start: { on: "go" }, clips: [], cues: [] }],
  };
}

export function withSection(show: Show, index: number, change: (section: Section) => Section): Show {
  return { ...show, sections: sectionsOf(show).map((each, place) => (place === index ? change(each) : each)) };
}

export function withClip(section: Section, index: number, change: Partial<Clip>): Section {
  const clips = clipsOf(section).map((clip, place) => (place === index ? bare({ ...clip, ...change }) : clip));
  return { ...section, clips };
}

export function withCue(section: Section, index: number, change: Partial<ShowCue>): Section {
  const cues = cuesOf(section).map((cue, place) => (place === index ? bare({ ...cue, ...change }) : cue));
  return { ...section, cues };
}

export function without<Thing>(things: readonly Thing[], index: number): Thing[] {
  return things.filter((_, place) => place !== index);
}

/** Put a take on a lane. */
export function addedClip(section: Section, clip: Clip): Section {
  return { ...section, clips: [...clipsOf(section), bare({ ...clip, at_s: neat(grained(clip.at_s ?? 0)) })] };
}

export function movedClip(clip: Clip, at_s: number, role: string = clip.role): Partial<Clip> {
  return { at_s: neat(grained(Math.max(0, at_s))), role };
}

/** Move the beginning of a clip to a moment of the section: what comes before it is trimmed, the rest stays where it is. */
export function trimmedFrom(clip: Clip, moment_s: number, lengths: Lengths): Partial<Clip> {
  const speed = clip.speed ?? 1;
  const whole = lengths.get(clip.take ?? "") ?? UNKNOWN_S;
  const [at, from, to] = [clip.at_s ?? 0, clip.from_s ?? 0, clip.to_s ?? whole];
  const by = clamp(moment_s - at, Math.max(-from / speed, -at), (to - LEAST_S - from) / speed);
  const wanted = neat(grained(from + by * speed));
  return { at_s: neat(Math.max(0, grained(at + by))), from_s: wanted > 0 ? wanted : null };
}

/** Move the end of a clip's first round to a moment of the section. */
export function trimmedTo(clip: Clip, moment_s: number, lengths: Lengths): Partial<Clip> {
  const whole = lengths.get(clip.take ?? "") ?? UNKNOWN_S;
  const from = clip.from_s ?? 0;
  const to = clamp(from + (moment_s - (clip.at_s ?? 0)) * (clip.speed ?? 1), from + LEAST_S, whole);
  return { to_s: to >= whole - GRAIN_S / 2 ? null : neat(grained(to)) };
}

export function withRole(show: Show, name: string, change: Partial<Role>): Show {
  return { ...show, roles: { ...show.roles, [name]: bare({ ...show.roles[name], ...change }) } };
}

export function renamedRole(show: Show, old: string, name: string): Show {
  const roles = Object.fromEntries(Object.entries(show.roles).map(([key, role]) => [key === old ? name : key, role]));
  const own = <Thing extends { role?: string | null }>(thing: Thing): Thing =>
    thing.role === old ? { ...thing, role: name } : thing;
  const sections = sectionsOf(show).map((section) => ({
    ...section,
    clips: clipsOf(section).map(own),
    cues: cuesOf(section).map(own),
  }));
  return { ...show, roles, sections };
}

export function withoutRole(show: Show, name: string): Show {
  const { [name]: _, ...roles } = show.roles;
  const sections = sectionsOf(show).map((section) => ({
    ...section,
    clips: clipsOf(section).filter(({ role }) => role !== name),
    cues: cuesOf(section).filter(({ role }) => role !== name),
  }));
  return { ...show, roles, sections };
}

/** Return a cue of a kind with what it needs at least. */
export function newCue(kind: CueKind, at_s: number, role: string, sound: string): ShowCue {
  const moment = { at_s: neat(grained(at_s)) };
  if (kind === "sound") return { ...moment, sound };
  if (kind === "say") return { ...moment, role, say: "Hello", language: "en" };
  if (kind === "light") return { ...moment, role, light: [0, 160, 255] };
  return { ...moment, osc: "/cue/1/go", to: "127.0.0.1:53000" };
}

/** Return the show without empty sections, which cannot be run: what is checked while it is being made. */
export function filled(show: Show): Show {
  const sections = sectionsOf(show).filter((each) => clipsOf(each).length || cuesOf(each).length);
  return { ...show, sections };
}

/** Give each cue a row, so that those at one time do not hide each other. */
export function rowsOf(cues: readonly { at: number; length: number }[]): number[] {
  const ends: number[] = [];
  const order = cues.map((cue, index) => ({ ...cue, index })).sort((a, b) => a.at - b.at);
  const rows = new Array<number>(cues.length).fill(0);
  for (const { at, length, index } of order) {
    const free = ends.findIndex((end) => end <= at);
    const row = free < 0 ? ends.length : free;
    ends[row] = at + length;
    rows[index] = row;
  }
  return rows;
}

// ---- OSC arguments ------------------------------------------------------------------------------

const MAX_ARGS = 16;
const isNumber = (text: string): boolean => text.trim() !== "" && Number.isFinite(Number(text));

/** Return OSC arguments as one line of text; a text that could be read otherwise is in quotation marks. */
export function oscArgsText(args: readonly (number | string)[]): string {
  const needsQuotes = (text: string): boolean => text === "" || isNumber(text) || /[\s"\\]/.test(text);
  return args
    .map((each) => (typeof each === "string" && needsQuotes(each) ? JSON.stringify(each) : `${each}`))
    .join(" ");
}

/** Read OSC arguments from one line of text: numbers and words, and texts in quotation marks. */
export function readOscArgs(line: string): (number | string)[] {
  const parts = line.match(/"(?:[^"\\]|\\.)*"|\S+/g) ?? [];
  return parts.slice(0, MAX_ARGS).map((part) => {
    if (!part.startsWith('"')) return isNumber(part) ? Number(part) : part;
    try {
      return JSON.parse(part) as string;
    } catch {
      return part;
    }
  });
}

// ---- colours ------------------------------------------------------------------------------------

export const hexOf = (light: readonly number[]): string =>
  `#${light.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
export const lightOf = (hex: string): number[] =>
  [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16) || 0);

// ---- poses --------------------------------------------------------------------------------------

/** Before its first pose a robot comes softly from rest; so long that is drawn. */
const APPROACH_S = 0.8;

/** Return the pose of a role at a moment of the section; at rest where it does not move. */
export function rolePose(model: RobotModel, curves: api.RoleCurves | undefined, moment_s: number): number[] {
  const pose = [...model.rest_rad];
  if (!curves?.times_s.length) return pose;
  const row = rowAt(curves.times_s, curves.joints_rad, Math.max(0, moment_s - curves.at_s));
  const near = clamp(1 - (curves.at_s - moment_s) / APPROACH_S, 0, 1);
  for (const joint of model.joints) {
    const column = curves.names.indexOf(joint.name);
    if (column < 0) continue;
    const rest = pose[joint.index] ?? 0;
    pose[joint.index] = rest + ((row[column] ?? rest) - rest) * near;
  }
  return pose;
}

/** Return the path of a sound's peaks in a box of 100 by 2, around 1. */
export function wavePath(peaks: readonly number[]): string {
  const step = 100 / Math.max(1, peaks.length);
  const upper = peaks.map((peak, index) => `${(index * step).toFixed(2)} ${(1 - peak).toFixed(3)}`);
  const lower = peaks.map((peak, index) => `${(index * step).toFixed(2)} ${(1 + peak).toFixed(3)}`).reverse();
  return `M${[...upper, ...lower].join("L")}Z`;
}
