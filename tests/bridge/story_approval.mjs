// A person at the pendant: reads what an agent proposes, types the secret, lets go too early, then holds the button.
// Reads its task as JSON from standard input, prints what happened.

import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const task = JSON.parse(readFileSync(0, "utf-8"));
const { chromium } = createRequire(`${task.page}/package.json`)("playwright-core");
const browser = await chromium.launch({
  executablePath: task.chromium,
  args: ["--enable-unsafe-swiftshader", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])],
});
const report = { steps: [], failure: null };
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.setDefaultTimeout(60_000);
const button = page.getByTestId("approve");
const hold = async (ms) => {
  const box = await button.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  await page.waitForTimeout(ms);
  await page.mouse.up();
};
try {
  await page.goto(task.url);
  const shown = page.getByTestId("proposal");
  await shown.waitFor();
  report.shown = await shown.innerText();
  report.locked = await button.isDisabled();
  await page.getByTestId("secret").fill(task.secret.toLowerCase());
  await hold(300);
  await page.waitForTimeout(300);
  report.afterTap = await shown.getAttribute("data-state");
  if (task.picture) await page.screenshot({ path: task.picture });
  await hold(2500);
  await page.locator("[data-testid=proposal]").waitFor({ state: "detached" });
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
