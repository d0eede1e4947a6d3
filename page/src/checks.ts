/** What a check says, as a person reads it: the pure part of the checks. */

import type { Severity } from "./types";

/** Return marks in the order to paint them: what is worst lies on top. */
export function worstLast<Found extends { severity: Severity }>(marks: readonly Found[]): Found[] {
  const order: Severity[] = ["note", "warning", "error"];
  return marks.toSorted((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
}
