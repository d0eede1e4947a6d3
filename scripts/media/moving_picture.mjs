// A person's path through the page: teach, edit, play. Called by scripts/media/moving_picture, it writes a
// picture of the page again and again, each named after how long it is shown in milliseconds.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const home = fileURLToPath(new URL("../../page/package.json", import.meta.url));
const { chromium } = createRequire(home)("playwright-core");
const [url, folder] = process.argv.slice(2);
const SIZE = { width: 1120, height: 780 };
const MOVING_MS = 150;
const TAUGHT_S = 4;
const STEPS = { teach: "1  Teach by hand", edit: "2  Edit", play: "3  Play" };

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--enable-unsafe-swiftshader", "--no-sandbox"],
});
const context = await browser.newContext({ viewport: SIZE, colorScheme: "dark", bypassCSP: true });
context.setDefaultTimeout(60_000);
await context.addInitScript(() => {
  localStorage.setItem("rote.tips", "yes");
  localStorage.setItem("rote.quality", "low");
  addEventListener("DOMContentLoaded", () => {
    const look = document.createElement("style");
    look.textContent = `
      #shown-step { position: fixed; left: 50%; bottom: 18px; transform: translateX(-50%); z-index: 99999;
        padding: 8px 22px; border-radius: 99px; font: 600 22px system-ui, sans-serif; white-space: pre;
        color: #0b1220; background: #ffd166; box-shadow: 0 2px 12px #0008; pointer-events: none; }
      #shown-pointer { position: fixed; width: 22px; height: 22px; margin: -11px 0 0 -11px; border-radius: 50%;
        z-index: 99999; background: #ffd166aa; border: 2px solid #fff; pointer-events: none; left: 50%; top: 60%; }
      #shown-pointer.down { background: #ef476f; }`;
    document.head.append(look);
    const pointer = document.createElement("div");
    pointer.id = "shown-pointer";
    const step = document.createElement("div");
    step.id = "shown-step";
    document.body.append(pointer, step);
    window.showStep = (text) => { step.textContent = text; };
    addEventListener("mousemove", (event) => {
      pointer.style.left = `${event.clientX}px`;
      pointer.style.top = `${event.clientY}px`;
    }, true);
    addEventListener("mousedown", () => pointer.classList.add("down"), true);
    addEventListener("mouseup", () => setTimeout(() => pointer.classList.remove("down"), 250), true);
  });
});
const page = await context.newPage();
const $ = (name) => page.getByTestId(name);
const button = (name) => page.getByRole("button", { name, exact: true });
const pause = (milliseconds) => page.waitForTimeout(milliseconds);
const show = (step) => page.evaluate((text) => window.showStep(text), STEPS[step]);
const kind = (wanted) => page.waitForSelector(`[data-testid=activity][data-kind=${wanted}]`);

// A page that is drawn by software may be late with its sign of life, and the robot would stop.
await page.routeWebSocket(/\/api\/live/, (socket) => {
  const server = socket.connectToServer();
  const alive = setInterval(() => server.send('{"type":"alive"}'), 500);
  server.onClose(() => clearInterval(alive));
});

let shown = 0;
let number = 0;
/** Take a picture that is shown for so long. */
async function snap(milliseconds) {
  const name = `${String(number++).padStart(4, "0")}-${milliseconds}.png`;
  await page.screenshot({ path: `${folder}/${name}` });
  shown += milliseconds;
}

/** Move the pointer to something as a hand does, and click it. */
async function click(place, after_ms = 300) {
  await place.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await place.boundingBox();
  for (const share of [0.4, 0.8, 1]) {
    await page.mouse.move(pointer.x + share * (x + width / 2 - pointer.x), pointer.y + share * (y + height / 2 - pointer.y));
    await snap(80);
  }
  Object.assign(pointer, { x: x + width / 2, y: y + height / 2 });
  await page.mouse.down();
  await snap(150);
  await page.mouse.up();
  await snap(after_ms);
}
const pointer = { x: SIZE.width / 2, y: SIZE.height * 0.6 };

await page.goto(url);
await page.waitForSelector("[data-testid=stage][data-state=shown]");
await page.waitForSelector("[data-testid=pill][data-state=connected]");
await page.goto(`${url}#/teach`);
await $("teach-name").waitFor();
await show("teach");
await snap(900);

await click($("teach-name"), 100);
for (const letter of "wave") {
  await page.keyboard.type(letter);
  await snap(100);
}
await click(button("Wave"));
await page.getByLabel("for", { exact: false }).last().fill(String(TAUGHT_S));
await click($("teach-start"), 600);
await $("recording").waitFor();
const over = Date.now() + 1000 * TAUGHT_S + 500;
while (!(await $("result").isVisible())) {
  await snap(MOVING_MS);
  if (Date.now() > over) await $("teach-end").click({ timeout: 1000 }).catch(() => undefined);
}
await snap(1200);
await kind("idle");

await page.goto(`${url}#/edit/wave`);
await $("dock").waitFor();
await show("edit");
await pause(1000);
await snap(900);
for (const [handle, distance] of [["handle-to", -50], ["handle-from", 25]]) {
  const box = await $(handle).boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.move(x, y);
  await snap(200);
  await page.mouse.down();
  for (const share of [0.25, 0.5, 0.75, 1]) {
    await page.mouse.move(x + share * distance, y);
    await snap(80);
  }
  await page.mouse.up();
  Object.assign(pointer, { x: x + distance, y });
}
await click($("trim"), 500);
await click(button("Smooth"), 300);
await page.waitForSelector('[data-testid=dock][data-steps="2"]');
await snap(900);

await show("play");
await click($("edit-play"), 100);
// Where a check warns, the page asks once more.
const anyway = page.getByRole("dialog").getByRole("button", { name: /play/i });
await Promise.race([kind("playing"), anyway.waitFor().then(() => click(anyway, 100))]);
await kind("playing");
while ((await $("activity").getAttribute("data-kind")) !== "idle") await snap(MOVING_MS);
await snap(1800);
console.log(`${number} pictures, ${(shown / 1000).toFixed(1)} s`);
await browser.close();
process.exit(0); // timers of the page's connection may be left
