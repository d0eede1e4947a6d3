// A show in a real browser: from nothing to GO with three robots in ten clicks, and its cue list; then takes by drag and
// by keys, a finding, a file that the command line checks, GO and STOP.

import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

const modules = createRequire(`${task.page}/package.json`);
const axe = readFileSync(modules.resolve("axe-core/axe.min.js"), "utf-8");
export const report = { steps: [], console: [], failure: null };
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

/** Press GO once all robots are ready and at rest, say yes to warnings, and wait until the section plays. */
async function go() {
  const resting = $("stage-robot").filter({ hasText: "ready" });
  await until(async () => (await resting.count()) === 3 && (await $("go").isEnabled()), "GO can be pressed", 60_000);
  await $("go").click();
  const asks = page.locator("dialog").getByRole("button", { name: "Run it" });
  await asks.or($("run")).first().waitFor({ timeout: 60_000 });
  if (await asks.count()) await asks.click();
  await $("run").getByText("plays").or($("last-show")).first().waitFor({ timeout: 60_000 });
  check((await $("last-show").count()) === 0, `the section plays: ${await $("go-card").innerText()}`);
}

let clicks = 0;
async function click(name) {
  clicks += 1;
  await (typeof name === "string" ? $(name) : name).click();
}

/** Drag a take onto a lane; that counts as one click. */
async function drag(name, role) {
  clicks += 1;
  await take(name).scrollIntoViewIfNeeded();
  const from = await take(name).boundingBox();
  const to = await lane(role).boundingBox();
  await page.mouse.move(from.x + 30, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(to.x + 20, to.y + 20, { steps: 8 });
  await page.mouse.up();
}

/** Wait until the stage is in a state, at a section. */
const running = (state, section) =>
  until(
    async () =>
      (await $("run").getAttribute("data-state")) === state && (await $("run").getAttribute("data-section")) === section,
    `“${section}” is ${state}`,
    60_000,
  );
const lamps = (lamp) =>
  until(async () => (await page.locator(`[data-testid=stage-robot][data-lamp="${lamp}"]`).count()) === 3, `all lamps: ${lamp}`, 60_000);
const atRest = () => until(async () => (await $("stage-robot").filter({ hasText: "ready" }).count()) === 3, "all are at rest", 60_000);

let first = null;
const story = {
  "a show of three robots is built from nothing to GO in ten clicks": async () => {
    first = await open(task.pictures ? 1440 : 1180, task.pictures ? 900 : 760);
    await until(async () => (await page.locator("[data-testid=stage-robot][data-state=connected]").count()) === 3, "all are there", 60_000);
    await take("wave").or($("new-show")).first().waitFor();
    await click("new-show");
    await $("lanes").waitFor();
    for (const role of ["role 1", "role 2", "role 3"]) await drag("wave", role);
    await click("add-section");
    await drag("bow", "role 1");
    await click("save-show");
    await page.locator("dialog input").fill("ten clicks");
    await click(page.locator("dialog").getByRole("button", { name: "Save" }));
    await until(async () => (await $("show-file").getAttribute("data-name")) === "ten clicks", "it is saved");
    await calm();
    await until(() => $("go").isEnabled(), "GO can be pressed", 60_000);
    await atRest();
    await click("go");
    const asks = page.locator("dialog").getByRole("button", { name: "Run it" });
    await asks.or($("run")).first().waitFor({ timeout: 60_000 });
    if (await asks.count()) await click(asks);
    await running("playing", "Section 1");
    check(clicks <= 10, `${clicks} clicks`);
  },
  "pause, resume, BACK and skip are those of the stage": async () => {
    await lamps("playing");
    // A pause is refused while a robot moves to its first pose.
    await until(async () => /^[123] s/.test(await $("time-left").innerText()), "all play", 30_000);
    await $("cue-pause").click();
    await lamps("paused");
    await running("paused", "Section 1");
    check(/left/.test(await $("time-left").innerText()), "the time left is shown");
    check(/Next: Section 2/.test(await $("next-section").innerText()), "the next section is shown");
    await look("paused", true);
    const left = await $("time-left").innerText();
    await page.waitForTimeout(1200);
    check((await $("time-left").innerText()) === left, "the time stands still");
    await $("cue-pause").click();
    await running("playing", "Section 1");
    await $("cue-back").click();
    await running("waiting", "Section 1");
    await $("cue-skip").click();
    await running("waiting", "Section 2");
    await button("Start here: Section 1").click();
    await running("waiting", "Section 1");
    await button("Mute robot3").click();
    await until(async () => (await page.locator("[data-testid=stage-robot][data-lamp=muted]").count()) === 1, "one is muted");
    await button("Unmute robot3").click();
    await atRest();
    await $("go").click();
    await running("playing", "Section 1");
  },
  "after a STOP the page tells who is ready, and GO begins the section again": async () => {
    await lamps("playing");
    await $("stop").click();
    await running("stopped", "Section 1");
    await lamps("STOPPED");
    await until(async () => (await page.locator("[data-testid=readiness][data-ready=true]").count()) === 3, "all are ready", 30_000);
    check(await $("go").isDisabled(), "GO waits for the reset");
    await look("stopped", true);
    await $("release").click();
    await page.locator("dialog").getByRole("button", { name: "Reset the STOP" }).click();
    await running("waiting", "Section 1");
    await atRest();
    check(/GO: Section 1/.test(await $("go").innerText()), "GO begins the stopped section");
    await $("go").click();
    await running("playing", "Section 1");
    await $("cue-finish").click();
    await $("last-show").waitFor();
    check(/ended by the operator/.test(await $("last-show").innerText()), "it tells how it ended");
    await first.close();
  },
  "a take is dragged onto a lane, another is added by keys": async () => {
    first = await open(task.pictures ? 1440 : 1180, task.pictures ? 900 : 760);
    await $("new-show").click();
    await $("lanes").waitFor();
    check((await $("lane").count()) === 3, "there is a role for each robot");
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
    check(/before the previous clip ends/.test(await $("show-check").innerText()), "it is told in words");
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
    await $("hold").check();
    await page.getByLabel("More about role 1").click();
    await $("role-loss").first().selectOption("drop");
    await look("roles");
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
    check(Object.keys(shown.roles).length === 3 && shown.sections[0].clips.length === 2, "the file has what was made");
    check(shown.sections[0].clips[0].to_s > 0 && shown.sections[0].clips[0].at_s === 0.55, "trim and place are in it");
    check(shown.sections[0].hold === true && shown.roles["role 1"].on_loss === "drop", "and hold and the optional role");
    await $("lock-show").click();
    await until(async () => /Locked since/.test(await $("lock-state").innerText()), "it is locked");
    const opened = page.context().waitForEvent("page");
    await $("cue-sheet").click();
    const sheet = await opened;
    await sheet.getByText("take wave").first().waitFor();
    const line = await sheet.locator("td").first().evaluate((cell) => getComputedStyle(cell).borderTopStyle);
    check(line === "solid", "the cue sheet has its own styles");
    await sheet.close();
    await $("lock-show").click();
    await $("lock-state").waitFor({ state: "detached" });
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
    await until(async () => (await page.locator("[data-testid=stage-robot][data-state=connected]").count()) === 3, "all are ready", 60_000);
    check(/±\d/.test(await $("go-card").innerText()), "the clock's bound is shown");
    await calm();
    await go();
    if (task.pictures) await page.screenshot({ path: `${task.pictures}/show-running.png` });
    await $("stop").click();
    await $("stop-holds").waitFor();
    await until(async () => /have confirmed it/.test(await $("stop-holds").innerText()), "all have confirmed it", 15_000);
    check(await $("go").isDisabled(), "GO waits for a person to reset the STOP");
    await $("release").click();
    await page.locator("dialog").getByRole("button", { name: "Reset the STOP" }).click();
    await $("stop-holds").waitFor({ state: "detached" });
    await first.close();
  },
  "a phone has GO, lamps and STOP alone": async () => {
    const context = await open(390, 844);
    await $("go").waitFor();
    await until(async () => (await $("show-file").getAttribute("data-name")) === "greeting", "the show is chosen");
    check((await $("stage-robot").count()) === 3, "each robot has its lamp");
    const size = async (name) => {
      const { width, height } = await $(name).boundingBox();
      return width * height;
    };
    check((await size("stop")) > (await size("go")), "STOP is larger than GO");
    check((await $("lanes").count()) === 0, "nothing is edited there");
    await fits("390");
    await look("390", true);
    await page.setViewportSize({ width: 320, height: 640 });
    await fits("320");
    await look("320");
    check((await size("stop")) > (await size("go")), "STOP is larger than GO on a small phone");
    await page.setViewportSize({ width: 844, height: 390 });
    await fits("844");
    await look("844");
    check((await size("stop")) > (await size("go")), "STOP is larger than GO on a phone held sideways");
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
