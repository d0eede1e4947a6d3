// What a person does to learn a motion from three takes: choose them, drag a hand in the view, and save a take.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

const axe = readFileSync(createRequire(`${task.page}/package.json`).resolve("axe-core/axe.min.js"), "utf-8");
export const report = { steps: [], console: [], failure: null };
const browser = await launch(task);
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: "dark", draws: true });
context.setDefaultTimeout(30_000);
const page = await context.newPage();
// The browser itself logs an answer that is a refusal.
page.on("console", (message) => message.type() === "error" && !message.text().includes("400 (") && report.console.push(message.text()));
page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
const $ = (name) => page.getByTestId(name);
const photograph = async (name) => task.pictures && page.screenshot({ path: `${task.pictures}/${name}.png` });
const middle = ({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 });
const checked = () => until(async () => (await $("against").getAttribute("data-checked")) === "true", "the motion is checked", 60_000);
const line = () => $("path-right_arm").locator("polyline").last().getAttribute("points");
async function look(where) {
  await page.waitForTimeout(250);
  const found = await page.evaluate(async () =>
    (await window.axe.run(document, { resultTypes: ["violations"] })).violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`,
    ),
  );
  check(found.length === 0, `${where}: ${found.join("\n")}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  check(wide <= 0, `${where}: nothing is too wide`);
}
const drag = async (by) => {
  const from = middle(await $("end-right_arm").boundingBox());
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  for (const share of [0.25, 0.5, 0.75, 1]) {
    await page.mouse.move(from.x + share * by.x, from.y + share * by.y);
    await page.waitForTimeout(80);
  }
  return from;
};

const story = {
  "three takes are chosen in the library": async () => {
    await page.goto(`${task.url}#/library`);
    await page.evaluate(axe);
    await $("learn-open").click();
    const learn = $("learn");
    for (const name of task.takes.slice(0, 2)) await page.getByLabel(`Learn from ${name}`, { exact: true }).check();
    check(await learn.isDisabled(), "two are too few");
    await page.getByLabel(`Learn from ${task.takes[2]}`, { exact: true }).check();
    await look("choosing takes");
    await photograph("choose-takes-1440");
    await learn.click();
    await page.getByRole("heading", { name: "Learned from 3 takes" }).waitFor();
    await checked();
    await until(async () => (await $("stage").getAttribute("data-state")) === "shown", "the robot is drawn", 30_000);
    await until(async () => ((await line()) ?? "").includes(" "), "the path of the hand is drawn");
  },
  "a hand is dragged, and the whole motion follows before anything is saved": async () => {
    const before = await line();
    const from = await drag({ x: 14, y: -18 });
    await until(async () => (await line()) !== before, "the motion follows while the hand is held");
    await page.mouse.up();
    await $("targets").getByText("Right hand at").waitFor();
    await checked();
    await page.waitForTimeout(300);
    const to = middle(await $("end-right_arm").boundingBox());
    check(Math.hypot(to.x - from.x - 14, to.y - from.y + 18) < 14, `the hand is where it was dragged: ${JSON.stringify({ from, to })}`);
    await look("a learned motion");
    await photograph("learned-1440");
    const takes = await page.evaluate(async () => (await (await fetch("/api/takes")).json()).total);
    check(takes === task.takes.length, "nothing is saved");
  },
  "what is far from the takes is warned of, and what is out of reach is refused": async () => {
    await $("end-right_arm").focus();
    for (let press = 0; press < 6; press += 1) await page.keyboard.press("ArrowDown");
    await $("far").getByText("standard deviations from the takes").waitFor();
    await page.keyboard.press("Enter");
    await checked();
    await $("learned-duration").fill("0.5");
    await $("learned-duration").press("Enter");
    await $("against").getByText(/too fast|misses/).first().waitFor();
    await $("learned-duration").fill("3");
    await $("learned-duration").press("Enter");
    await checked();
    await page.setViewportSize({ width: 390, height: 844 });
    await look("a learned motion on a phone");
    await photograph("learned-390");
    await page.setViewportSize({ width: 1440, height: 900 });
    await $("targets").getByRole("button").first().click();
    await until(async () => (await $("far").count()) === 0, "without its target nothing is far");
    await checked();
    check(Number(await $("learned-moment").inputValue()) > 1.2, "the moment shown is the same as before");
    await page.waitForTimeout(400);
  },
  "the last pose is dragged, and both hands at a fixed distance": async () => {
    await $("learned-moment").fill((await $("learned-moment").getAttribute("max")) ?? "3");
    await page.waitForTimeout(400);
    await drag({ x: 8, y: -10 });
    await page.mouse.up();
    await $("targets").getByText("Another last pose").waitFor();
    await checked();
    await $("targets").getByText("Another last pose").click();
    await until(async () => (await $("targets").getByText("Another last pose").count()) === 0, "the end is as learned");
    await checked();
    await $("learned-moment").fill("1.5");
    await $("both-hands").check();
    await page.waitForTimeout(400);
    await drag({ x: 4, y: -6 });
    await page.mouse.up();
    await $("targets").getByText("Left hand at").waitFor();
    await $("targets").getByText("Right hand at").waitFor();
    await checked();
    await look("both hands led elsewhere");
    for (let left = await $("targets").getByRole("button").count(); left > 0; left -= 1) {
      await $("targets").getByRole("button").first().click();
      await until(async () => (await $("targets").getByRole("button").count()) < left, "a target is removed");
    }
    await $("both-hands").uncheck();
    await checked();
    await page.waitForTimeout(400);
  },
  "it is saved as a take, and opens in the editor": async () => {
    await drag({ x: 10, y: -12 });
    await page.mouse.up();
    await $("targets").getByText("Right hand at").waitFor();
    await checked();
    await $("learned-save").click();
    await page.getByLabel("New name").fill("learned wave");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await $("dock").getByRole("heading", { name: "learned wave", exact: true }).waitFor();
    await page.evaluate(() => (location.hash = "#/library"));
    await page.locator("[data-testid=take][data-name='learned wave']").waitFor();
    check((await $("learned").count()) === 0, "the library is shown again");
  },
};

for (const [name, live] of Object.entries(story)) {
  const began = Date.now();
  try {
    await live();
  } catch (error) {
    report.failure = String(error.message ?? error);
    report.said = await page.evaluate(() => document.body.innerText.slice(0, 1500)).catch(() => "");
    await page.screenshot({ path: task.picture }).catch(() => undefined);
  }
  report.steps.push({ name, ms: Date.now() - began });
  if (report.failure) break;
}
await browser.close();
