// A show in a real browser: two roles from two takes, by drag and by keys; a finding, a file that the command line
// checks, GO and STOP. Reads its task as JSON from standard input, prints what happened as JSON.

import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";

import { launch } from "./chromium.mjs";
import { check, until } from "./waiting.mjs";

const task = JSON.parse(readFileSync(0, "utf-8"));
const modules = createRequire(`${task.page}/package.json`);
const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf-8");
const report = { steps: [], console: [], failure: null };
const browser = await launch(task);

let page = null;
const $ = (name) => page.getByTestId(name);
const button = (name) => page.getByRole("button", { name, exact: true });
const clip = (name) => page.locator(`[data-testid=clip][data-name="${name}"]`);
const lane = (name) => page.locator(`[data-testid=lane][data-name="${name}"] [data-lane-area]`);
const take = (name) => page.locator(`[data-testid=carry][data-name="${name}"]`);
const at = async (name) => Number(await clip(name).first().getAttribute("data-at"));
const calm = () => until(async () => (await $("show-dock").getAttribute("data-checked")) === "true", "it is checked", 60_000);

async function open(width, height, more = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    hasTouch: width < 900,
    isMobile: width < 900,
    colorScheme: "dark",
    locale: "en-US",
    ...more,
  });
  context.setDefaultTimeout(30_000);
  page = await context.newPage();
  page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
  page.on("console", (said) => said.type() === "error" && !/status of 4\d\d/.test(said.text()) && report.console.push(said.text()));
  await page.addInitScript(() => localStorage.setItem("rote.tips", "yes"));
  await page.goto(`${task.url}#/show`);
  await until(async () => (await $("pill").getAttribute("data-state")) === "connected", "the robot is connected", 30_000);
  return context;
}

/** A picture where one is wanted, and what axe finds here. It takes its time, so only where pictures are taken or `always`. */
async function look(name, always = false) {
  if (!always && !task.pictures) return;
  await page.evaluate(axe);
  await page.waitForTimeout(300);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
  });
  if (task.pictures) await page.screenshot({ path: `${task.pictures}/show-${name}.png` });
  check(found.length === 0, `${name}: ${found.join("\n")}`);
  check((await page.locator("h1").count()) === 1, `${name} has one h1`);
}

/** No part of the page is wider than the screen, and STOP is seen whole. */
async function fits(name) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(wide <= 0, `${name} is ${wide} px too wide`);
  const box = await $("stop").boundingBox();
  const { width, height } = page.viewportSize();
  check(box && box.x >= 0 && box.x + box.width <= width && box.y + box.height <= height, `${name} shows STOP`);
}

/** Press GO, say yes to warnings, and wait; return whether the section plays. */
async function goes() {
  if (await $("stop-holds").count()) {
    await $("release").click();
    await page.locator("dialog").getByRole("button", { name: "Release" }).click();
    await $("stop-holds").waitFor({ state: "detached" });
  }
  await until(async () => $("go").isEnabled(), "GO can be pressed", 60_000);
  await $("go").click();
  const asks = page.locator("dialog").getByRole("button", { name: "Run it" });
  await until(async () => (await asks.count()) + (await $("run").count()) + (await $("last-show").count()) > 0, "it answers", 60_000);
  if (await asks.count()) await asks.click();
  const words = async () => ((await $("run").count()) ? $("run").innerText().catch(() => "") : "");
  let began = false;
  await until(
    async () => {
      const said = await words();
      began ||= said !== "";
      return /plays/.test(said) || (began && said === "");
    },
    "it plays, or was too late",
    60_000,
  );
  return /plays/.test(await words());
}

let first = null;
const story = {
  "a take is dragged onto a lane, another is added by keys": async () => {
    first = await open(task.pictures ? 1440 : 1180, task.pictures ? 900 : 760);
    await $("new-show").click();
    await $("lanes").waitFor();
    check((await $("lane").count()) === 2, "there are two roles");
    await take("wave").waitFor();
    await take("wave").scrollIntoViewIfNeeded();
    const from = await take("wave").boundingBox();
    const to = await lane("role 1").boundingBox();
    await page.mouse.move(from.x + 30, from.y + from.height / 2);
    await page.mouse.down();
    await page.mouse.move(to.x + 40, to.y + 20, { steps: 8 });
    await page.mouse.up();
    await clip("wave").waitFor();
    check((await clip("wave").getAttribute("data-role")) === "role 1", "it is on the lane it was dropped on");
    check((await at("wave")) > 0, "it is where it was dropped");
    await button("Role role 2: add to this lane").focus();
    await page.keyboard.press("Enter");
    await button("Add bow to role 2").focus();
    await page.keyboard.press("Enter");
    await clip("bow").waitFor();
    check((await clip("bow").getAttribute("data-role")) === "role 2", "it is on the chosen lane");
  },
  "clips are moved and trimmed by pointer and by keys, and a step goes back": async () => {
    await clip("wave").focus();
    await page.keyboard.press("Home");
    check((await at("wave")) === 0, "Home puts it at the beginning");
    await page.keyboard.press("PageUp");
    await page.keyboard.press("ArrowRight");
    check((await at("wave")) === 0.55, "keys move it");
    const length = Number(await clip("wave").getAttribute("data-length"));
    const edge = await page.locator("[data-picked] [data-testid=trim-to]").boundingBox();
    await page.mouse.move(edge.x + edge.width / 2, edge.y + edge.height / 2);
    await page.mouse.down();
    await page.mouse.move(edge.x - 60, edge.y + 10, { steps: 5 });
    await page.mouse.up();
    const trimmed = Number(await clip("wave").getAttribute("data-length"));
    check(trimmed < length - 0.2 && (await at("wave")) === 0.55, "its end is trimmed, its beginning stays");
    const body = await clip("bow").boundingBox();
    await page.mouse.move(body.x + body.width / 2, body.y + body.height / 2);
    await page.mouse.down();
    await page.mouse.move(body.x + body.width / 2 + 80, body.y + body.height / 2, { steps: 5 });
    await page.mouse.up();
    check((await at("bow")) > 0.2, "a pointer moves it");
    await clip("bow").focus();
    await page.keyboard.press("ArrowUp");
    check((await clip("bow").getAttribute("data-role")) === "role 1", "a key moves it to another lane");
    await page.keyboard.press("Control+z");
    check((await clip("bow").getAttribute("data-role")) === "role 2", "a step goes back");
  },
  "a finding is on its lane at its second, and goes when it is mended": async () => {
    await button("Role role 2: add to this lane").click();
    await button("Add wave to role 2").click();
    await calm();
    await clip("wave").nth(1).focus();
    for (let press = 0; press < 5; press += 1) await page.keyboard.press("PageDown");
    await until(async () => (await $("lane-finding").count()) > 0, "the overlap is marked", 60_000);
    await calm();
    const mark = page.locator("[data-testid=lane][data-name='role 2'] [data-testid=lane-finding]").first();
    check((await mark.getAttribute("data-severity")) === "error", "it is an error");
    check(Math.abs(Number(await mark.getAttribute("data-at")) - (await clip("wave").nth(1).getAttribute("data-at"))) < 0.02, "it is at its second");
    check(/before the clip before it has ended/.test(await $("show-check").innerText()), "it is told in words");
    await look("finding");
    await clip("wave").nth(1).focus();
    await page.keyboard.press("Delete");
    await calm();
    await until(async () => (await $("lane-finding").count()) === 0, "it is gone", 60_000);
  },
  "cues: a sound with its waveform, speech and light": async () => {
    await $("add-sound").setInputFiles([task.sound]);
    await page.getByText("Added bell.wav").waitFor();
    await $("add-cue-sound").click();
    await $("wave").waitFor();
    await $("add-cue-light").click();
    await $("add-cue-say").click();
    check((await $("cue").count()) === 3, "each has its place");
    await page.locator("[data-testid=cue][data-kind=light]").focus();
    await page.keyboard.press("PageUp");
    check((await page.locator("[data-testid=cue][data-kind=light]").getAttribute("data-at")) === "0.50", "keys move a cue");
    await calm();
    await look("cues", true);
    // Simulated robots have no voice: their cues go, so that GO works below.
    for (const kind of ["light", "say"]) {
      await page.locator(`[data-testid=cue][data-kind=${kind}]`).focus();
      await page.keyboard.press("Delete");
    }
    await page.locator("[data-testid=cue]").focus();
    await page.keyboard.press("Delete");
  },
  "it is saved, and the command line checks that very file": async () => {
    await $("save-show").click();
    await page.locator("dialog input").fill("greeting");
    await page.locator("dialog").getByRole("button", { name: "Save" }).click();
    await until(async () => (await $("show-file").getAttribute("data-name")) === "greeting", "it has its name");
    await $("show-unsaved").waitFor({ state: "detached" });
    const [program, ...before] = task.rote;
    const done = await promisify(execFile)(program, [...before, "show", "check", task.file, "--json"], {
      env: { ...process.env, ROTE_HOME: task.home },
    });
    const told = JSON.parse(done.stdout);
    check(told.ok === true, "the command line finds it fit");
    const shown = JSON.parse(readFileSync(task.file, "utf-8"));
    check(Object.keys(shown.roles).length === 2 && shown.sections[0].clips.length === 2, "the file has what was made");
    check(shown.sections[0].clips[0].to_s > 0 && shown.sections[0].clips[0].at_s === 0.55, "trim and place are in it");
    await page.reload();
    await clip("wave").waitFor();
    check((await at("wave")) === 0.55, "it is there after a reload");
  },
  "the whole cast is previewed side by side": async () => {
    const author = page;
    const context = await open(1180, 760, { draws: true });
    await until(async () => (await page.locator("[data-testid=stage][data-state=shown]").count()) === 1, "it is drawn", 60_000);
    await page.getByText("Preview of the whole cast").waitFor();
    await calm();
    await $("show-preview").click();
    await until(async () => Number.parseFloat(await $("show-moment").innerText()) > 0.6, "the moment goes on");
    await $("show-preview").click();
    await look("1440");
    await context.close();
    page = author;
  },
  "it fits every width": async () => {
    for (const [width, height] of [[1024, 768], [768, 1024]]) {
      await page.setViewportSize({ width, height });
      await fits(String(width));
      await look(String(width));
    }
    await page.setViewportSize({ width: 1181, height: 760 });
  },
  "GO moves the robots together, and STOP stops everybody": async () => {
    await until(async () => (await page.locator("[data-testid=stage-robot][data-state=connected]").count()) === 2, "both are ready", 60_000);
    check(/±\d/.test(await $("go-card").innerText()), "the clock's bound is shown");
    await calm();
    // A computer that has too much to do is too late for a section, which then does not begin: once more.
    for (let tries = 1; !(await goes()); tries += 1) check(tries < 5, "the section plays");
    if (task.pictures) await page.screenshot({ path: `${task.pictures}/show-running.png` });
    await $("stop").click();
    await $("stop-holds").waitFor();
    await until(async () => /have confirmed it/.test(await $("stop-holds").innerText()), "all have confirmed it", 15_000);
    check((await $("run").count()) === 0, "no show is under way");
    check(await $("go").isDisabled(), "GO waits for a person to release the STOP");
    await look("stopped");
    await $("release").click();
    await page.locator("dialog").getByRole("button", { name: "Release" }).click();
    await $("stop-holds").waitFor({ state: "detached" });
    await first.close();
  },
  "a phone has GO, lamps and STOP alone": async () => {
    const context = await open(390, 844);
    await $("go").waitFor();
    await until(async () => (await $("show-file").getAttribute("data-name")) === "greeting", "the show is chosen");
    check((await $("stage-robot").count()) === 2, "each robot has its lamp");
    check((await $("lanes").count()) === 0, "nothing is edited there");
    await fits("390");
    await look("390", true);
    await page.setViewportSize({ width: 320, height: 640 });
    await fits("320");
    await look("320");
    await context.close();
  },
};

for (const [name, live] of Object.entries(story)) {
  const began = Date.now();
  try {
    await live();
  } catch (error) {
    report.failure = String(error.message ?? error);
    report.said = await page.evaluate(() => document.body.innerText.slice(0, 2500)).catch(() => "");
    await page.screenshot({ path: task.picture }).catch(() => undefined);
  }
  report.steps.push({ name, ms: Date.now() - began });
  if (report.failure) break;
}
await browser.close();
console.log(JSON.stringify(report));
