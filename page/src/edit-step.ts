/** From what is typed into a tool to the step that the server applies. */
import type { EditFacts, EditParameter, Step } from "./types";

export type Value = number | boolean | string | string[] | null;
export type Values = Record<string, Value>;

/** The numbers of a text like `0, 0, 0.05` or `2.3 s: 0.35, -0.2, 1.1`; null if one is none. */
export function parseNumbers(text: string): number[] | null {
  const words = text.split(/[\s,:=]+/).filter((word) => word !== "" && word !== "s" && word !== "m");
  const numbers = words.map(Number);
  return numbers.every(Number.isFinite) ? numbers : null;
}

/** The value of a parameter as the server wants it; null if what was typed is not complete. */
export function typedValue({ kind, columns }: EditParameter, value: Value): unknown {
  if (kind !== "numbers" && kind !== "rows") return value;
  const rows = String(value ?? "")
    .split(";")
    .filter((row) => row.trim() !== "")
    .map(parseNumbers);
  if (rows.length === 0 || rows.some((row) => row?.length !== columns)) return null;
  return kind === "rows" ? rows : rows[0];
}

/** The step that an edit makes of what was chosen; what was left open is left out. */
export function made(edit: EditFacts, values: Values, others: readonly string[]): Step {
  const given = edit.parameters
    .map((each) => [each.name, typedValue(each, values[each.name] ?? null)] as const)
    .filter(([, value]) => value !== null && value !== "" && value !== false);
  const beside = edit.takes === 1 ? { other: others[0] } : edit.takes === -1 ? { others: [...others] } : {};
  return { op: edit.name, ...Object.fromEntries(given), ...beside } as unknown as Step;
}
