// Two tabs of one browser at the same takes and shows.

import { launch } from "./chromium.mjs";
import { task } from "./task.mjs";
import { check, until } from "./waiting.mjs";

export const report = { steps: [], console: [], failure: null };
const browser = await launch(task);
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
context.setDefaultTimeout(20_000);

const tab = async (hash) => {
  const page = await context.newPage();
  page.on("pageerror", (error) => report.console.push(String(error.stack ?? error)));
  await page.goto(`${task.url}${hash}`);
  return page;
};
const dock = (page) => page.getByTestId("dock");
const stepsOf = async (page) => Number(await dock(page).getAttribute("data-steps"));
const steps = (page, count) => until(async () => (await stepsOf(page)) === count, `${count} steps`);
const press = (page, name) => page.getByRole("button", { name, exact: true }).first().click();
const saveAs = async (page, name) => {
  await page.getByTestId("save-as").click();
  await page.getByLabel("New name").fill(name);
  await page.getByRole("dialog").getByRole("button", { name: "Save as new take" }).click();
};
const api = (page, path, body) =>
  page.evaluate(
    async ([where, what]) => {
      const client = sessionStorage.getItem("rote.client");
      const headers = { "Content-Type": "application/json", "X-Rote-Client": client };
      return (await fetch(`/api/${where}`, { method: "POST", headers, body: JSON.stringify(what) })).json();
    },
    [path, body],
  );
/** Let the next answer for these steps come only when the returned function is called. */
const hold = async (page, pattern, wanted) => {
  let release = () => undefined;
  const held = new Promise((go) => (release = go));
  await page.route(pattern, async (route) => {
    if (wanted(route.request().postDataJSON())) await held;
    await route.continue().catch(() => undefined);
  });
  return async () => {
    release();
    await page.unroute(pattern);
  };
};

let first;
let second;
const story = {
  "two tabs edit one take, and each keeps its edits over a reload": async () => {
    first = await tab("#/edit/wave");
    second = await tab("#/edit/wave");
    for (const page of [first, second]) await dock(page).waitFor();
    await press(first, "Reverse");
    await steps(first, 1);
    await second.waitForTimeout(1500); // its check comes, and writes nothing
    await first.reload();
    await steps(first, 1);
    await press(second, "Mirror");
    await steps(second, 1);
    await press(second, "Reverse");
    await steps(second, 2);
    await first.reload();
    await steps(first, 1);
    await second.reload();
    await steps(second, 2);
    await first.getByTestId("elsewhere").getByText("2 other edits").waitFor();
  },
  "an undo while an edit is still worked out undoes that edit alone": async () => {
    const release = await hold(first, "**/api/edit/curves", ({ steps: asked }) => asked.length === 2);
    await press(first, "Mirror");
    await until(async () => (await dock(first).getAttribute("aria-busy")) === "true", "it is worked out");
    await first.keyboard.press("Control+z");
    await until(async () => (await dock(first).getAttribute("aria-busy")) === "false", "the undo is done");
    await release();
    check((await stepsOf(first)) === 1, "the undo has undone another edit");
    await first.getByTestId("steps").getByText("Reverse").waitFor();
    await first.keyboard.press("Control+Shift+z");
    await steps(first, 2);
    await first.getByTestId("steps").getByText("Mirror").waitFor();
    await first.keyboard.press("Control+z");
    await steps(first, 1);
  },
  "a version that another tab has saved is not covered unasked": async () => {
    await saveAs(first, "wave");
    await first.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
    await steps(first, 0);
    check((await stepsOf(second)) === 2, "the other tab has lost its edits");
    await api(second, "command/take", {}); // who saves, commands
    await until(async () => (await second.getByTestId("watching").count()) === 0, "the second tab commands");
    await saveAs(second, "wave");
    await second.getByRole("dialog").getByText("Version 2 was saved elsewhere").waitFor();
    await second.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
    await steps(second, 0);
    await until(async () => (await second.getByTestId("version").locator("option").count()) === 3, "three versions");
  },
  "edits of a take that was deleted elsewhere are saved as a new take": async () => {
    await second.evaluate(() => (location.hash = "#/edit/other"));
    await dock(second).getByRole("heading", { name: "other" }).waitFor();
    await press(second, "Reverse");
    await steps(second, 1);
    await api(second, "takes/delete", { name: "other" }); // behind the page's back
    await second.getByTestId("deleted").waitFor();
    await second.reload();
    await steps(second, 1);
    await saveAs(second, "rescued");
    await second.getByText("Saved as “rescued”").waitFor();
    await dock(second).getByRole("heading", { name: "rescued" }).waitFor();
  },
  "a take with a name that is too long for the robot is opened, renamed and deleted": async () => {
    const page = second;
    await page.evaluate((name) => (location.hash = `#/edit/${encodeURIComponent(name)}`), task.long);
    await dock(page).getByRole("heading", { name: task.long }).waitFor();
    await page.evaluate(() => (location.hash = "#/library"));
    for (const [name, act] of [[task.long, "Rename"], [task.longer, "Delete"]]) {
      const item = page.locator(`[data-testid=take][data-name="${name}"]`);
      await item.getByRole("button", { name: `More: ${name}` }).click();
      await item.getByRole("button", { name: `${act} ${name}` }).click();
      if (act === "Rename") await page.getByLabel("New name").fill("shorter");
      await page.getByRole("dialog").getByRole("button", { name: act, exact: true }).click();
      await until(async () => (await item.count()) === 0, `${act} is done`);
    }
    await page.locator('[data-testid=take][data-name="shorter"]').waitFor();
  },
  "a slow save of one show does not touch another that was opened meanwhile": async () => {
    const page = second;
    const file = page.getByTestId("show-file");
    const isOpen = (name) => until(async () => (await file.getAttribute("data-name")) === name, `${name} is open`);
    await page.evaluate(() => (location.hash = "#/show"));
    for (const name of ["one", "two"]) {
      await page.getByTestId("new-show").click();
      await page.getByTestId("add-take").first().click();
      await page.getByTestId("save-show").click();
      await page.getByRole("dialog").getByLabel("Name").fill(name);
      await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
      await isOpen(name);
    }
    await page.getByTestId("add-take").first().click();
    const release = await hold(page, "**/api/shows/save", ({ name }) => name === "two");
    await page.getByTestId("save-show").click();
    await page.getByTestId("choose-show").selectOption("one");
    await page.getByRole("dialog").getByRole("button", { name: "Leave" }).click();
    await isOpen("one");
    const saved = page.waitForResponse("**/api/shows/save");
    await release();
    await saved;
    await page.waitForTimeout(500);
    check((await file.getAttribute("data-name")) === "one", "the show that is open is taken for the one that was saved");
    const clips = async (name) => (await page.evaluate(async (of) => (await fetch(`/api/shows/${of}`)).json(), name)).show.sections[0].clips.length;
    check((await clips("two")) === 2 && (await clips("one")) === 1, "the save went to the other file");
  },
  "the draft of a deleted show does not come back": async () => {
    const page = second;
    await page.getByTestId("add-take").first().click();
    await page.getByTestId("show-unsaved").waitFor();
    await page.getByTestId("show-file").locator("summary").click();
    await page.getByTestId("delete-show").click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await until(async () => (await page.getByTestId("show-file").getAttribute("data-name")) !== "one", "it is deleted");
    await page.reload();
    await until(async () => (await page.getByTestId("show-file").getAttribute("data-name")) === "two", "the other is opened");
    check((await page.getByTestId("show-unsaved").count()) === 0, "something is not saved");
  },
};

try {
  for (const [name, act] of Object.entries(story)) {
    const begin = performance.now();
    report.steps.push({ name, ms: null });
    await act();
    report.steps.at(-1).ms = Math.round(performance.now() - begin);
  }
} catch (error) {
  report.failure = String(error.message ?? error);
  for (const [index, page] of [first, second].entries())
    await page?.screenshot({ path: task.picture.replace(".png", `-${index + 1}.png`) }).catch(() => undefined);
} finally {
  await browser.close();
}
