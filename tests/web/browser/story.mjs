// What a person does with the pendant, done by a real browser.

import { spawn } from "node:child_process";

import { launch, stopDrawing } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

export const report = { steps: [], console: [], failure: null };
const browser = await launch(task);
const context = await browser.newContext({
  viewport: { width: task.width, height: task.height },
  hasTouch: task.width < 800,
  isMobile: task.width < 800,
  colorScheme: task.scheme,
  draws: true,
});
context.setDefaultTimeout(30_000);
const page = await context.newPage();
let robot = null;

// The browser itself reports refused requests; these are refused on purpose.
const REFUSED = ["/api/takes/upload", "/api/takes/rename"];
const listen = (opened) => {
  opened.on("console", heard);
  opened.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
};
const heard = (message) => {
  if (message.type() !== "error") return;
  const { url } = message.location();
  if (message.text().startsWith("Failed to load resource") && REFUSED.some((path) => url.endsWith(path))) return;
  report.console.push(`${message.text()} (${url})`);
};
listen(page);

const $ = (name) => page.getByTestId(name);
const button = (name) => page.getByRole("button", { name, exact: true });
const number = async (place, name) => Number(await place.getAttribute(name));
const go = (name) => page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
const atRest = () => until(async () => (await $("activity").getAttribute("data-kind")) === "idle", "the robot is at rest", 30_000);
const playing = () => until(async () => (await $("activity").getAttribute("data-kind")) === "playing", "it plays");
const state = (wanted, within) =>
  until(async () => (await $("pill").getAttribute("data-state")) === wanted, `the robot is ${wanted}`, within);
const named = (kind, name) => page.locator(`[data-testid=${kind}][data-name="${name}"]`);
const frames = () => number(page.locator("[data-testid=stage] canvas"), "data-frames");

const story = {
  "the page opens and draws the robot": async () => {
    await page.addInitScript(() => localStorage.setItem("rote.quality", "high"));
    await page.goto(task.url);
    await until(async () => (await $("stage").getAttribute("data-state")) === "shown", "the robot is drawn", 30_000);
    const quality = () => page.locator("[data-testid=stage] canvas").getAttribute("data-quality");
    await until(async () => (await quality()) === "low", "software rendering is drawn in low quality");
    const kept = () => page.evaluate(() => localStorage.getItem("rote.quality"));
    await until(async () => (await kept()) === "auto", "a quality that is refused is not remembered");
    await button("Settings").click();
    check(await button("High").isDisabled(), "what cannot be had is not offered");
    await button("Settings").click();
    await state("connected");
  },
  "a person connects to the simulated robot": async () => {
    await page.getByText("Another robot").click();
    await button("Use the simulated robot").click();
    await state("connected");
    check((await $("connection").textContent()).includes("sim://g1"), "the address is shown");
    await page.getByText("Ready: no problem found").waitFor();
  },
  "the tips come before teaching": async () => {
    await go("Teach");
    await $("tips").getByText("avoid self-collision or singularities.").waitFor();
    await $("tips").getByText("not an emergency stop").waitFor();
    await button("I have read this").click();
    await until(() => page.evaluate(() => scrollY === 0 && ["teach-name", "ready-title"].includes(document.activeElement.id)), "the form begins at its top");
  },
  "a scripted hand teaches, and its curve is seen": async () => {
    await $("teach-name").fill("hello wave");
    await button("Wave").click();
    await page.getByLabel("for", { exact: false }).last().fill("3");
    await $("teach-start").click();
    await $("countdown").waitFor();
    await $("recording").waitFor();
    const first = await until(() => number($("chart"), "data-samples"), "samples come");
    await until(async () => (await number($("chart"), "data-samples")) > first, "more samples come");
    await until(async () => (await number($("chart"), "data-curves")) >= 2, "curves are drawn");
    const drawn = await frames();
    await until(async () => (await frames()) > drawn + 3, "the robot moves in the view");
    await until(async () => (await number($("chart"), "data-samples")) > 280, "three seconds are recorded");
    await $("teach-end").click();
    await $("result").getByText("hello wave").waitFor();
    // On a busy computer the simulated hand is late now and then, which is a note about a step in speed.
    await $("result-check").locator("p:has-text('Checked:'), [data-severity=note]").first().waitFor();
    check((await $("result-check").locator("[data-severity=error], [data-severity=warning]").count()) === 0, "it can be played");
  },
  "an arm is led by its slider, and the take is thrown away": async () => {
    await $("teach-another").click();
    await $("teach-name").fill("hello wave");
    await page.getByText("Filename already exists. This teaching will replace it.").waitFor();
    check(await $("teach-start").isEnabled(), "a name that is taken can be replaced on this wire");
    await $("teach-name").fill("");
    await $("teach-start").click();
    await $("recording").waitFor();
    await page.getByRole("slider", { name: "Right shoulder pitch" }).fill("-1");
    await until(async () => (await $("drag-angle").textContent()).startsWith("\u2212"), "the slider says where it is");
    await until(async () => (await number($("chart"), "data-reach")) > 20, "the arm has followed");
    await button("Discard").click();
    await page.getByText("Nothing was kept").waitFor();
    await atRest();
  },
  "the motion is found in the library": async () => {
    await go("Library");
    await $("play-tip").getByText("Operator must hold remote or app for emergency stop.").waitFor();
    const search = page.getByPlaceholder("Search motions");
    await search.fill("hello");
    await named("action", "hello wave").waitFor();
    await named("take", "hello wave").waitFor();
    check(await named("take", "hello wave").locator("img").evaluate((image) => image.complete && image.naturalWidth > 0), "it has a picture");
    await search.fill("no such thing");
    await until(async () => (await page.getByTestId("take").count()) === 0, "others are not found");
    await search.fill("");
  },
  "it is trimmed, mirrored, undone, previewed and saved": async () => {
    await button("Edit hello wave").click();
    await $("dock").waitFor();
    const whole = await number($("dock"), "data-duration");
    await $("handle-to").focus();
    for (let press = 0; press < 2; press += 1) await page.keyboard.press("PageDown");
    await $("handle-from").focus();
    for (let press = 0; press < 4; press += 1) await page.keyboard.press("ArrowRight");
    await $("trim").click();
    await until(async () => Math.abs((await number($("dock"), "data-duration")) - (whole - 1.2)) < 0.1, "it is 1.2 s shorter");
    await $("handle-from").focus();
    for (let press = 0; press < 2; press += 1) await page.keyboard.press("ArrowRight");
    await $("trim").click();
    await until(async () => Math.abs((await number($("dock"), "data-duration")) - (whole - 1.3)) < 0.05, "a second trim begins where the first has cut");
    await button("Undo").click();
    await until(async () => (await number($("dock"), "data-steps")) === 1, "the second trim is undone");
    await button("Mirror").click();
    await until(async () => (await number($("dock"), "data-steps")) === 2, "two steps");
    await page.getByRole("button", { name: /L shoulder pitch/ }).first().waitFor();
    await button("Smooth").click();
    await until(async () => (await number($("dock"), "data-steps")) === 3, "three steps");
    await page.locator("[data-edit=cross_fade] input").fill("1.2");
    await button("Cross-fade").click();
    await until(async () => (await number($("dock"), "data-duration")) > whole, "it goes on into the other take");
    await $("checks").getByRole("listitem").or($("checks").getByText("Checked:")).first().waitFor();
    for (const left of [3, 2]) {
      await button("Undo").click();
      await until(async () => (await number($("dock"), "data-steps")) === left, `${left} steps are left`);
    }
    await button("Undo").click();
    await until(async () => (await number($("dock"), "data-steps")) === 1, "one step");
    await button("Redo").click();
    await until(async () => (await number($("dock"), "data-steps")) === 2, "two steps again");
    await $("preview").click();
    await page.getByText("Ghost: preview only").waitFor();
    const before = await number($("handle-playhead"), "aria-valuenow");
    await until(async () => (await number($("handle-playhead"), "aria-valuenow")) > before + 0.3, "the preview runs");
    // The arms may still return from the teaching before.
    const doing = await Promise.all(["data-kind", "data-phase"].map((name) => $("activity").getAttribute(name)));
    check(doing[0] === "idle" || doing[1] === "return", `the robot does not move in a preview: ${doing}`);
    await until(async () => !(await button("Stop the preview").isVisible()), "the preview ends");
    await $("save-as").click();
    await page.getByLabel("New name").fill("hello mirror");
    await page.getByRole("dialog").getByRole("button", { name: "Save as new take" }).click();
    await page.getByText("Saved as “hello mirror”").waitFor();
    await $("dock").getByRole("heading", { name: "hello mirror" }).waitFor();
    check((await number($("dock"), "data-steps")) === 0, "what was saved has its steps in it");
  },
  "a name that exists gets a new version, and the old one can be had": async () => {
    const old = await number($("dock"), "data-duration");
    await page.locator("[data-edit=speed] input").fill("0.8");
    await button("Speed").click();
    await until(async () => (await number($("dock"), "data-steps")) === 1, "one step");
    const slow = await number($("dock"), "data-duration");
    await $("save-as").click();
    await page.getByLabel("New name").fill("hello mirror");
    await page.getByRole("dialog").getByRole("button", { name: "Save as new take" }).click();
    await page.getByText("Save as a new version of “hello mirror”?").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
    await until(async () => (await number($("dock"), "data-steps")) === 0, "the step is in what was saved");
    check(Math.abs((await number($("dock"), "data-duration")) - slow) < 0.05, "the step is done once");
    await $("version").selectOption("1");
    await until(async () => Math.abs((await number($("dock"), "data-duration")) - old) < 0.05, "the old version is shown");
  },
  "an edited take is played, the playhead goes along, and STOP stops it": async () => {
    await $("handle-playhead").press("Home");
    await $("edit-play").click();
    await playing();
    await until(async () => (await page.getByText("Ghost: preview only").count()) === 0, "the ghost is gone");
    await until(async () => (await number($("handle-playhead"), "aria-valuenow")) > 0.3, "the playhead goes along");
    await $("stop").click();
    await $("stop-report").getByText("software stop, not an emergency stop").waitFor();
    await atRest();
  },
  "an action is played, and Escape stops it": async () => {
    await stopDrawing(context);
    await page.reload();
    await state("connected");
    await go("Library");
    await button("Play hello wave").first().click();
    await playing();
    check(await button("Loop").isDisabled(), "how it plays is settled");
    await page.keyboard.press("Escape");
    await $("stop-report").getByText("Stopped").waitFor();
    await atRest();
  },
  "a space stops too, but is a letter in a text": async () => {
    await button("Play hello wave").first().click();
    await playing();
    await page.getByPlaceholder("Search motions").fill("hello");
    await page.getByPlaceholder("Search motions").press("End");
    await page.keyboard.press(" ");
    check((await page.getByPlaceholder("Search motions").inputValue()) === "hello ", "it is typed");
    await page.getByPlaceholder("Search motions").fill("");
    await page.getByPlaceholder("Search motions").blur();
    await page.keyboard.press(" ");
    await atRest();
  },
  "an action and a take are renamed": async () => {
    await named("action", "hello wave").getByRole("button", { name: "Rename hello wave" }).click();
    await page.getByLabel("New name").fill("  ");
    await page.getByLabel("New name").press("Enter");
    await page.getByRole("dialog").getByText("Enter a name.").waitFor();
    await page.getByLabel("New name").fill("greeting");
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
    await named("action", "greeting").waitFor();
    await button("More: hello mirror").click();
    await named("take", "hello mirror").getByRole("button", { name: "Rename hello mirror" }).click();
    await page.getByLabel("New name").fill("hello wave");
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
    await page.getByRole("dialog").getByText("Choose another").waitFor();
    check((await page.getByLabel("New name").inputValue()) === "hello wave", "a name that is refused can be mended");
    await page.getByLabel("New name").fill("mirrored");
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
    await named("take", "mirrored").waitFor();
  },
  "deleting asks first, and STOP works meanwhile": async () => {
    await named("action", "greeting").getByRole("button", { name: "Delete greeting" }).click();
    await $("stop").click();
    await $("stop-report").getByText("Nothing was moving").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    check(await named("action", "greeting").isVisible(), "it is still there");
    await named("action", "greeting").getByRole("button", { name: "Delete greeting" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await until(async () => (await named("action", "greeting").count()) === 0, "it is gone");
    const more = button("More: mirrored");
    if ((await more.getAttribute("aria-expanded")) !== "true") await more.click();
    await named("take", "mirrored").getByRole("button", { name: "Delete mirrored" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await until(async () => (await named("take", "mirrored").count()) === 0, "it is gone");
    check((await page.evaluate(() => document.activeElement?.id)) === "takes-title", "the focus is on what it was in");
  },
  "a broken file is refused in words": async () => {
    await $("upload").setInputFiles({ name: "broken.csv", mimeType: "text/csv", buffer: Buffer.from("this,is\nno,motion\n") });
    await page.getByRole("dialog").getByRole("button", { name: "Add" }).click();
    const said = page.locator("[data-testid=notice][data-tone=bad]");
    await said.waitFor();
    check((await said.textContent()).length > 20, "the words say what is wrong");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  },
  "nothing is wider than the screen, and STOP is on it": async () => {
    for (const name of ["Robot", "Teach", "Library", "Edit", "Cues"]) {
      await go(name);
      await page.waitForTimeout(100);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(wide <= 0, `${name} is ${wide} points too wide`);
      const box = await $("stop").boundingBox();
      check(box && box.x >= 0 && box.y >= 0 && box.x + box.width <= task.width && box.y + box.height <= task.height, `STOP is on ${name}`);
      check(box.width >= 120 && box.height >= 56, "STOP is large");
    }
    if (task.width > 800) return;
    await page.setViewportSize({ width: task.height, height: task.width });
    for (const name of ["Robot", "Library"]) {
      await go(name);
      const [box, view, panel] = await Promise.all(["[data-testid=stop]", "[data-testid=view]", "#panel"].map((each) => page.locator(each).boundingBox()));
      check(box.y + box.height <= task.width && box.height >= 56, `STOP is on ${name} held sideways`);
      check(panel.x >= view.x + view.width - 1 && box.y - panel.y >= 0.5 * task.width, `${name} has room beside the view`);
    }
    await page.setViewportSize({ width: task.width, height: task.height });
  },
  "a second browser watches, stops and takes over": async () => {
    const other = await context.newPage();
    listen(other);
    await other.goto(`${task.url}#/library`);
    await other.getByTestId("watching").waitFor();
    check(await other.getByRole("button", { name: "Play hello wave" }).first().isDisabled(), "who watches cannot play");
    await page.bringToFront();
    await go("Library");
    await button("Play hello wave").first().click();
    await playing();
    await other.bringToFront();
    await other.getByTestId("stop").click();
    await other.getByTestId("stop-report").getByText("Stopped").waitFor();
    await other.getByRole("button", { name: "Take over" }).click();
    await other.getByRole("dialog").getByRole("button", { name: "Take over" }).click();
    await until(async () => (await other.getByTestId("watching").count()) === 0, "the other commands");
    await page.bringToFront();
    await atRest();
    await $("watching").waitFor();
    await page.getByRole("button", { name: "Take over" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Take over" }).click();
    await until(async () => (await $("watching").count()) === 0, "this one commands again");
    await other.close();
  },
  "a robot is lost, and comes back": async () => {
    const begin = () => spawn(task.sim[0], task.sim.slice(1), { stdio: "ignore" });
    await go("Robot");
    const more = page.locator("details", { hasText: "Another robot" });
    if ((await more.getAttribute("open")) === null) await page.getByText("Another robot").click();
    await page.getByLabel("Address").fill(task.simUrl);
    await button("Connect").click();
    await until(async () => (await $("connection").textContent()).includes(task.simUrl), "it turns to the other robot");
    await $("still").waitFor();
    await go("Library");
    check((await page.getByTestId("action").count()) === 0, "the former robot's actions are not taken for its own");
    robot = begin();
    await go("Robot");
    await state("connected", 40_000);
    robot.kill("SIGKILL");
    await state("lost", 40_000);
    await $("lost").waitFor();
    robot = begin();
    await state("connected", 60_000);
    await until(async () => (await $("lost").count()) === 0, "the warning goes");
  },
};

try {
  for (const [name, act] of Object.entries(story)) {
    if (task.only && !task.only.some((part) => name.includes(part))) continue;
    const begin = performance.now();
    report.steps.push({ name, ms: null });
    await act();
    report.steps.at(-1).ms = Math.round(performance.now() - begin);
  }
} catch (error) {
  report.failure = String(error.message ?? error);
  report.said = await $("notice").allTextContents().catch(() => []);
  await page.screenshot({ path: task.picture }).catch(() => undefined);
} finally {
  robot?.kill("SIGKILL");
  await browser.close();
}
