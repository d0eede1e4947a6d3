// STOP and the truth, in a real browser: on every screen at every size, where the page fails, and after a teaching.

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

export const report = { steps: [], console: [], failure: null };
const browser = await launch(task);

const LONG = "Wwwwwwwwwwwwwwwwwwwwwwwwwwwwww";
const SIZES = {
  "a small phone": [320, 568],
  "a phone": [390, 844],
  "a phone held sideways": [844, 390],
  "a phone with its keyboard open": [390, 420],
  "a tablet": [1024, 768],
  "a desk enlarged four times": [320, 180],
};

let page = null;
let context = null;
async function fresh(width, height, script) {
  await context?.close();
  context = await browser.newContext({
    viewport: { width, height },
    hasTouch: width < 900,
    isMobile: width < 900,
    colorScheme: "light",
  });
  context.setDefaultTimeout(30_000);
  page = await context.newPage();
  page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
  await page.addInitScript(() => {
    try {
      localStorage.setItem("rote.tips", "yes");
    } catch {
      // a story is about that
    }
  });
  if (script) await page.addInitScript(script);
  // A robot may have factory actions with any name.
  await page.route("**/api/actions", async (route) => {
    let answer;
    let told;
    try {
      answer = await route.fetch();
      told = await answer.json();
    } catch {
      return; // the page was left before the answer came
    }
    told.presets.push({ id: 15, name: "y".repeat(90) });
    told.taught.push({ name: "z".repeat(90), duration_s: 2, position: 9 });
    await route.fulfill({ response: answer, json: told });
  });
}
/** Load the page anew at another size; the browser of a phone stays the same. */
async function resized(width, height) {
  const was = page.viewportSize();
  if (was.width < 900 !== width < 900) {
    await fresh(width, height);
    await page.goto(task.url);
    return;
  }
  await page.setViewportSize({ width, height });
  await page.goto("about:blank");
  await page.goto(task.url);
}
const $ = (name) => page.getByTestId(name);
const go = (name) => page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
const api = (path, body) =>
  page.evaluate(
    async ([where, what]) => {
      const client = sessionStorage.getItem("rote.client");
      const headers = { "Content-Type": "application/json", "X-Rote-Client": client };
      return (await fetch(`/api/${where}`, { method: "POST", headers, body: JSON.stringify(what) })).json();
    },
    [path, body],
  );
const status = () => page.evaluate(async () => (await fetch("/api/status")).json());
const commanding = () =>
  until(async () => (await page.getByRole("button", { name: "Take over" }).count()) === 0, "this page commands", 15_000);
const connected = () =>
  until(async () => (await $("pill").getAttribute("data-state")) === "connected", "the robot is connected", 30_000);

/** Where STOP is, and what of the page is seen, in the same points. */
const places = () =>
  page.evaluate(() => {
    const { x, y, width, height } = document.querySelector("[data-testid=stop]").getBoundingClientRect();
    const seen = visualViewport;
    const covering = document.elementFromPoint(x + width / 2, y + height / 2);
    return {
      box: { x, y, width, height },
      seen: { x: seen.offsetLeft, y: seen.offsetTop, width: seen.width, height: seen.height, scale: seen.scale },
      wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      free: covering?.closest("[data-testid=stop]") !== null,
    };
  });
async function stopIsSeen(where, least = 56) {
  const { box, seen, wide, free } = await places();
  const inside =
    box.x >= seen.x - 1 &&
    box.y >= seen.y - 1 &&
    box.x + box.width <= seen.x + seen.width + 1 &&
    box.y + box.height <= seen.y + seen.height + 1;
  check(inside, `STOP is not seen ${where}: ${JSON.stringify({ box, seen })}`);
  check(box.height * seen.scale >= least - 1, `STOP is too small ${where}: ${box.height * seen.scale}`);
  check(free, `something covers STOP ${where}`);
  check(wide <= 0, `${where} is ${wide} points too wide`);
}

const story = {
  "STOP is on every screen at every size, whatever names are long": async () => {
    await fresh(1024, 768);
    await page.goto(task.url);
    await connected();
    await api("teach/start", { name: LONG });
    await api("teach/hand", { script: "wave", seconds: 1 });
    await page.waitForTimeout(1200);
    await api("teach/finish", { save: true });
    for (const [name, [width, height]] of Object.entries(SIZES)) {
      await resized(width, height);
      await connected();
      for (const screen of ["Robot", "Teach", "Library", "Edit", "Cues"]) {
        await page.evaluate((to) => (location.hash = `#/${to}`), screen.toLowerCase());
        if (screen === "Library") await page.getByText("y".repeat(89)).waitFor();
        await page.waitForTimeout(150);
        await stopIsSeen(`on ${screen} at ${name}`);
        await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
        await page.waitForTimeout(50);
        await stopIsSeen(`at the end of ${screen} at ${name}`);
        if (task.pictures) await page.screenshot({ path: `${task.pictures}/${screen}-${width}x${height}.png` });
      }
      await page.evaluate((to) => (location.hash = `#/edit/${to}`), LONG);
      await $("dock").waitFor();
      await stopIsSeen(`in the editor at ${name}`);
      if (task.pictures) await page.screenshot({ path: `${task.pictures}/Editor-${width}x${height}.png` });
    }
  },
  "STOP stays while a motion with a long name plays on a small phone": async () => {
    await fresh(320, 568);
    await page.goto(`${task.url}#/library`);
    await connected();
    await commanding();
    await api("play", { name: LONG });
    await until(async () => (await $("activity").getAttribute("data-kind")) === "playing", "it plays");
    await stopIsSeen("while it plays");
    if (task.pictures) await page.screenshot({ path: `${task.pictures}/Playing-320.png` });
    await $("stop").click();
    await $("stop-report").getByText("Stopped").waitFor();
    await stopIsSeen("with its report");
    await until(async () => (await $("activity").getAttribute("data-kind")) === "idle", "it rests", 30_000);
  },
  "STOP stays in what is seen, enlarged by two fingers and above a keyboard": async () => {
    await fresh(390, 844);
    await page.goto(`${task.url}#/library`);
    await connected();
    const devtools = await context.newCDPSession(page);
    await devtools.send("Emulation.setPageScaleFactor", { pageScaleFactor: 3 });
    await until(async () => (await places()).seen.scale > 2.5, "it is enlarged");
    await page.waitForTimeout(300);
    await stopIsSeen("enlarged");
    await devtools.send("Emulation.setPageScaleFactor", { pageScaleFactor: 1 });
    await until(async () => (await places()).seen.scale < 1.1, "it is not enlarged");
    // Where a keyboard lies over the page and changes only what is seen of it.
    await page.evaluate(() => {
      Object.defineProperty(visualViewport, "height", { value: 500, configurable: true });
      visualViewport.dispatchEvent(new Event("resize"));
    });
    await page.waitForTimeout(100);
    await stopIsSeen("above a keyboard");
    check((await page.locator("meta[name=viewport]").getAttribute("content")).includes("resizes-content"), "others make room");
  },
  "a page with an address that is broken shows STOP and its screens": async () => {
    await fresh(390, 844);
    await page.goto(`${task.url}#/edit/%`);
    await connected();
    await stopIsSeen("at a broken address");
    await go("Robot");
    await $("connection").waitFor();
    await page.evaluate(() => (location.hash = "#/edit/%E0%A4%A"));
    await page.waitForTimeout(100);
    await stopIsSeen("after a broken address");
    check(report.console.length === 0, `no error: ${report.console}`);
  },
  "a page whose storage is blocked works": async () => {
    await fresh(390, 844, () => {
      for (const shelf of ["localStorage", "sessionStorage"])
        Object.defineProperty(window, shelf, {
          get() {
            throw new DOMException("blocked", "SecurityError");
          },
        });
    });
    await page.goto(`${task.url}#/library`);
    await connected();
    await stopIsSeen("without storage");
    check(report.console.length === 0, `no error: ${report.console}`);
  },
  "a page that has failed still stops the robot, and has a way back": async () => {
    await fresh(320, 568, () => {
      const real = document.getElementById.bind(document);
      document.getElementById = (id) => {
        if (id === "app") throw new Error("on purpose");
        return real(id);
      };
    });
    await page.goto(task.url);
    await $("rescue-stop").waitFor();
    const answer = page.waitForResponse("**/api/stop");
    await $("rescue-stop").click();
    check((await answer).ok(), "the robot is told to stop");
    await page.getByText("Nothing was moving").waitFor();
    const { y, height } = await $("rescue-stop").boundingBox();
    check(y >= 0 && y + height <= 568, "STOP is seen");
    await page.getByRole("link", { name: "Reload the page" }).waitFor();
    if (task.pictures) await page.screenshot({ path: `${task.pictures}/Rescue-320.png` });
    report.console = report.console.filter((each) => !each.includes("on purpose"));
  },
  "after Discard the arms hold, the page counts down, and they return when asked": async () => {
    await fresh(390, 844);
    await page.goto(`${task.url}#/teach`);
    await connected();
    await commanding();
    await api("teach/start", { name: "thrown away" });
    await api("teach/hand", { script: "wave", seconds: 2 });
    await $("recording").waitFor();
    await page.waitForTimeout(1000);
    await page.getByRole("button", { name: "Discard" }).click();
    await $("hold").getByText("they return to rest by themselves").waitFor();
    const first = Number(await $("hold").getAttribute("data-seconds"));
    check(first >= 3 && first <= 5, `it counts from ${first}`);
    check((await status()).activity.phase === "none", "nothing moves");
    await stopIsSeen("while they hold");
    if (task.pictures) await page.screenshot({ path: `${task.pictures}/Hold-390.png` });
    await until(async () => Number(await $("hold").getAttribute("data-seconds")) < first, "it counts down");
    await $("return-now").click();
    await until(async () => (await status()).activity.phase === "return", "they return");
    await until(async () => (await $("hold").count()) === 0, "the countdown is over");
    await until(async () => (await status()).activity.kind === "idle", "they rest", 30_000);
  },
  "retiming tells duration and peak speed before it is done": async () => {
    await fresh(1024, 768);
    await page.goto(`${task.url}#/edit/${LONG}`);
    await connected();
    await $("dock").waitFor();
    await page.locator("[data-edit=retime]").getByRole("button", { name: "Retime" }).click();
    const asked = page.getByRole("dialog");
    await asked.getByText(/Duration [\d.]+ s, then [\d.]+ s\. Peak speed \d+°\/s, then \d+°\/s\./).waitFor();
    check((await $("dock").getAttribute("data-steps")) === "0", "nothing is done yet");
    if (task.pictures) await page.screenshot({ path: `${task.pictures}/Retime-1024.png` });
    await asked.getByRole("button", { name: "Apply" }).click();
    await until(async () => (await $("dock").getAttribute("data-steps")) === "1", "it is done");
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
  await browser.close();
}
