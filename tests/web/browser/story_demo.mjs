// The demo, which is only files, in a real browser. Reads its task as JSON from standard input, prints what happened
// as JSON.

import { readFileSync } from "node:fs";

import { launch, stopDrawing } from "./chromium.mjs";
import { check, until } from "./waiting.mjs";

const task = JSON.parse(readFileSync(0, "utf-8"));
const report = { steps: [], console: [], elsewhere: [], failure: null };
const browser = await launch(task);
const context = await browser.newContext({ viewport: { width: 920, height: 560 }, locale: "en-US", draws: true });
context.setDefaultTimeout(30_000);
const page = await context.newPage();
page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
page.on("console", (said) => said.type() === "error" && report.console.push(said.text()));
// What is still loading when another page is opened is ended by the browser itself.
page.on("requestfailed", (request) => {
  const reason = request.failure()?.errorText;
  if (reason !== "net::ERR_ABORTED") report.console.push(`failed: ${request.url()}: ${reason}`);
});
page.on("request", (request) => {
  const url = request.url();
  if (!url.startsWith(task.url) && !url.startsWith("data:") && !url.startsWith("blob:")) report.elsewhere.push(url);
});

const $ = (name) => page.getByTestId(name);
const to = (screen) => page.evaluate((where) => (location.hash = `#/${where}`), screen);
const button = (name) => page.getByRole("button", { name, exact: true });
const dialog = (name) => page.getByRole("dialog").getByRole("button", { name, exact: true });
const takes = () => page.locator("[data-testid=take]").evaluateAll((rows) => rows.map((row) => row.dataset.name));
const kind = async () => $("activity").getAttribute("data-kind");
const phase = (wanted) => until(async () => (await $("activity").getAttribute("data-phase")) === wanted, `it is in ${wanted}`);
const idle = () => until(async () => (await kind()) === "idle", "it rests", 40_000);
const notice = (words) => until(async () => (await $("notice").allInnerTexts()).some((text) => words.test(text)), `a notice: ${words}`);
const steps = (count) => until(async () => (await $("dock").getAttribute("data-steps")) === String(count), `${count} steps`);
const openPage = async () => {
  await page.goto(task.url);
  await until(async () => (await $("pill").getAttribute("data-state")) === "connected", "the robot is there");
};

const story = {
  "it opens from files, says what it is and draws the robot": async () => {
    await openPage();
    const words = await $("demo").innerText();
    check(words.startsWith("Demo in your browser: no robot, nothing is kept."), words);
    check(words.includes("pip install"), "it says how to get rote");
    const canvas = page.locator("canvas[data-robot='g1-29']");
    await until(async () => Number(await canvas.getAttribute("data-frames")) > 0, "the robot is drawn");
    if (task.shapes) await until(async () => (await canvas.getAttribute("data-shapes")) === "real", "it has its real shapes");
  },
  "a sample is played, and STOP ends it where it is": async () => {
    await to("library");
    await until(async () => (await takes()).join() === "bow,clap,drum,wave", "the samples are listed");
    await button("Play wave").click();
    await phase("approach");
    await phase("playing");
    await $("stop").click();
    await idle();
    check(/stay where they are/.test(await $("stop-report").innerText()), "it says what the stop did");
    check((await $("not-live").count()) === 0, "the page is live");
  },
  "a motion ends by itself": async () => {
    await page.getByRole("combobox", { name: "Speed" }).selectOption("2");
    await button("Play bow").click();
    await phase("return");
    await idle();
  },
  "a warning of the check is asked about": async () => {
    await button("Play clap").click();
    check(/wrist yaw/i.test(await page.getByRole("dialog").innerText()), "it names what touches");
    await dialog("Cancel").click();
    check((await kind()) === "idle", "nothing plays");
  },
  "the editor edits, and says what needs rote": async () => {
    await to("edit/wave");
    await until(async () => (await $("dock").getAttribute("data-checked")) === "true", "it was checked");
    check(!/not checked/i.test(await $("checks").innerText()), "a sample was checked when the demo was built");
    await page.locator("[data-edit=mirror]").getByRole("button").click();
    await steps(1);
    await until(async () => /not checked/i.test(await $("checks").innerText()), "an edit is not checked here");
    await page.locator("[data-edit=smooth]").getByRole("button").click();
    await notice(/needs rote on your computer[^]*pip install 'rote-robot/i);
    await steps(1);
    await $("edit-play").click();
    await phase("approach");
    await page.keyboard.press("Escape");
    await idle();
  },
  "an edit is saved, and takes are renamed, deleted and restored": async () => {
    await $("save-as").click();
    await page.getByRole("dialog").getByRole("textbox").fill("mirrored");
    await dialog("Save as new take").click();
    await until(async () => (await $("dock").getByRole("heading").innerText()) === "mirrored", "it is edited from now on");
    await to("library");
    await until(async () => (await takes()).includes("mirrored"), "it is in the library");
    await button("More: drum").click();
    await button("Rename drum").click();
    await page.getByRole("dialog").getByRole("textbox").fill("beat");
    await dialog("Rename").click();
    await until(async () => (await takes()).join() === "beat,bow,clap,mirrored,wave", "it has another name");
    await button("More: beat").click();
    const csv = await page.locator("[data-name=beat] a[download]").getAttribute("href");
    report.csv = decodeURIComponent(csv.slice(csv.indexOf(",") + 1));
    await button("Delete beat").click();
    await dialog("Delete").click();
    await until(async () => !(await takes()).includes("beat"), "it was deleted");
    await $("trash").getByRole("button", { name: "Show the trash" }).click();
    await $("trash").getByRole("button", { name: "Restore: beat" }).click();
    await until(async () => (await takes()).includes("beat"), "it was restored");
  },
  "what needs a server says so on every screen": async () => {
    await to("teach");
    await until(async () => /needs rote[^]*pip install/.test(await $("not-here").innerText()), "teaching needs rote");
    for (const screen of ["cues", "show", "robot"]) {
      await to(screen);
      await until(async () => (await page.locator("#panel").getAttribute("data-screen")) === screen, screen);
    }
    await page.getByText("Another robot").click();
    await button("Find robots").click();
    await notice(/needs rote/);
  },
  "nothing is kept": async () => {
    check((await page.evaluate(() => localStorage.length + sessionStorage.length)) === 0, "the browser keeps nothing");
    await stopDrawing(context);
    await openPage();
    await to("library");
    await page.reload();
    await until(async () => (await takes()).join() === "bow,clap,drum,wave", "only the samples are there again");
  },
};

for (const [name, step] of Object.entries(story)) {
  const began = Date.now();
  await step().catch((error) => (report.failure = String(error.message ?? error)));
  report.steps.push({ name, ms: Date.now() - began });
  if (report.failure) break;
}
if (report.failure) {
  report.said = await page.evaluate(() => document.body.innerText.slice(0, 1500)).catch(() => "");
  await page.screenshot({ path: task.picture }).catch(() => undefined);
}
await browser.close();
console.log(JSON.stringify(report));
