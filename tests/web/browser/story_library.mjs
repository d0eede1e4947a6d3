// The library, the cues and the language of the page, in a real browser.

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

export const report = { steps: [], console: [], failure: null };
const browser = await launch(task);

let page = null;
let context = null;
/** A new browser; what the screen's lock was asked is counted. */
async function fresh({ width = 1024, height = 768, ...more } = {}) {
  await context?.close();
  context = await browser.newContext({
    viewport: { width, height },
    hasTouch: width < 900,
    isMobile: width < 900,
    colorScheme: "light",
    locale: "en-US",
    ...more,
  });
  context.setDefaultTimeout(30_000);
  page = await context.newPage();
  page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
  page.on("console", (said) => said.type() === "error" && !/status of 4\d\d/.test(said.text()) && report.console.push(said.text()));
  await page.addInitScript(() => {
    localStorage.setItem("rote.tips", "yes");
    window.lock = { held: 0, asked: 0 };
    Object.defineProperty(navigator, "wakeLock", {
      value: {
        request: async () => {
          window.lock.asked += 1;
          window.lock.held += 1;
          const sentinel = new EventTarget();
          sentinel.release = async () => {
            window.lock.held -= 1;
          };
          return sentinel;
        },
      },
    });
  });
  await page.goto(task.url);
  await until(async () => (await $("pill").getAttribute("data-state")) === "connected", "the robot is connected", 30_000);
  await until(async () => (await page.evaluate(async () => (await (await fetch("/api/status")).json()).commander)).number === null || (await commands()), "it may command", 15_000);
}
const commands = async () => (await page.locator("[data-testid=watching]").count()) === 0;
const $ = (name) => page.getByTestId(name);
const to = (screen) => page.evaluate((where) => (location.hash = `#/${where}`), screen);
const button = (name) => page.getByRole("button", { name, exact: true });
const take = (name) => page.locator(`[data-testid=take][data-name="${name}"]`);
const idle = () => until(async () => (await $("activity").getAttribute("data-kind")) === "idle", "it rests", 30_000);
const plays = () => until(async () => (await $("activity").getAttribute("data-kind")) === "playing", "it plays", 30_000);

const HEAD = task.csv.slice(0, task.csv.indexOf("\n"));
const file = (name, text = task.csv) => ({ name, mimeType: "text/csv", buffer: Buffer.from(text) });
const inDegrees = [
  HEAD,
  ...task.csv.trim().split("\n").slice(1).map((line) => {
    const [time, ...angles] = line.split(",");
    return [time, ...angles.map((angle) => String((Number(angle) * 180) / Math.PI))].join(",");
  }),
].join("\n");

const story = {
  "several files get names and units, and each has its notice": async () => {
    await fresh();
    await to("library");
    await $("upload").setInputFiles([file("sway.csv"), file("odd.csv", inDegrees), file("broken.csv", "no motion")]);
    check((await $("upload-row").count()) === 3, "each file has a row");
    await page.locator("#upload-name-0").fill("sway one");
    await button("Add").click();
    await until(async () => (await page.locator("[data-testid=upload-row][data-state=done]").count()) === 1, "one was added");
    await until(async () => (await $("notice").count()) === 3, "every file has its notice");
    const words = await page.locator("dialog").innerText();
    check(/degrees/i.test(words), "it says that one holds degrees");
    check(!/rote motion|--degrees|load\(/.test(await page.locator("body").innerText()), "no command is named");
    await $("upload-row").nth(1).getByRole("combobox").selectOption("deg");
    await button("Add").click();
    await until(async () => (await page.locator("[data-testid=upload-row][data-state=done]").count()) === 2, "degrees were added");
    await button("Cancel").click();
    await take("sway one").waitFor();
    await take("odd").waitFor();
    check((await take("broken").count()) === 0, "what is broken is not there");
  },
  "a name that exists is asked about": async () => {
    await $("upload").setInputFiles([file("odd.csv")]);
    const row = $("upload-row");
    await row.getByText("A take with this name exists.").waitFor();
    await button("Add").click();
    check((await row.getAttribute("data-state")) === "waiting", "it is not sent before a yes");
    await row.getByRole("checkbox").check();
    await button("Add").click();
    await page.locator("dialog").waitFor({ state: "detached" });
    await take("odd").getByText("version 2").waitFor();
  },
  "a take loops until STOP, and the screen stays on": async () => {
    await button("Loop").click();
    await take("sway one").getByRole("button", { name: "Play sway one" }).click();
    await plays();
    check((await page.evaluate(() => window.lock.held)) === 1, "the screen is kept on");
    await until(
      async () => {
        if (/round 2/.test(await $("activity").innerText())) return true;
        // A computer that has too much to do sends poses too late, which ends a playback softly, and the page says so.
        if (await page.getByText("The loop has ended").count()) {
          await idle();
          await take("sway one").getByRole("button", { name: "Play sway one" }).click();
          await plays();
        }
        return false;
      },
      "it plays a second round",
      60_000,
    );
    await $("stop").click();
    await idle();
    await until(async () => (await page.evaluate(() => window.lock.held)) === 0, "the screen may go dark");
    await button("Loop").click();
  },
  "a take is put on the robot": async () => {
    await take("sway one").getByRole("button", { name: "More: sway one" }).click();
    await $("store").click();
    await page.locator("dialog input").fill("from here");
    await page.locator("dialog").getByRole("button", { name: "Put on the robot" }).click();
    await page.locator("[data-testid=action][data-name='from here']").waitFor();
  },
  "what was deleted is restored, and then deleted for good": async () => {
    await take("odd").getByRole("button", { name: "More: odd" }).click();
    await button("Delete odd").click();
    await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
    await take("odd").waitFor({ state: "detached" });
    await button("Show the trash").click();
    await button("Restore: odd").click();
    await take("odd").waitFor();
    await take("odd").getByRole("button", { name: "More: odd" }).click();
    await button("Delete odd").click();
    await page.locator("dialog").getByRole("button", { name: "Delete" }).click();
    await button("Delete permanently: odd").click();
    await page.locator("dialog").getByRole("button", { name: "Delete permanently" }).click();
    await $("trash").getByText("The trash is empty.").waitFor();
  },
  "cues play by pad and by key, one after the other, and not after a stop": async () => {
    await take("sway one").getByTestId("star").click();
    await page.locator("[data-testid=action][data-name='from here']").getByTestId("star").click();
    await to("cues");
    check((await $("pad").count()) === 2, "each has a pad");
    check(/Next: sway one/.test(await $("cue-next").innerText()), "it says what plays next");
    await page.locator("body").press("1");
    await plays();
    await $("pad").nth(1).click();
    await $("cue-waiting").getByText("from here").waitFor();
    await until(async () => /from here/.test(await $("activity").innerText()), "the second follows by itself", 30_000);
    await page.locator("body").press("1");
    await $("cue-waiting").getByText("sway one").waitFor();
    await page.keyboard.press("Escape");
    await idle();
    await page.waitForTimeout(1500);
    check((await $("activity").getAttribute("data-kind")) === "idle", "nothing begins after a stop");
    check((await $("cue-waiting").innerText()).trim() === "", "nothing waits after a stop");
    check(/Again: from here/.test(await $("cue-again").innerText()), "it says what played last");
  },
  "a lead-in is counted, and STOP ends it": async () => {
    await $("lead-in").selectOption("3");
    await page.locator("body").press("PageDown");
    await $("countdown").getByText("3").waitFor();
    check(/sway one/.test(await $("countdown").innerText()), "it says what begins");
    await page.keyboard.press("Escape");
    await $("countdown").waitFor({ state: "detached" });
    await page.waitForTimeout(1200);
    check((await $("activity").getAttribute("data-kind")) === "idle", "nothing was begun");
    await page.reload();
    await until(async () => (await $("pad").count()) === 2, "the cues are there after a reload");
    check((await $("lead-in").inputValue()) === "3", "so is the lead-in");
  },
  "a thousand takes are listed in pages, and shown in parts": async () => {
    let asked = [];
    await page.route("**/api/takes?*", async (route) => {
      const query = new URL(route.request().url()).searchParams;
      const first = Number(query.get("first"));
      const tag = `tag ${first}`;
      const same = query.get("known") === tag;
      asked.push({ first, same });
      const made = Array.from({ length: Math.min(Number(query.get("count")), 1000 - first) }, (_, number) => ({
        ...task.entry,
        name: `take ${String(first + number).padStart(4, "0")}`,
      }));
      await route.fulfill({ json: { takes: same ? [] : made, total: 1000, tag, same } });
    });
    await to("library");
    await take("take 0000").waitFor();
    await page.getByText("1000", { exact: true }).waitFor();
    check((await $("take").count()) < 100, "not all are drawn");
    await page.getByRole("searchbox").fill("take 0999");
    await take("take 0999").waitFor();
    await page.getByRole("searchbox").fill("");
    await $("show-more").click();
    await until(async () => (await $("take").count()) > 200, "more are shown");
    await until(() => asked.length >= 5 && asked.some(({ first }) => first === 800), "all were asked for");
    asked = [];
    await to("robot");
    await to("library");
    await until(() => asked.length >= 5, "they are asked for again");
    check(asked.every(({ same }) => same), "what is known is not sent again");
    await page.unroute("**/api/takes?*");
  },
  "over a wire that plays no takes, the page says so": async () => {
    await page.route("**/api/status", async (route) => {
      const answer = await route.fetch();
      const told = await answer.json();
      await route.fulfill({ response: answer, json: told });
    });
    await page.routeWebSocket("**/api/live*", (socket) => {
      const server = socket.connectToServer();
      server.onMessage((message) => {
        const told = JSON.parse(message);
        if (told.abilities) told.abilities = told.abilities.filter((each) => !["stream", "store", "tempo"].includes(each));
        socket.send(JSON.stringify(told));
      });
    });
    await page.reload();
    await to("library");
    await $("no-stream").waitFor();
    check((await page.getByRole("button", { name: "Play sway one" }).count()) === 0, "no Play is offered");
  },
  "the page speaks the browser's language, and another one when asked": async () => {
    await fresh({ locale: "de-AT" });
    check((await page.evaluate(() => document.documentElement.lang)) === "de", "the page is German");
    for (const screen of ["robot", "teach", "library", "edit", "cues", "show"]) {
      await to(screen);
      await page.waitForTimeout(400);
      const shown = await page.evaluate(() => {
        const texts = [document.title];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (walker.nextNode()) texts.push(walker.currentNode.textContent.trim());
        for (const each of document.querySelectorAll("[aria-label],[title],[placeholder]"))
          texts.push(...["aria-label", "title", "placeholder"].map((name) => each.getAttribute(name)?.trim() ?? ""));
        return texts.filter(Boolean);
      });
      const english = shown.filter((text) => task.english.includes(text));
      check(english.length === 0, `${screen} shows English: ${JSON.stringify(english)}`);
      if (task.pictures) await page.screenshot({ path: `${task.pictures}/de-${screen}.png` });
    }
    await button("Einstellungen").click();
    await button("English").click();
    await page.getByRole("navigation").getByRole("link", { name: "Library", exact: true }).waitFor();
    await page.reload();
    await page.getByRole("navigation").getByRole("link", { name: "Library", exact: true }).waitFor();
    check((await page.evaluate(() => document.documentElement.lang)) === "en", "the choice is kept");
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
