/** Cues: the motions on the pads and keys 1 to 9, in their order. Without any state. */

export interface Cue {
  kind: "action" | "take" | "preset";
  name: string;
}

/** As many as there are keys. */
export const MAX_CUES = 9;

export function sameCue(one: Cue, other: Cue): boolean {
  return one.kind === other.kind && one.name === other.name;
}

export function hasCue(cues: readonly Cue[], cue: Cue): boolean {
  return cues.some((each) => sameCue(each, cue));
}

/** Return the cues with one more, or without it where it is there; unchanged where there is no room. */
export function toggledCue(cues: readonly Cue[], cue: Cue): readonly Cue[] {
  if (hasCue(cues, cue)) return cues.filter((each) => !sameCue(each, cue));
  return cues.length < MAX_CUES ? [...cues, cue] : cues;
}

/** Return the cues with one moved to another place. */
export function movedCue(cues: readonly Cue[], from: number, to: number): readonly Cue[] {
  const moved = cues[from];
  if (!moved || to < 0 || to >= cues.length) return cues;
  const rest = cues.filter((_, index) => index !== from);
  return [...rest.slice(0, to), moved, ...rest.slice(to)];
}

/** Return the place of the cue that plays after one; after the last, and where none was played, the first. */
export function followingCue(cues: readonly Cue[], last: Cue | null): number | null {
  if (!cues.length) return null;
  const at = last ? cues.findIndex((each) => sameCue(each, last)) : -1;
  return (at + 1) % cues.length;
}

/** Read cues as they were kept; what is none is left out. */
export function parsedCues(kept: string | null): readonly Cue[] {
  try {
    const read: unknown = JSON.parse(kept ?? "[]");
    if (!Array.isArray(read)) return [];
    const good = read.filter(
      (each): each is Cue =>
        typeof each === "object" &&
        each !== null &&
        ["action", "take", "preset"].includes((each as Cue).kind) &&
        typeof (each as Cue).name === "string",
    );
    return good.slice(0, MAX_CUES).map(({ kind, name }) => ({ kind, name }));
  } catch {
    return [];
  }
}

/** What a key means for the cues: a place, the next one or the last one again; null for no cue. */
export function cueOfKey(key: string): number | "next" | "again" | null {
  if (/^[1-9]$/.test(key)) return Number(key) - 1;
  if (key === "PageDown") return "next";
  return key === "PageUp" || key === "0" ? "again" : null;
}
