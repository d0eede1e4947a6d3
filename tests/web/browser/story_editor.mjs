// What a person does in the editor, done by a real browser: closer and wider, marks, keyframes, hands, some joints
// only, edits that are not saved, a long take, and a quadruped's.

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, stillBox, until } from "./waiting.mjs";

export const report = { steps: [], console: [], failure: null, opened_ms: null };
const browser = await launch(task);
let page = null;
let context = null;
async function fresh(width, height, { touch = false, script = null, draws = false } = {}) {
  await context?.close();
  context = await browser.newContext({ viewport: { width, height }, hasTouch: touch, isMobile: touch, draws });
  context.setDefaultTimeout(20_000);
  page = await context.newPage();
  page.on("console", (message) => message.type() === "error" && report.console.push(message.text()));
  page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
  if (script) await page.addInitScript(script);
}
const $ = (name) => page.getByTestId(name);
const button = (name) => page.getByRole("button", { name, exact: true });
const number = async (place, name) => Number(await place.getAttribute(name));
const steps = (count) =>
  until(async () => (await number($("dock"), "data-steps")) === count && (await $("dock").getAttribute("aria-busy")) === "false", `${count} steps`);
const open = async (take) => {
  await page.goto(`${task.url}#/edit/${take}`);
  await $("dock").getByRole("heading", { name: take, exact: true }).waitFor();
  await page.locator("[data-testid=chart]").waitFor();
};
const shown = async () => ({ from: await number($("chart"), "data-from"), to: await number($("chart"), "data-to") });
const area = () => $("dock").getByTestId("chart-area").boundingBox();
const angle = async (joint) =>
  Number((await $("dock").locator(`[data-joint=${joint}]`).getByTestId("legend-value").textContent()).replace("−", "-").replace("°", ""));
const moment = async () => Number((await $("moment").textContent()).split(" ")[0]);
const photograph = async (name) => task.pictures && page.screenshot({ path: `${task.pictures}/${name}.png` });
const drawn = () =>
  until(async () => (await $("stage").getAttribute("data-state")) === "shown", "the robot is drawn", 30_000);
const middle = ({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 });
const drag = async (from, to, wait = 20, held = async () => undefined) => {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  for (const share of [0.25, 0.5, 0.75, 1]) {
    await page.mouse.move(from.x + share * (to.x - from.x), from.y + share * (to.y - from.y));
    await page.waitForTimeout(wait);
  }
  await held();
  await page.mouse.up();
};
async function stopIsSeen(where) {
  const seen = await page.evaluate(() => {
    const { x, y, width, height } = document.querySelector("[data-testid=stop]").getBoundingClientRect();
    const there = document.elementFromPoint(x + width / 2, y + height / 2)?.closest("[data-testid=stop]");
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    return there !== null && x >= 0 && y >= 0 && x + width <= innerWidth + 1 && y + height <= innerHeight + 1 && wide <= 0;
  });
  check(seen, `STOP is on the screen ${where}, and nothing is too wide`);
}

const story = {
  "the time line comes closer by wheel, buttons and keys, and is moved": async () => {
    await fresh(1440, 900, { draws: true });
    await open("wave");
    check((await $("moment").textContent()).match(/^0\.00 s \/ 6\.00 s$/), "times are in hundredths");
    const { x, y, width, height } = await area();
    await page.mouse.move(x + 44 + (width - 58) / 2, y + height / 2);
    await page.mouse.wheel(0, -400);
    await until(async () => (await shown()).to - (await shown()).from < 3.5, "the wheel comes closer");
    const near = await shown();
    check(Math.abs((near.from + near.to) / 2 - 3) < 0.2, "around where the pointer is");
    await page.mouse.wheel(200, 0);
    await until(async () => (await shown()).from > near.from + 0.1, "sideways it is moved");
    await button("The whole take (0)").click();
    await until(async () => (await shown()).to === 6, "all of it is shown");
    check(await button("Zoom out (−)").isDisabled(), "it cannot be wider than the take");
    await button("Zoom in (+)").click();
    await until(async () => (await shown()).to - (await shown()).from < 4, "a button comes closer");
    await page.keyboard.press("0");
    await until(async () => (await shown()).to === 6, "the key 0 shows all");
    for (let press = 0; press < 3; press += 1) await page.keyboard.press("+");
    await until(async () => (await shown()).to - (await shown()).from < 1.6, "the key + comes closer");
    await $("overview").focus();
    await page.keyboard.press("End");
    await until(async () => (await shown()).to === 6, "the last part is shown");
    check((await shown()).from > 4, "and no more");
    await page.keyboard.press("ArrowLeft");
    await until(async () => (await shown()).to < 6, "a key moves it");
    await page.keyboard.press("-");
    await page.keyboard.press("0");
  },
  "the ghost and the curves are at the same moment": async () => {
    await drawn();
    const joint = "right_elbow_joint";
    await $("handle-playhead").focus();
    await page.keyboard.press("Home");
    const hand = () => $("end-right_arm").getAttribute("aria-valuetext");
    const [first, place] = [await angle(joint), await until(hand, "the hand is placed")];
    const told = await page.evaluate(async () => {
      const body = JSON.stringify({ take: "wave" });
      const headers = { "Content-Type": "application/json" };
      const { names, joints_rad } = await (await fetch("/api/edit/curves", { method: "POST", headers, body })).json();
      return (joints_rad[0][names.indexOf("right_elbow_joint")] * 180) / Math.PI;
    });
    check(Math.abs(first - told) <= 1, `the legend tells the angle at the moment, ${first} and ${told}`);
    for (let press = 0; press < 5; press += 1) await page.keyboard.press("PageUp");
    await until(async () => (await moment()) === 2.5, "the moment is shown in hundredths");
    check(Math.abs((await angle(joint)) - first) > 10, "the angle goes along");
    await until(async () => (await hand()) !== place, "so does the ghost's hand");
    await page.keyboard.press("Shift+ArrowRight");
    await until(async () => (await moment()) === 2.51, "hundredths are reached by keys");
    await photograph("editor-1440");
  },
  "marks are made, drawn, moved, renamed and removed": async () => {
    await fresh(1440, 900);
    await open("wave");
    await $("handle-playhead").press("Home");
    await $("handle-playhead").press("PageUp");
    await $("add-mark").click();
    await page.getByRole("dialog").getByText("Mark at 0.50 s").waitFor();
    await page.getByRole("dialog").getByLabel("Label").fill("hit the drum");
    await page.getByRole("dialog").getByRole("button", { name: "Set the mark" }).click();
    await steps(1);
    const mark = $("mark").filter({ hasText: "hit the drum" });
    await mark.waitFor();
    check((await number(mark, "data-time")) === 0.5, "it is drawn where it is");
    await mark.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await steps(2);
    check((await number($("mark").first(), "data-time")) === 0.6, "keys move it");
    const { width } = await area();
    await $("mark").first().hover({ position: { x: 4, y: 60 } }); // once it stays where it is
    const box = await $("mark").first().boundingBox();
    await drag({ x: box.x + 4, y: box.y + 60 }, { x: box.x + 4 + (width - 58) / 6, y: box.y + 60 });
    await steps(3);
    check(Math.abs((await number($("mark").first(), "data-time")) - 1.6) < 0.03, "it is dragged by a second");
    await button("Rename the mark hit the drum").click();
    await page.getByRole("dialog").getByLabel("Label").fill("drum");
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
    await page.locator('[data-testid=mark-row][data-label="drum"]').waitFor();
    await page.locator("[data-edit=reverse]").getByRole("button").click();
    await until(async () => Math.abs((await number($("mark").first(), "data-time")) - 4.4) < 0.03, "it moves along with an edit");
    await button("Remove the mark drum").click();
    await until(async () => (await $("mark").count()) === 0, "it is gone");
    await steps(6);
  },
  "an edit of one arm leaves the other, and every edit of the table is there": async () => {
    await $("joints").locator("[data-joint=right_arm]").click();
    await page.locator("[data-edit=smooth]").getByText("Only: Right arm").waitFor();
    await until(async () => (await number($("chart"), "data-curves")) === 7, "its curves are shown");
    await page.locator("[data-edit=mirror]").getByRole("button").click();
    await steps(7);
    await $("joints").locator('[data-joint=""]').click();
    check((await angle("right_elbow_joint")) === (await angle("left_elbow_joint")), "the right arm is the image of the left");
    await $("add-mark").click();
    await page.getByRole("dialog").getByLabel("Label").fill("end");
    await page.keyboard.press("Enter");
    await steps(8);
    const table = await page.evaluate(async () => (await (await fetch("/api/edits")).json()).edits.map(({ name }) => name));
    check(table.length >= 20, "the table is read");
    for (const name of table) check((await page.locator(`[data-edit=${name}]`).count()) >= 1, `${name} can be reached`);
  },
  "what is not saved is kept over a reload and a change of take, and asked for before it is lost": async () => {
    await $("unsaved").waitFor();
    await Promise.all([page.getByText("Your 8 edits are restored").waitFor(), page.reload()]);
    await steps(8);
    await page.evaluate(() => (location.hash = "#/edit/other"));
    await $("dock").getByRole("heading", { name: "other" }).waitFor();
    await steps(0);
    check((await $("unsaved").count()) === 0, "the other take is as it was saved");
    await page.evaluate(() => (location.hash = "#/edit/wave"));
    await $("dock").getByRole("heading", { name: "wave" }).waitFor();
    await steps(8);
    await button("Undo").click();
    await steps(7);
    await $("revert").click();
    await page.getByRole("dialog").getByText("Discard 7 edits?").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await steps(7);
    await $("revert").click();
    await page.getByRole("dialog").getByRole("button", { name: "Discard edits" }).click();
    await steps(0);
    check((await $("unsaved").count()) === 0, "nothing is unsaved");
    await page.reload();
    await $("dock").waitFor();
    await steps(0);
  },
  "a keyframe is dragged, the curve follows, and it is a step like all others": async () => {
    await $("key-joint").selectOption("right_elbow_joint");
    await until(async () => (await $("keyframe").count()) >= 4, "keyframes are proposed");
    const key = $("keyframe").nth(1);
    const time = await number(key, "data-time");
    const from = middle(await stillBox(key));
    await drag(from, { x: from.x, y: from.y + 40 });
    await steps(1);
    await $("steps").getByText(/Keyframe at .*Right elbow/).waitFor();
    const [low, now] = [await number(key, "aria-valuenow"), await angle("right_elbow_joint")];
    check(Math.abs(low - now) <= 1, `the curve passes through it: ${low}, ${now}`);
    check((await moment()) === time, "the moment shown is the keyframe's");
    await key.focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowUp");
    await steps(2);
    check(Math.abs((await number(key, "data-time")) - time - 0.05) < 0.011, "keys move it in time");
    check((await number(key, "aria-valuenow")) === low + 5, "and by degrees");
    await photograph("keyframes-1440");
    for (let press = 0; press < 30; press += 1) await page.keyboard.press("ArrowUp");
    await steps(3);
    check((await number(key, "aria-valuenow")) === (await number(key, "aria-valuemax")), "not beyond the joint's limit");
    await until(async () => (await $("dock").getAttribute("data-checked")) === "true", "it is checked");
    const before = await $("keyframe").count();
    await $("handle-playhead").press("End");
    await $("handle-playhead").press("PageDown");
    await $("add-keyframe").click();
    await until(async () => (await $("keyframe").count()) === before + 1, "there is one more");
    for (const left of [2, 1, 0]) {
      await page.keyboard.press("Control+z");
      await steps(left);
    }
    await $("key-joint").selectOption("");
  },
  "a hand is dragged in the view, its joints follow within their limits, and that is a keyframe": async () => {
    await fresh(1440, 900, { draws: true });
    await open("wave");
    await drawn();
    await $("handle-playhead").press("Home");
    for (let press = 0; press < 4; press += 1) await $("handle-playhead").press("PageUp");
    const hand = $("end-right_arm");
    await hand.waitFor();
    await page.waitForTimeout(200);
    const from = middle(await hand.boundingBox());
    await drag(from, { x: from.x - 30, y: from.y - 70 }, 60);
    await steps(1);
    await $("steps").getByText("Keyframe at 2.00 s").waitFor();
    await page.waitForTimeout(300);
    const to = middle(await hand.boundingBox());
    check(Math.hypot(to.x - from.x + 30, to.y - from.y + 70) < 12, `the hand is where it was dragged: ${JSON.stringify({ from, to })}`);
    const height = await number(hand, "aria-valuenow");
    await hand.focus();
    for (let press = 0; press < 3; press += 1) await page.keyboard.press("ArrowDown");
    await steps(2);
    await until(async () => Math.abs((await number(hand, "aria-valuenow")) - height + 6) <= 1, "keys move it by 2 cm each");
    await photograph("hand-1440");
    check(!(await $("checks").textContent()).includes("outside"), "no joint is beyond its limits");
    await drag(middle(await hand.boundingBox()), { x: 5, y: 200 }, 60);
    await steps(3);
    await until(async () => (await $("dock").getAttribute("data-checked")) === "true", "it is checked");
    check((await $("checks").locator("[data-severity=error]", { hasText: "allowed" }).count()) === 0, "out of reach, the limits are kept all the same");
    await $("revert").click();
    await page.getByRole("dialog").getByRole("button", { name: "Discard edits" }).click();
    await steps(0);
  },
  "a hand leads the whole motion: proposed, dropped, accepted, and its ends stay": async () => {
    const joint = "right_elbow_joint";
    const playhead = $("handle-playhead");
    const hand = $("end-right_arm");
    const endRows = (made) =>
      page.evaluate(async (steps) => {
        const body = JSON.stringify({ take: "wave", steps });
        const headers = { "Content-Type": "application/json" };
        const { joints_rad } = await (await fetch("/api/edit/curves", { method: "POST", headers, body })).json();
        return JSON.stringify([joints_rad.at(0), joints_rad.at(-1)]);
      }, made);
    const to2 = async () => {
      await playhead.press("Home");
      for (let press = 0; press < 4; press += 1) await playhead.press("PageUp");
      await page.waitForTimeout(200);
      return middle(await hand.boundingBox());
    };
    const checked = () => until(async () => (await $("proposal").locator("[data-checked=true]").count()) === 1, "the proposal is checked");
    await $("drag-makes").selectOption("through");
    await playhead.press("End");
    await hand.focus();
    await page.keyboard.press("ArrowUp");
    await page.getByText("The ends of the motion stay as they are").waitFor();
    check((await $("proposal").count()) === 0, "nothing is proposed at an end");
    const from = await to2();
    const before = await angle(joint);
    const place = () => hand.getAttribute("aria-valuetext");
    let led = null;
    await drag(from, { x: from.x + 20, y: from.y - 60 }, 60, async () => {
      await page.waitForTimeout(300);
      const there = middle(await hand.boundingBox());
      check(Math.hypot(there.x - from.x - 20, there.y - from.y + 60) < 12, `the ghost's hand is at the pointer: ${JSON.stringify({ from, there })}`);
      led = await place();
    });
    await checked();
    await steps(0);
    check((await place()) === led, `let go of, it stays there: ${led}, ${await place()}`);
    check((await $("proposal").textContent()).includes("at 2.00 s"), "it tells the moment");
    check(await $("save-as").isDisabled(), "what is not decided is not saved");
    await until(async () => Math.abs((await angle(joint)) - before) > 2, `the legend tells another angle than ${before}`);
    const proposed = await angle(joint);
    await photograph("through-1440");
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForTimeout(200);
    await stopIsSeen("beside a proposal");
    await $("proposal").scrollIntoViewIfNeeded();
    await photograph("through-390");
    await page.setViewportSize({ width: 1440, height: 900 });
    await playhead.press("PageUp");
    check((await $("proposal").count()) === 1, "it stays while another moment is looked at");
    await $("drop-proposal").click();
    await to2();
    check((await $("proposal").count()) === 0 && (await angle(joint)) === before, "dropped, nothing has changed");
    await steps(0);
    await drag(from, { x: from.x + 20, y: from.y - 60 }, 60);
    await checked();
    await $("accept-proposal").click();
    await steps(1);
    check((await $("proposal").count()) === 0, "it is decided");
    check(Math.abs((await angle(joint)) - proposed) <= 1, `accepted, it passes there: ${proposed}, ${await angle(joint)}`);
    const [made] = await page.evaluate(() => Object.values(JSON.parse(localStorage.getItem("rote.drafts"))).find(({ take }) => take === "wave").steps);
    check(made.op === "through" && made.time_s === 2, "as one step");
    await until(async () => (await $("dock").getAttribute("data-checked")) === "true", "it is checked anew");
    check((await endRows([made])) === (await endRows([])), "the ends stay, to the last digit");
    await button("Undo").click();
    await steps(0);
    await $("drag-makes").selectOption("keyframe");
  },
  "the path of a hand is drawn, dragged at any of its points, and refused where it is out of reach": async () => {
    const playhead = $("handle-playhead");
    await open("hello");
    await $("drag-makes").selectOption("path");
    await playhead.press("Home");
    const line = () => $("path-right_arm").locator("polyline").last().getAttribute("points");
    const points = async () => (await line()).split(" ").map((point) => point.split(",").map(Number));
    await until(async () => ((await line()) ?? "").includes(" "), "the path is drawn");
    const view = await $("hand-paths").boundingBox();
    // A handle lies over the path where its hand is now, and one path may cross the other.
    const topmost = ({ x, y }) => document.elementFromPoint(x, y)?.closest("[data-testid]")?.dataset.testid;
    let from = null;
    for (const [x, y] of (await points()).slice(20, -20)) {
      const at = { x: view.x + x, y: view.y + y };
      if (!from && (await page.evaluate(topmost, at)) === "path-right_arm") from = at;
    }
    check(from, "some point of the path can be grabbed");
    const before = await line();
    const pointer = { x: from.x + 4, y: from.y - 10 };
    const distance = async ({ x, y }) => {
      const at = middle(await $("end-right_arm").boundingBox());
      return Math.hypot(at.x - x, at.y - y);
    };
    // In centimetres: the view changes its size when the legend gets another row.
    const place = async () => (await $("end-right_arm").getAttribute("aria-valuetext")).match(/-?\d+/g).map(Number);
    let dragged = null;
    await drag(from, pointer, 60, async () => {
      await until(async () => (await distance(pointer)) < 4, "the hand is at the pointer");
      dragged = await place();
      const there = middle(await $("end-right_arm").boundingBox());
      const away = async () => Math.min(...(await points()).map(([px, py]) => Math.hypot(view.x + px - there.x, view.y + py - there.y)));
      await until(async () => (await away()) < 8, "the drawn path bends along with the hand");
      await photograph("path-1440");
    });
    await steps(1);
    const time = await moment();
    check(time > 0.1 && time < 5.9, `the moment of the point is shown: ${time}`);
    await $("steps").getByText(`Right hand: path moved at ${time.toFixed(2)} s`).waitFor();
    await until(async () => (await line()) !== before, "the new path is drawn");
    const [made] = await page.evaluate(() => Object.values(JSON.parse(localStorage.getItem("rote.drafts"))).find(({ take }) => take === "hello").steps);
    check(made.op === "move_hand" && made.hand === "right" && made.through[0].length === 4, "as one step of the table");
    const near = (at) => at.every((cm, axis) => Math.abs(cm - dragged[axis]) <= 1);
    await until(async () => near(await place()), "the hand passes where it was dragged to");
    const to = middle(await $("end-right_arm").boundingBox());
    await drag(to, { x: to.x - 260, y: to.y - 320 }, 60);
    await page.getByText("misses its new path by").first().waitFor();
    await steps(1);
    // The browser itself logs an answer that is a refusal.
    report.console = report.console.filter((text) => !text.includes("400 (Bad Request)"));
    await page.setViewportSize({ width: 390, height: 844 });
    await page.waitForTimeout(200);
    await stopIsSeen("with a path");
    await photograph("path-390");
    await page.setViewportSize({ width: 1440, height: 900 });
    await button("Undo").click();
    await steps(0);
    await $("drag-makes").selectOption("keyframe");
    check((await $("hand-paths").count()) === 0, "the path is drawn only while it can be dragged");
  },
  "a take of three minutes is shown before its check is done, and all its samples from near": async () => {
    await fresh(1440, 900);
    await page.goto(`${task.url}#/edit`);
    const pick = page.getByRole("button", { name: /^long/ });
    await pick.waitFor();
    await page.waitForTimeout(500);
    const times = [];
    for (let round = 0; round < 2; round += 1) {
      await page.evaluate(() => (location.hash = "#/edit/other"));
      await $("dock").getByRole("heading", { name: "other" }).waitFor();
      times.push(
        await page.evaluate(
          () =>
            new Promise((done, stop) => {
              const begin = performance.now();
              location.hash = "#/edit/long";
              const look = () => {
                const title = document.querySelector("[data-testid=dock] h1")?.textContent;
                const chart = document.querySelector("[data-testid=dock] [data-testid=chart]");
                if (title === "long" && Number(chart?.dataset.to) === 180) {
                  if (document.querySelector("[data-testid=dock]").dataset.checked === "false") done(performance.now() - begin);
                  else stop(new Error("it is shown only when it is checked"));
                } else requestAnimationFrame(look);
              };
              look();
            }),
        ),
      );
    }
    report.opened_ms = times.map(Math.round);
    const parts = [];
    page.on("response", async (answer) => {
      if (answer.url().endsWith("/edit/curves")) parts.push(await answer.json().catch(() => null));
    });
    await until(async () => {
      const { from, to } = await shown();
      if (to - from < 2) return true;
      await page.keyboard.press("+");
      return false;
    }, "it is seen from near");
    const { from, to } = await shown();
    const covers = (part) => part?.whole && part.times_s[0] <= from && part.times_s.at(-1) >= to;
    await until(() => parts.some(covers), "all samples of what is shown are requested");
    await photograph("long-1440");
  },
  "a quadruped's take is drawn with its legs, and its feet can be led": async () => {
    await fresh(1440, 900, { draws: true });
    await open("trot");
    await until(async () => (await page.locator("canvas[data-robot=a1]").count()) === 1, "an A1 is drawn", 30_000);
    await until(async () => (await number($("chart"), "data-curves")) === 12, "all twelve joints have a curve");
    for (const leg of ["front_left", "front_right", "rear_left", "rear_right"]) {
      check(await $("joints").locator(`[data-joint=${leg}_leg]`).isVisible(), `${leg} is a limb`);
    }
    check((await $("joints").locator("[data-joint=left_arm]").count()) === 0, "it has no arms");
    const foot = $("end-front_right_leg");
    await until(async () => await foot.isVisible(), "its feet can be taken hold of", 30_000);
    const height = await number(foot, "aria-valuenow");
    await foot.focus();
    for (let press = 0; press < 3; press += 1) await page.keyboard.press("ArrowUp");
    await steps(1);
    await until(async () => (await number(foot, "aria-valuenow")) >= height + 4, "the foot is raised");
    const [edited] = await page.evaluate(async () => {
      const draft = Object.values(JSON.parse(localStorage.getItem("rote.drafts"))).find(({ take }) => take === "trot");
      return draft.steps;
    });
    check(Object.keys(edited.pose).sort().join() === "FR_calf_joint,FR_hip_joint,FR_thigh_joint", "by the joints of its leg");
    await photograph("a1-1440");
    await button("Undo").click();
    await steps(0);
  },
  "two fingers come closer, on a phone, and STOP stays": async () => {
    await fresh(390, 844, { touch: true });
    await open("wave");
    await stopIsSeen("on a phone");
    const { x, y, width, height } = await area();
    const devtools = await context.newCDPSession(page);
    const at = y + height / 2;
    const touch = (type, ...places) =>
      devtools.send("Input.dispatchTouchEvent", { type, touchPoints: places.map((place, id) => ({ x: x + place * width, y: at, id })) });
    await touch("touchStart", 0.45, 0.55);
    for (const spread of [0.1, 0.2, 0.3]) await touch("touchMove", 0.45 - spread, 0.55 + spread);
    await touch("touchEnd");
    await until(async () => (await shown()).to - (await shown()).from < 2, "two fingers come closer");
    await photograph("editor-390");
    await $("key-joint").selectOption("right_elbow_joint");
    await until(async () => (await $("keyframe").count()) >= 4, "keyframes are proposed");
    await button("The whole take (0)").click();
    await until(async () => (await shown()).to === 6, "all of it is shown");
    const key = middle(await stillBox($("keyframe").nth(1)));
    await devtools.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ ...key, id: 0 }] });
    for (const by of [10, 20, 30]) await devtools.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: [{ x: key.x, y: key.y + by, id: 0 }] });
    await devtools.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await steps(1);
    await stopIsSeen("with keyframes");
    await photograph("keyframes-390");
    for (const [wide, high] of [[320, 568], [1024, 768]]) {
      await page.setViewportSize({ width: wide, height: high });
      await page.waitForTimeout(200);
      await stopIsSeen(`at ${wide}`);
      await photograph(`keyframes-${wide}`);
    }
  },
  "where the browser keeps nothing, leaving asks first": async () => {
    await fresh(1024, 768, {
      script: () =>
        Object.defineProperty(window, "localStorage", {
          get() {
            throw new DOMException("blocked", "SecurityError");
          },
        }),
    });
    await open("wave");
    await page.locator("[data-edit=reverse]").getByRole("button").click();
    await steps(1);
    const asked = page.waitForEvent("dialog");
    const gone = page.close({ runBeforeUnload: true });
    const dialog = await asked;
    check(dialog.type() === "beforeunload", "it asks");
    await dialog.accept();
    await gone;
  },
};

try {
  for (const [name, act] of Object.entries(story)) {
    if (task.only && !task.only.some((part) => name.includes(part))) continue;
    const begin = performance.now();
    report.steps.push({ name, ms: null });
    if (!page) await fresh(1440, 900, { draws: true });
    await act();
    report.steps.at(-1).ms = Math.round(performance.now() - begin);
  }
} catch (error) {
  report.failure = String(error.stack ?? error);
  report.said = await $("notice").allTextContents().catch(() => []);
  await page.screenshot({ path: task.picture }).catch(() => undefined);
} finally {
  await browser.close();
}
