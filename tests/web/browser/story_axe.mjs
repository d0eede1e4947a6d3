// Every screen as axe sees it: no findings, one h1, at three sizes, in light and dark, in English and German.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

const modules = createRequire(`${task.page}/package.json`);
const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf-8");
export const report = { steps: [], console: [], failure: null };
const browser = await launch(task);

let page = null;
const $ = (name) => page.getByTestId(name);
const to = (screen) => page.evaluate((where) => (location.hash = `#/${where}`), screen);
const api = (path, body) =>
  page.evaluate(
    async ([where, what]) => {
      const client = sessionStorage.getItem("rote.client");
      const headers = { "Content-Type": "application/json", "X-Rote-Client": client };
      return (await fetch(`/api/${where}`, { method: "POST", headers, body: JSON.stringify(what) })).status;
    },
    [path, body],
  );

const findings = new Set();

/** Look at the page as it is now. */
async function look(where) {
  await page.waitForTimeout(250);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  });
  for (const each of found) findings.add(`${where}: ${each}`);
  const titles = await page.locator("h1").count();
  check(titles === 1, `${where} has ${titles} h1`);
  const running = await page.evaluate(
    () => document.getAnimations().filter(({ playState }) => playState === "running").length,
  );
  check(running === 0, `${where}: ${running} animations although motion is to be reduced`);
}

async function open(width, height, scheme, locale) {
  const context = await browser.newContext({
    viewport: { width, height },
    hasTouch: width < 900,
    isMobile: width < 900,
    colorScheme: scheme,
    locale,
    draws: task.whole && width > 1024, // the learning screen's story looks at a drawn view, too
  });
  context.setDefaultTimeout(30_000);
  page = await context.newPage();
  page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
  await page.goto(task.url);
  await until(async () => (await $("pill").getAttribute("data-state")) === "connected", "the robot is connected", 30_000);
  await until(async () => (await api("command/take", {})) === 200, "it commands", 15_000);
  await until(async () => (await $("watching").count()) === 0, "it commands", 15_000);
  await page.evaluate(axe);
  return context;
}

/** The screens as they are when they are opened. */
async function screens(width, height, scheme, locale) {
  const context = await open(width, height, scheme, locale);
  for (const screen of ["robot", "teach", "library", "cues", "edit", "show"]) {
    await to(screen);
    await look(screen);
  }
  await context.close();
  check(findings.size === 0, [...findings].join("\n"));
}

/** The screens with all that opens on them, while somebody teaches and edits. */
async function everything(width, height, scheme, locale) {
  const context = await open(width, height, scheme, locale);
  await look("the robot");
  await page.locator("main details summary").first().click();
  await look("another robot");
  await $("people").click();
  await look("who is here");
  await $("people").click();
  await $("settings").click();
  await look("settings");
  await $("settings").click();
  await to("teach");
  await look("the tips");
  await page.locator("[data-testid=tips] button").click();
  await look("before teaching");
  await api("teach/start", { name: `taught at ${width}` });
  await $("recording").waitFor();
  await api("teach/hand", { script: "wave", seconds: 2 });
  await page.waitForTimeout(1200);
  await look("recording");
  await $("teach-end").click();
  await $("result").waitFor();
  await look("what was taught");
  await to("library");
  await $("take").first().waitFor();
  await look("the library");
  await $("take").first().locator("[aria-expanded]").click();
  await $("trash").locator("[aria-expanded]").click();
  await look("the library's rows and trash");
  await $("take").first().getByTestId("star").click();
  await $("upload").setInputFiles([{ name: "a file.csv", mimeType: "text/csv", buffer: Buffer.from("t,x\n") }]);
  await $("upload-row").waitFor();
  await look("adding a file");
  await page.keyboard.press("Escape");
  await to("cues");
  await $("pad").waitFor();
  await look("the cues");
  await $("cue-pad").locator("button[aria-pressed]").click();
  await look("arranging the cues");
  await to("edit");
  await look("choosing a take");
  await page.evaluate((name) => (location.hash = `#/edit/${encodeURIComponent(name)}`), `taught at ${width}`);
  await $("dock").waitFor();
  await look("the editor");
  await page.evaluate(() => fetch("/api/stop", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }));
  await context.close();
  check(findings.size === 0, [...findings].join("\n"));
}

const phone = { "a phone": () => everything(390, 844, "light", "en-US") };
const story = task.whole
  ? {
      "a desk in the dark": () => everything(1440, 900, "dark", "en-US"),
      "a tablet": () => screens(1024, 768, "light", "de-DE"),
      ...phone,
    }
  : { "a desk in the dark": () => screens(1440, 900, "dark", "de-DE"), ...phone };

for (const [name, live] of Object.entries(story)) {
  const began = Date.now();
  try {
    await live();
  } catch (error) {
    report.failure = String(error.message ?? error);
    await page.screenshot({ path: task.picture }).catch(() => undefined);
  }
  report.steps.push({ name, ms: Date.now() - began });
  if (report.failure) break;
}
await browser.close();
