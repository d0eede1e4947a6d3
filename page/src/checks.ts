/** What a check says, as a person reads it: the pure part of the checks. */

import type { Severity } from "./types";

const DEGREES = 180 / Math.PI;
const MOST_NAMES = 4;

/** Return the words with angles and speeds in degrees, as everywhere else on the page. */
export function inDegrees(words: string): string {
  const turned = (rad: string, per: string): string => {
    const value = Number(rad) * DEGREES;
    return (per ? value.toFixed(0) : value.toFixed(1).replace(/\.0$/, "")).replace("-", "\u2212");
  };
  return words.replace(
    /(-?\d+(?:\.\d+)?)(?: to (-?\d+(?:\.\d+)?))? rad(\/s)?(?![\w/])/g,
    (_, from: string, to: string | undefined, per = "") => `${turned(from, per)}°${to ? ` to ${turned(to, per)}°` : ""}${per}`,
  );
}

/** Part words that end in a long list of names from the names; a short list stays where it is. */
export function folded(words: string): { words: string; names: string[] } {
  const [, before, list] = /^([^:]+): ([^:]+)$/.exec(words) ?? [];
  const names = list?.split(", ") ?? [];
  return before && names.length > MOST_NAMES ? { words: before, names } : { words, names: [] };
}

/** Return marks in the order to paint them: what is worst lies on top. */
export function worstLast<Found extends { severity: Severity }>(marks: readonly Found[]): Found[] {
  const order: Severity[] = ["note", "warning", "error"];
  return marks.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}
