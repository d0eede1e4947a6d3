/** Sentences of the server as this page says them: angles in degrees, acts as its own buttons. */

import type { FactNow, TextNow } from "./api-types";
import { decimal } from "./format";
import { ENGLISH, TEXTS } from "./texts";

const DEGREES = 180 / Math.PI;
const MAX_NAMES = 4;

export interface Worded {
  message: string;
  remedy: string;
  texts?: { message: TextNow; remedy: TextNow } | null;
}

type Refusal = keyof typeof ENGLISH.refusals;
/** The templates of the server that this page has in its language. */
const TRANSLATED = new Map<string, string>(
  Object.entries(ENGLISH.refusals).map(([key, template]) => [template, TEXTS.refusals[key as Refusal]]),
);

/** Return a sentence of the server in the words of this page, in its language where it has a translation. */
export function worded(text: TextNow, translations: ReadonlyMap<string, string> = TRANSLATED): string {
  const template = translations.get(text.template) ?? text.template;
  return template.replace(/\{\{|\}\}|\{(\w+)\}/g, (whole: string, name: string | undefined) => {
    const fact = name === undefined ? undefined : text.facts[name];
    return fact === undefined ? whole.charAt(0) : shown(fact);
  });
}

/** Return the message in the language of the page; one without its facts stays as it was sent. */
export function message(item: Worded): string {
  return item.texts ? worded(item.texts.message) : item.message;
}

/** Return what to do next. */
export function remedy(item: Worded): string {
  return item.texts ? worded(item.texts.remedy) : item.remedy;
}

/** Return the message without a long list of names, and that list; a short list stays in the message. */
export function folded(item: Worded): { message: string; names: string[] } {
  for (const [name, fact] of Object.entries(item.texts?.message.facts ?? {})) {
    const names = fact.names ?? [];
    if (item.texts && names.length > MAX_NAMES) {
      const template = item.texts.message.template.replace(new RegExp(`:? *\\{${name}\\}`), "");
      return { message: worded({ ...item.texts.message, template }), names };
    }
  }
  return { message: message(item), names: [] };
}

function shown(fact: FactNow): string {
  if (fact.act) return TEXTS.acts[fact.act];
  if (fact.names) return fact.names.join(", ");
  if (typeof fact.value === "number") return quantity(fact.value, fact.unit ?? "", fact.digits ?? 0);
  if (typeof fact.low === "number" && typeof fact.high === "number") {
    const [low, high] = [fact.low, fact.high].map((end) => quantity(end, fact.unit ?? "", fact.digits ?? 0));
    return `${low} to ${high}`;
  }
  if (fact.template !== undefined && fact.template !== null)
    return worded({ template: fact.template, facts: fact.facts ?? {} });
  return fact.text ?? "";
}

/** Return a number with its unit; angles and turning speeds in degrees. */
function quantity(value: number, unit: string, digits: number): string {
  const turn = /^rad(\/s2?)?$/.exec(unit);
  if (!turn) return `${number(value.toFixed(digits))}${unit ? ` ${unit}` : ""}`;
  const per = turn[1] ?? "";
  const angle = value * DEGREES;
  return `${number(per ? angle.toFixed(0) : angle.toFixed(1).replace(/\.0$/, ""))}°${per.replace("2", "²")}`;
}

function number(written: string): string {
  return decimal(written.replace("-", "\u2212"));
}
