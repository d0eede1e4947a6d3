// A person at the pendant: reads what an agent proposes, types the secret, lets go too early, then holds the button.
// Reads its task as JSON from standard input; prints a line when the page is connected, and then what happened.

import { readFileSync } from "node:fs";

import { launch } from "../web/browser/chromium.mjs";

const task = JSON.parse(readFileSync(0, "utf-8"));
const browser = await launch(task);
const report = { steps: [], failure: null };
const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
const page = await context.newPage();
page.setDefaultTimeout(60_000);
const button = page.getByTestId("approve");
const press = async () => {
  const box = await button.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
};
try {
  await page.goto(task.url);
  await page.locator("[data-testid=pill][data-state=connected]").waitFor();
  console.log("connected");
  const shown = page.getByTestId("proposal");
  await shown.waitFor();
  report.shown = await shown.innerText();
  report.locked = await button.isDisabled();
  await page.getByTestId("secret").fill(task.secret.toLowerCase());
  await press();
  await page.waitForTimeout(300);
  await page.mouse.up();
  await page.waitForTimeout(300);
  report.afterTap = await shown.getAttribute("data-state");
  if (task.picture) await page.screenshot({ path: task.picture });
  await press();
  await shown.waitFor({ state: "detached" });
  await page.mouse.up();
  // A page that leaves while the robot plays has it stopped.
  for (let kind = "playing"; kind !== "idle"; ) {
    await page.waitForTimeout(200);
    kind = await page.evaluate(async () => (await (await fetch("/api/status")).json()).activity.kind);
  }
  report.steps.push("held");
} catch (error) {
  report.failure = String(error.stack ?? error);
} finally {
  await browser.close();
}
console.log(JSON.stringify(report));
