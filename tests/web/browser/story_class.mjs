// A class at one robot: a teacher, a pupil who may command, and somebody who only watches, each with a browser and a
// link of their own.

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

export const report = { steps: [], console: [], failure: null };
const browser = await launch(task);

/** One person: a browser with cookies of its own. */
const person = async (url, width, height) => {
  const context = await browser.newContext({ viewport: { width, height }, ignoreHTTPSErrors: true });
  context.setDefaultTimeout(20_000);
  const page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && report.console.push(message.text()));
  page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
  await page.goto(url);
  await page.getByTestId("people").waitFor();
  await page.getByText("Ready: no problem found").waitFor();
  return page;
};
/** Open or close the list of who is here. */
const list = (page) => page.getByTestId("people").click();
const called = async (page, name) => {
  await list(page);
  await page.getByTestId("my-name").fill(name);
  await page.getByTestId("my-name").press("Tab");
};
const takes = async (page) => {
  await page.getByRole("button", { name: "Take over" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Take over" }).click();
};
const commands = (page) => until(async () => (await page.locator("[data-testid=watching]").count()) === 0, "it commands");
const onScreen = async (page) => {
  const [box, size] = [await page.getByTestId("stop").boundingBox(), page.viewportSize()];
  check(box.x >= 0 && box.y >= 0 && box.x + box.width <= size.width && box.y + box.height <= size.height, "STOP is on the screen");
};
const photograph = (page, name) => page.screenshot({ path: `${task.pictures}/${name}.png` });

let teacher;
let pupil;
let watcher;
const story = {
  "three people come, and see each other by name": async () => {
    teacher = await person(task.url, 1280, 800);
    pupil = await person(task.commandUrl, 1000, 700);
    watcher = await person(task.watchUrl, 390, 780);
    await called(teacher, "Ms Ada");
    await called(pupil, "Bo");
    await watcher.getByTestId("people").click();
    for (const name of ["Ms Ada", "Bo", "Browser 3"]) await watcher.getByTestId("person").filter({ hasText: name }).waitFor();
    await watcher.getByTestId("person").filter({ hasText: "Ms Ada" }).getByText("commands").waitFor();
    await photograph(watcher, "watcher");
    await photograph(teacher, "teacher");
    for (const page of [teacher, pupil, watcher]) await list(page);
  },
  "who only watches is offered nothing that moves, and STOP": async () => {
    await watcher.getByText("Your link only watches").waitFor();
    check((await watcher.getByRole("button", { name: "Take over" }).count()) === 0, "there is nothing to take over");
    check((await watcher.getByTestId("lock").count()) === 0, "there is nothing to lock");
    await onScreen(watcher);
    await watcher.getByTestId("stop").click();
    await watcher.getByTestId("stop-report").getByText("a stop was sent").waitFor();
  },
  "a countdown is seen by everybody before command passes over": async () => {
    await takes(pupil);
    await pupil.getByText("You take over the command").waitFor();
    for (const page of [teacher, watcher]) await page.getByText("Bo takes over the command").waitFor();
    for (const page of [teacher, pupil, watcher]) await onScreen(page);
    await photograph(watcher, "countdown");
    const left = async () => Number(await watcher.getByTestId("handover").getAttribute("data-left"));
    const first = await left();
    check(first >= 1 && first <= 5, "it counts in seconds");
    await until(async () => (await watcher.getByTestId("handover").count()) === 0 || (await left()) < first, "it counts down");
    await commands(pupil);
    await watcher.getByText("Bo commands").waitFor();
  },
  "a countdown is called off, but not a teacher's by a pupil": async () => {
    await takes(teacher);
    await pupil.getByText("Ms Ada takes over").waitFor();
    check((await pupil.getByRole("button", { name: "Keep it" }).count()) === 0, "a pupil does not keep it from a teacher");
    await teacher.getByRole("button", { name: "Cancel" }).click();
    await until(async () => (await pupil.getByTestId("handover").count()) === 0, "it is called off");
    await teacher.getByText("Bo commands").waitFor();
  },
  "a teacher locks the command, and gives it": async () => {
    await list(teacher);
    await teacher.getByTestId("lock").click();
    await commands(teacher);
    await pupil.getByText("A teacher has locked the command").waitFor();
    check((await pupil.getByRole("button", { name: "Take over" }).count()) === 0, "a pupil cannot take it");
    await photograph(pupil, "locked");
    await teacher.getByTestId("person").filter({ hasText: "Bo" }).getByRole("button", { name: "Give command" }).click();
    await commands(pupil);
    await pupil.getByTestId("stop").click();
    await pupil.getByTestId("stop-report").getByText("a stop was sent").waitFor();
  },
  "a reload is the same person, and still commands": async () => {
    await pupil.reload();
    await pupil.getByText("Ready: no problem found").waitFor();
    await list(pupil);
    await pupil.getByTestId("person").filter({ hasText: "Bo" }).getByText("commands").waitFor();
  },
  "a link that only watches asks before it takes a teacher's role away": async () => {
    const page = await teacher.context().newPage();
    await page.goto(task.watchUrl);
    await page.getByRole("link", { name: "Keep the role teacher" }).click();
    await page.getByTestId("people").waitFor();
    await page.getByTestId("people").click();
    await page.getByTestId("lock").waitFor(); // only a teacher has it
    await page.close();
  },
  "a full server says so, STOP works all the same, and a teacher finds a place": async () => {
    await watcher.evaluate(async () => {
      const opened = Array.from({ length: 60 }, () => new WebSocket(`wss://${location.host}/api/live`));
      await Promise.all(opened.map((socket) => new Promise((done) => (socket.onmessage = socket.onclose = done))));
      globalThis.crowd = opened;
    });
    const late = await watcher.context().newPage();
    late.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
    await late.goto(task.watchUrl);
    await late.locator("[data-testid=not-live][data-state=full]").waitFor();
    await late.getByRole("heading", { name: "Full" }).waitFor();
    await onScreen(late);
    await photograph(late, "full");
    await late.getByTestId("stop").click();
    await late.getByTestId("stop-report").getByText("a stop was sent").waitFor();
    const more = await teacher.context().newPage();
    await more.goto(task.url);
    await more.getByTestId("people").waitFor();
    check((await more.getByTestId("not-live").count()) === 0, "a teacher finds no place");
    await more.close();
    await watcher.evaluate(() => globalThis.crowd.forEach((socket) => socket.close()));
    await late.getByTestId("not-live").waitFor({ state: "detached" });
    await late.close();
  },
};

try {
  for (const [name, live] of Object.entries(story)) {
    const began = Date.now();
    report.steps.push({ name, ms: 0 });
    await live();
    report.steps.at(-1).ms = Date.now() - began;
  }
} catch (error) {
  report.failure = String(error.stack ?? error);
  for (const [name, page] of Object.entries({ teacher, pupil, watcher })) if (page) await photograph(page, `failed-${name}`);
}
await browser.close();
