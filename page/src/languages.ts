/** The languages of the page. A new one is a file like texts-de.ts, and one line here. */

import { recall, remember } from "./storage";
import { GERMAN } from "./texts-de";

/** A catalogue that may lack texts: those stay English. */
export type Translation<Part> = {
  readonly [Key in keyof Part]?: Part[Key] extends (...facts: never[]) => string
    ? Part[Key]
    : Part[Key] extends string | readonly unknown[]
      ? Part[Key]
      : Translation<Part[Key]>;
};

/** By their codes, each called as its speakers call it. */
export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;
export type LanguageChoice = "auto" | Language;
export const CHOICES: readonly LanguageChoice[] = ["auto", "en", "de"];
const TRANSLATIONS = { de: GERMAN } as const;
const KEY = "language";

/** What the person has chosen. */
export function languageChoice(): LanguageChoice {
  const stored = recall("localStorage", KEY) as LanguageChoice | null;
  return stored && CHOICES.includes(stored) ? stored : "auto";
}

/** Choose, and open the page anew in that language. */
export function chooseLanguage(choice: LanguageChoice): void {
  remember("localStorage", KEY, choice);
  location.reload();
}

/** Return the language for a choice; the first of the browser's languages that there is, English else. */
export function languageFor(choice: LanguageChoice, browser: readonly string[]): Language {
  if (choice !== "auto") return choice;
  const known = browser.map((each) => each.slice(0, 2).toLowerCase()).find((code) => code in LANGUAGES);
  return (known as Language | undefined) ?? "en";
}

/** The language that is shown, until the page is opened anew. */
export const language: Language = languageFor(
  languageChoice(),
  typeof navigator === "undefined" ? [] : (navigator.languages ?? []),
);

/** Return the catalogue in the language that is shown. */
export function inLanguage<Catalogue>(english: Catalogue): Catalogue {
  if (language === "en") return english;
  return translated(english, TRANSLATIONS[language] as unknown as Translation<Catalogue>);
}

/** Return a catalogue with the words of a translation where it has some. */
export function translated<Part>(english: Part, other: Translation<Part>): Part {
  const merged: Record<string, unknown> = { ...(english as object) };
  for (const [key, words] of Object.entries(other)) {
    const own = merged[key];
    const deeper = typeof words === "object" && !Array.isArray(words) && words !== null;
    merged[key] = deeper ? translated(own, words as Translation<typeof own>) : words;
  }
  return merged as Part;
}
