// What the page shows while the server or the robot is silent, in a real browser: their processes are frozen with
// SIGSTOP and continued with SIGCONT.

import { execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

export const report = { steps: [], console: [], failure: null };
const browser = await launch(task);
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: "light" });
context.setDefaultTimeout(20_000);
const page = await context.newPage();
page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
await page.addInitScript(() => localStorage.setItem("rote.tips", "yes"));

const $ = (name) => page.getByTestId(name);
const freeze = (pid = task.pid) => process.kill(pid, "SIGSTOP");
const thaw = (pid = task.pid) => process.kill(pid, "SIGCONT");
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const kind = () => $("activity").getAttribute("data-kind");
const connected = () => until(async () => (await $("pill").getAttribute("data-state")) === "connected", "connected");
const live = () => until(async () => (await $("not-live").count()) === 0, "the page is live");
const api = (path, body) =>
  page.evaluate(
    async ([where, what]) => {
      const client = sessionStorage.getItem("rote.client");
      const headers = { "Content-Type": "application/json", "X-Rote-Client": client };
      return (await fetch(`/api/${where}`, { method: "POST", headers, body: JSON.stringify(what) })).json();
    },
    [path, body],
  );
const photograph = async (name) => {
  if (!task.pictures) return;
  for (const [width, height] of [[1440, 900], [390, 844]])
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme });
      await pause(300);
      await page.screenshot({ path: `${task.pictures}/${name}-${width}-${colorScheme}.png` });
    }
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.emulateMedia({ colorScheme: "light" });
};
/** Whether the element at a point of the screen belongs to STOP. */
const stopIsFree = () =>
  page.evaluate(() => {
    const { x, y, width, height } = document.querySelector("[data-testid=stop]").getBoundingClientRect();
    return document.elementFromPoint(x + width / 2, y + height / 2)?.closest("[data-testid=stop]") !== null;
  });

const go = (name) => page.getByRole("navigation").getByRole("link", { name, exact: true }).click();
const gone = (name, within) => until(async () => (await $(name).count()) === 0, `${name} goes`, within);
const teach = async (name, seconds) => {
  await api("teach/start", { name });
  await api("teach/hand", { script: "wave", seconds });
  await pause(1000 * seconds + 200);
  await api("teach/finish", { save: true });
  await until(async () => (await kind()) === "idle", "the teaching has ended", 30_000);
};
const acknowledgeAll = async () => {
  for (const all = $("safety"); (await all.count()) > 0; await pause(200))
    await all.first().getByRole("button").click({ timeout: 2000 }).catch(() => undefined);
};
let robot = null;

const silentServer = {
  "a server without a robot is live all the same": async () => {
    await page.goto(task.url);
    await connected();
    await api("disconnect", {});
    await until(async () => (await $("pill").getAttribute("data-state")) === "off", "there is no robot");
    for (const end = Date.now() + 4000; Date.now() < end; await pause(50))
      check((await $("not-live").count()) === 0, "a quiet server is taken for a silent one");
    await api("connect", { url: "sim://g1-29" });
    await connected();
  },
  "a frozen server is shown across the whole screen within two seconds": async () => {
    await teach("swing", 3);
    await api("play", { name: "swing", loop: true });
    await until(async () => (await $("activity").getAttribute("data-phase")) === "playing", "it plays", 30_000);
    freeze();
    await $("not-live").waitFor({ timeout: 2000 });
    await page.getByRole("heading", { name: "Not live" }).waitFor();
    check((await $("pill").getAttribute("data-state")) === "lost", "the pill says connected");
    check(!/Playing/.test(await $("activity").textContent()), "the bar says that it plays");
    const box = await $("not-live").boundingBox();
    check(box.width >= 1440 && box.height >= 800, "it does not cover the screen");
    check(await stopIsFree(), "something covers STOP");
    await photograph("not-live");
  },
  "a STOP fails after 1.5 s, and says so until it is dismissed": async () => {
    const began = Date.now();
    // Who presses again and again must hear of it just as soon.
    for (; Date.now() - began < 5000 && (await $("stop-failed").count()) === 0; await pause(300)) await $("stop").click();
    await page.getByText("STOP did not get through").waitFor({ timeout: 1000 });
    check(Date.now() - began < 3000, `it took ${Date.now() - began} ms`);
    await $("stop-failed").getByText("Use the remote").waitFor();
    await photograph("stop-failed");
    await pause(8000);
    check(await $("stop-failed").isVisible(), "it has gone by itself");
    check(await stopIsFree(), "something covers STOP");
  },
  "the server comes back: the page is live, and the robot has stopped": async () => {
    thaw();
    await live();
    await connected();
    await until(async () => (await kind()) === "idle", "the robot has stopped", 15_000);
    await $("stop-failed").getByText("confirmed").waitFor();
    await photograph("stop-confirmed-late");
    await $("stop-failed").getByRole("button").click();
    await gone("stop-failed");
  },
  "a server that is silent while teaching leaves a word about soft arms": async () => {
    await acknowledgeAll();
    await api("teach/start", { name: "soft" });
    await until(async () => (await kind()) === "teaching", "it teaches");
    await $("stop").waitFor();
    freeze();
    await $("maybe-soft").waitFor({ timeout: 3000 });
    await $("maybe-soft").getByText("15 s").waitFor();
    await photograph("maybe-soft");
    thaw();
    await live();
  },
};

const silentRobot = {
  "a robot plays what it was taught": async () => {
    robot = spawn(task.sim[0], task.sim.slice(1), { stdio: "ignore" });
    await page.goto(task.url);
    await connected();
    await api("connect", { url: task.simUrl });
    await until(async () => (await $("connection").textContent()).includes(task.simUrl), "it turns to the robot");
    await connected();
    await teach("swing", 6);
    await until(async () => (await $("hold").count()) === 0, "the arms are at rest", 30_000);
  },
  "a STOP that does not reach the robot is shown until it is confirmed, over a reload": async () => {
    await api("play", { name: "swing", loop: true });
    await until(async () => (await $("activity").getAttribute("data-phase")) === "playing", "it plays", 30_000);
    freeze(robot.pid);
    await $("stop").click();
    await $("unconfirmed-stop").waitFor({ timeout: 6000 });
    await until(async () => (await $("activity").textContent()).includes("STOP not confirmed"), "the bar says so");
    await photograph("unconfirmed");
    await page.reload();
    await $("unconfirmed-stop").waitFor({ timeout: 10_000 });
    check(!(await $("activity").textContent()).includes("At rest"), "it says at rest");
    await pause(4000);
    check(await $("unconfirmed-stop").isVisible(), "it is forgotten");
    thaw(robot.pid);
    await gone("unconfirmed-stop", 30_000);
    await connected();
    await until(async () => (await kind()) === "idle", "the robot has stopped", 20_000);
  },
  "safety notices stay until they are acknowledged, and the events survive a reload": async () => {
    await $("safety").first().waitFor();
    await pause(11_000);
    check((await $("safety").count()) > 0, "they have gone by themselves");
    await go("Library");
    check((await $("safety").count()) > 0, "they are on one screen only");
    await photograph("safety");
    await acknowledgeAll();
    await page.reload();
    await connected();
    await go("Robot");
    check((await $("safety").count()) === 0, "they come back");
    await $("events").locator("[data-kind=stop-unconfirmed]").first().waitFor();
    await $("events").scrollIntoViewIfNeeded();
    await photograph("events");
  },
  "a robot that is lost while teaching may be soft, and holds once it is back": async () => {
    await api("teach/start", { name: "cut" });
    await until(async () => (await kind()) === "teaching", "it teaches");
    freeze(robot.pid);
    await page.locator("[data-testid=soft][data-by=unknown]").waitFor({ timeout: 20_000 });
    check(!(await $("activity").textContent()).includes("At rest"), "it says at rest");
    await photograph("soft-unknown");
    thaw(robot.pid);
    await connected();
    await gone("soft", 30_000);
    await acknowledgeAll();
  },
  "a playback that another program stops says why it ended": async () => {
    await until(async () => (await kind()) === "idle" && (await $("hold").count()) === 0, "the arms are at rest", 40_000);
    await api("play/take", { take: "swing", force: true });
    await until(async () => (await $("activity").getAttribute("data-phase")) === "playing", "it plays", 30_000);
    execFileSync(task.rote[0], [...task.rote.slice(1), "stop", "--robot", task.simUrl]);
    await until(async () => /ended early/.test(await $("activity").textContent()), "the bar says why", 20_000);
    await photograph("cut-short");
    await go("Robot");
    await $("events").locator("[data-kind=ended]").first().waitFor();
  },
  "arms that another program made soft are shown, and can be made to hold": async () => {
    await until(async () => (await kind()) === "idle" && (await $("hold").count()) === 0, "the arms are at rest", 40_000);
    const other = spawn(task.rote[0], [...task.rote.slice(1), "teach", "theirs", "--seconds", "60", "--robot", task.simUrl], { stdio: "ignore" });
    try {
      await page.locator("[data-testid=soft][data-by=elsewhere]").waitFor({ timeout: 30_000 });
      check(!(await $("activity").textContent()).includes("At rest"), "it says at rest");
      await go("Teach");
      check(await $("teach-start").isDisabled(), "teaching is offered");
      await photograph("soft-elsewhere");
      await $("hold-limbs").click();
      await gone("soft", 10_000);
    } finally {
      other.kill("SIGKILL");
    }
  },
};
/** Let no file of the server and its workers grow beyond a size: writing more fails as on a full disk. */
const limitFiles = (bytes) => {
  // Workers are children of the thread that started them, and inherit the limit of the server at that moment.
  const threads = `/proc/${task.pid}/task`;
  const workers = readdirSync(threads).flatMap((thread) => readFileSync(`${threads}/${thread}/children`, "utf-8").trim().split(/\s+/));
  for (const pid of [String(task.pid), ...workers.filter(Boolean)])
    execFileSync("prlimit", ["--pid", pid, `--fsize=${bytes}:`]);
};

const fullDisk = {
  "a disk that is full is shown while the recording goes on": async () => {
    robot = spawn(task.sim[0], task.sim.slice(1), { stdio: "ignore" });
    await page.goto(`${task.url}#/teach`);
    await connected();
    await api("connect", { url: task.simUrl });
    await until(async () => (await $("pill").textContent()).includes("Connected"), "it is connected");
    await until(async () => $("teach-start").isEnabled(), "teaching is offered", 30_000);
    await $("teach-name").fill("precious");
    limitFiles(1000);
    await $("teach-start").click();
    await $("recording").waitFor({ timeout: 20_000 });
    await $("storage-problem").waitFor({ timeout: 15_000 });
    await photograph("storage-problem");
    await pause(1000);
  },
  "what could not be written is kept over a reload": async () => {
    await $("teach-end").click();
    await $("unsaved-takes").waitFor();
    await $("unsaved-take").getByText("precious").first().waitFor();
    await photograph("unsaved");
    await page.reload();
    await $("unsaved-take").waitFor();
  },
  "it is downloaded, and saved to the library once there is room": async () => {
    limitFiles("unlimited");
    const [file] = await Promise.all([page.waitForEvent("download"), $("unsaved-download").click()]);
    const path = `${task.picture}.download`;
    await file.saveAs(path);
    check(readFileSync(path).length > 1000, "the file is empty");
    check(/precious/.test(file.suggestedFilename()), file.suggestedFilename());
    await $("unsaved-take").getByRole("button", { name: "Try again" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await gone("unsaved-takes");
    await go("Library");
    await page.locator('[data-testid=take][data-name="precious"]').waitFor();
  },
};
const story = { silentServer, silentRobot, fullDisk }[task.story];

try {
  for (const [name, act] of Object.entries(story)) {
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
  thaw();
  robot?.kill("SIGKILL");
  await browser.close();
}
