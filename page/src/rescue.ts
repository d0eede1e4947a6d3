/**
 * STOP, where the page itself has failed. It depends on nothing of it: whenever the page shows no STOP,
 * this does, with a way back.
 */

import "./rescue.css";

const CHECK_MS = 300;
/** A stop that is not answered within this time has failed. */
const STOP_MS = 1500;
/** Time limit for the page to show its STOP. */
const PATIENCE_MS = 3000;
const ENGLISH = {
  failed: "This page has failed. The robot can still be stopped here.",
  stop: "STOP",
  note: "Software stop, not an emergency stop",
  back: "Reload the page",
  sent: "Stopping…",
  lost: "STOP did not get through. Use the remote.",
};
/** Its own, since it depends on nothing of the page. */
const GERMAN: typeof ENGLISH = {
  failed: "Diese Seite ist gescheitert. Der Roboter lässt sich hier noch stoppen.",
  stop: "STOP",
  note: "Software-Stopp, kein Not-Halt",
  back: "Seite neu laden",
  sent: "Wird gestoppt…",
  lost: "STOP kam nicht an. Die Fernbedienung benutzen.",
};

function wanted(): string {
  try {
    const chosen = window.localStorage.getItem("rote.language");
    if (chosen && chosen !== "auto") return chosen;
  } catch {
    // As the browser, then.
  }
  return navigator.languages.find((each) => /^(de|en)/.test(each)) ?? "en";
}
const WORDS = wanted().startsWith("de") ? GERMAN : ENGLISH;

const opened = performance.now();
let box: HTMLElement | null = null;
let note: HTMLElement | null = null;

async function stop(): Promise<void> {
  if (note) note.textContent = WORDS.sent;
  let words = WORDS.lost;
  try {
    const headers = { "Content-Type": "application/json" };
    const signal = AbortSignal.timeout(STOP_MS);
    const answer = await fetch("/api/stop", { method: "POST", headers, body: "{}", signal });
    if (answer.ok) words = ((await answer.json()) as { message: string }).message;
  } catch {
    // `words` is the failure message already.
  }
  if (note) note.textContent = words;
}

function made<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, name: string, words: string) {
  const element = document.createElement(tag);
  element.className = name;
  element.textContent = words;
  return element;
}

function show(): void {
  box = made("section", "rescue", "");
  box.dataset["testid"] = "rescue";
  note = made("p", "rescue-message", WORDS.failed);
  note.setAttribute("role", "alert");
  const button = made("button", "rescue-stop", WORDS.stop);
  button.dataset["testid"] = "rescue-stop";
  button.addEventListener("pointerdown", () => void stop());
  button.addEventListener("click", (event) => {
    if (event.detail === 0) void stop();
  });
  const back = made("a", "rescue-back", WORDS.back);
  back.href = "./#/robot";
  back.addEventListener("click", () => setTimeout(() => location.reload(), 0));
  box.append(note, button, made("p", "rescue-note", WORDS.note), back);
  document.body.append(box);
}

addEventListener(
  "keydown",
  (event) => {
    if (box && (event.key === "Escape" || event.key === " ")) void stop();
  },
  { capture: true },
);

let failed = false;
addEventListener("error", () => {
  failed = true;
});

setInterval(() => {
  const there = document.querySelector("[data-testid=stop]") !== null;
  if (there && box) {
    box.remove();
    box = note = null;
  } else if (!there && !box && (failed || performance.now() - opened > PATIENCE_MS)) show();
}, CHECK_MS);
