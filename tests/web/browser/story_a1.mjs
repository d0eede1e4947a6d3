// What a person does with an A1 and the pendant, done by a real browser; like story.mjs.

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

export const report = { steps: [], console: [], failure: null };
const TRIES = 12;
const browser = await launch(task);
let context = null;
let page = null;

/** Open the page in a new context. The robot's motors want a message every few milliseconds: they are used in a
 * context that does not take the processor from them to draw. */
async function open({ draws }) {
  await context?.close();
  context = await browser.newContext({ viewport: { width: task.width, height: task.height }, draws });
  context.setDefaultTimeout(30_000);
  page = await context.newPage();
  // The browser itself reports refused requests; these are refused on purpose.
  page.on("console", (message) => {
    const expected = /^Failed to load resource.*(400|409)/i.test(message.text());
    if (message.type() === "error" && !expected) report.console.push(message.text());
  });
  page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
  await page.goto(task.url);
}

const $ = (name) => page.getByTestId(name);
const button = (name) => page.getByRole("button", { name, exact: true });
const go = (name) => page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
const kind = () => $("activity").getAttribute("data-kind");
const state = (wanted) => until(async () => (await $("pill").getAttribute("data-state")) === wanted, `the robot is ${wanted}`, 40_000);
const drawn = (robot) => until(async () => {
  const canvas = page.locator(`canvas[data-robot="${robot}"]`);
  return (await canvas.count()) && Number(await canvas.getAttribute("data-frames")) > 0;
}, `${robot} is drawn`, 40_000);
const take = (name) => page.locator(`[data-testid=take][data-name="${name}"]`);

async function connect(url) {
  await go("Robot");
  const more = page.locator("details", { hasText: "Another robot" });
  if ((await more.getAttribute("open")) === null) await page.getByText("Another robot").click();
  await page.getByLabel("Address").fill(url);
  await button("Connect").click();
}

async function confirmMotors() {
  await $("to-motors").click({ timeout: 5000 });
  await page.getByRole("dialog").getByText("a standing robot would sink").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "It is lying or hanging" }).click();
}

/** Do something with the motors; on a busy computer a protection may trip, and is looked at. */
async function withMotors(act) {
  for (let tries = 1; ; tries += 1) {
    await go("Robot");
    try {
      await until(async () => ["connected", "off"].includes(await $("pill").getAttribute("data-state")), "it is connected, or refused", 40_000);
      if (await $("anew").isVisible()) {
        await $("anew").click({ timeout: 2000 });
        await until(async () => !(await $("anew").isVisible()), "it is connected anew");
      }
      if (await $("to-motors").isVisible()) await confirmMotors();
      await page.getByText("The motors are connected").waitFor();
      return await act();
    } catch (error) {
      if (tries === TRIES) throw error;
      report.steps.push({ name: `once more: ${String(error.message).split("\n")[0]}`, ms: 0, again: true });
    }
  }
}

const story = {
  "an A1 is connected and drawn": async () => {
    await open({ draws: true });
    await state("connected");
    await connect(task.simUrl);
    await drawn("a1");
    await state("connected");
    await $("title").getByText("quadruped").waitFor();
    await page.getByText("Front right leg").waitFor();
    await page.getByRole("row", { name: /Front right hip/ }).waitFor();
    check((await page.getByText("Left arm").count()) === 0, "it has no arms");
    await go("Library");
    await $("no-actions").waitFor();
    check((await page.getByText("Factory actions").count()) === 0, "it has no factory actions");
  },
  "one that stands is not made to sink": async () => {
    await go("Teach");
    await $("not-here").waitFor();
    await confirmMotors();
    const said = page.locator("[data-testid=notice][data-tone=bad]");
    await said.getByText("The robot stands, and would sink").waitFor();
    await said.getByText("Press Lie down").waitFor();
    await go("Robot");
    check((await $("pill").getAttribute("data-state")) === "connected", "it is still connected");
    await until(async () => (await $("mode").textContent()).includes("balanced"), "it stands as before");
  },
  "it is laid down, and its motors are connected": async () => {
    await button("Lie down").click();
    await until(async () => (await $("mode").textContent()).startsWith("lie down"), "it lies");
    await open({ draws: false });
    await state("connected");
    await page.getByText("This browser cannot show 3D").waitFor();
    await confirmMotors();
    await page.getByText("The motors are connected").waitFor();
    check((await button("Stand").count()) === 0, "what its motors cannot do is not offered");
  },
  "its legs are taught": async () => {
    await go("Teach");
    await $("tips").getByText("soft legs carry nothing").waitFor();
    await button("I have read this").click();
    check((await page.getByText("Scripted hand").count()) === 0, "nobody leads its legs by a script");
    await withMotors(async () => {
      await go("Teach");
      await $("teach-name").fill("paw");
      await $("teach-start").click({ timeout: 1500 });
      await $("countdown").getByText("Hold the legs").waitFor();
      await $("recording").getByText("The legs are soft").waitFor({ timeout: 15_000 });
      await page.locator("[data-testid=chart]:not([data-samples='0'])").waitFor({ timeout: 10_000 });
      await $("teach-end").click({ timeout: 1500 });
      await $("result").getByText("paw").waitFor({ timeout: 10_000 });
    });
    await go("Library");
    await take("paw").waitFor();
  },
  "the take is played, and STOP stops it": async () => {
    await withMotors(async () => {
      await go("Library");
      await button("Play paw").click({ timeout: 1500 });
      await until(async () => (await kind()) === "playing", "it plays", 8000);
      await $("stop").click();
      await $("stop-report").getByText("the legs stay where they are").waitFor({ timeout: 5000 });
      await until(async () => (await kind()) === "idle", "it has stopped", 8000);
    });
  },
  "it is played from the editor too, with its legs for limbs": async () => {
    await withMotors(async () => {
      await go("Library");
      await button("Edit paw").click({ timeout: 1500 });
      await until(async () => (await $("dock").getAttribute("data-checked")) === "true", "it is checked");
      check((await $("foreign").count()) === 0, "it is of the robot that is connected");
      check((await $("joints").locator("[data-joint$=_leg]").count()) === 4, "it has four legs");
      check((await $("chart").getAttribute("data-curves")) === "12", "all joints have a curve");
      await $("edit-play").click({ timeout: 1500 });
      await until(async () => (await kind()) === "playing", "it plays", 8000);
      await $("stop").click();
      await until(async () => (await kind()) === "idle", "it has stopped", 8000);
    });
  },
  "a stop while the legs are soft brakes them": async () => {
    await withMotors(async () => {
      await go("Teach");
      if (await $("teach-another").isVisible()) await $("teach-another").click({ timeout: 1500 });
      await $("teach-name").fill("cut off");
      await $("teach-start").click({ timeout: 1500 });
      await $("recording").waitFor({ timeout: 15_000 });
      await page.keyboard.press("Escape");
      await $("stop-report").getByText("the legs are braked").waitFor({ timeout: 5000 });
      await until(async () => (await kind()) === "idle", "it has stopped", 8000);
    });
  },
  "beside another robot its take is drawn, edited, and not played": async () => {
    await open({ draws: true });
    await connect("sim://g1");
    await drawn("g1-29");
    await state("connected");
    await go("Library");
    await take("paw").getByText("You can edit it, but not play it here").waitFor();
    check(await button("Play paw").isDisabled(), "a G1 does not play it");
    await button("Edit paw").click();
    await $("dock").waitFor();
    await drawn("a1");
    await $("guest").getByText("quadruped").waitFor();
    await $("foreign").waitFor();
    check(await $("edit-play").isDisabled(), "a G1 does not play it from here either");
    await button("Mirror").click();
    await until(async () => (await $("dock").getAttribute("data-steps")) === "1", "it is mirrored");
    await go("Robot");
    await drawn("g1-29");
  },
};

try {
  for (const [name, act] of Object.entries(story)) {
    const begin = performance.now();
    const step = { name, ms: null };
    report.steps.push(step);
    await act();
    step.ms = Math.round(performance.now() - begin);
  }
} catch (error) {
  report.failure = String(error.message ?? error);
  report.said = await page.locator("[data-testid=notice], [data-severity]").allTextContents().catch(() => []);
  await page.screenshot({ path: task.picture }).catch(() => undefined);
} finally {
  await browser.close();
}
