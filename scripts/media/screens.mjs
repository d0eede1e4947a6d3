// Goes through the screens of the pendant and takes their pictures; called by scripts/media/screens.

import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const page = fileURLToPath(new URL("../../page/package.json", import.meta.url));
const { chromium } = createRequire(page)("playwright-core");
const [url, folder, a1, all] = process.argv.slice(2);
const args = ["--enable-unsafe-swiftshader", "--no-sandbox"];
const launch = () => chromium.launch({ executablePath: "/usr/bin/chromium", args });
const TRIES = 3;

/** Open the page as somebody who has read the tips, and who commands or is told so for the picture. */
async function open({ width, height, scheme, quality, commands = false }) {
  const browser = await launch();
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, hasTouch: width < 800 });
  context.setDefaultTimeout(60_000);
  await context.addInitScript((kept) => {
    localStorage.setItem("rote.quality", kept);
    localStorage.setItem("rote.tips", "yes");
    if (kept !== "high") return;
    // The page refuses high quality without a graphics card, because it would be slow. A picture
    // can wait: here the card has another name, and every frame comes in time.
    const told = WebGL2RenderingContext.prototype.getParameter;
    WebGL2RenderingContext.prototype.getParameter = function (what) {
      return what === 0x9246 ? "for a picture" : told.call(this, what);
    };
    const next = requestAnimationFrame.bind(window);
    let clock = 0;
    window.requestAnimationFrame = (draw) => next(() => draw((clock += 16)));
  }, quality);
  const opened = await context.newPage();
  if (commands) {
    await opened.routeWebSocket(/\/api\/live/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((message) => socket.send(String(message).replace(/"you":\s*false/, '"you":true')));
    });
  }
  await opened.goto(url);
  await opened.waitForSelector("[data-testid=stage][data-state=shown]");
  return { browser, page: opened };
}

/** Open the page, do something there and take its picture; anew where drawing by software fails. */
async function picture(name, how, act) {
  for (let tries = 1; ; tries += 1) {
    let opened = null;
    try {
      opened = await open({ ...how, commands: true });
      await act(opened.page);
      // In good quality the robot wears its real shapes, where the set-up has made them.
      if (how.quality === "high" && name !== "a1") await opened.page.waitForSelector("canvas[data-shapes]", { timeout: 15_000 }).catch(() => undefined);
      await shot(opened.page, name);
      return;
    } catch (error) {
      if (tries === TRIES) throw error;
      console.error(`${name}, once more: ${String(error.message).split("\n")[0]}`);
    } finally {
      await opened?.browser.close().catch(() => undefined);
    }
  }
}

/** A page that draws nothing, and so has all its time for commanding. */
async function commander() {
  const browser = await launch();
  const page = await browser.newPage();
  await page.goto(`${url}openapi.json`);
  await page.evaluate(() => new Promise((resolve) => {
    const socket = new WebSocket(`ws://${location.host}/api/live`);
    setInterval(() => socket.send('{"type":"alive"}'), 300);
    socket.onmessage = (event) => {
      const { type, client } = JSON.parse(event.data);
      if (type !== "hello") return;
      window.ask = async (path, body) => {
        const headers = { "X-Rote-Client": client, "Content-Type": "application/json" };
        const answer = await fetch(`/api/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
        if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
      };
      resolve();
    };
  }));
  const ask = (path, body = {}) => page.evaluate(([to, what]) => window.ask(to, what), [path, body]);
  return { ask, close: () => browser.close() };
}

const shot = async (page, name) => {
  await page.mouse.move(2, 2);
  await page.waitForTimeout(1500);
  const path = `${folder}/pendant-${name}.jpg`;
  await page.screenshot({ path, type: "jpeg", quality: 80 });
  console.log(path);
};

const asleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function edit(page, name) {
  await page.goto(`${url}#/edit/${name}`);
  await page.getByTestId("dock").waitFor();
  await page.getByTestId("handle-to").focus();
  await page.keyboard.press("PageDown");
  const place = page.getByTestId("dock").getByTestId("chart-area");
  await place.scrollIntoViewIfNeeded();
  const { width, height } = await place.boundingBox();
  await place.click({ position: { x: width * 0.42, y: height * 0.4 } });
  await page.evaluate(() => scrollTo({ top: 0 }));
}

const { ask, close } = await commander();
const begin = async (name, script, seconds) => {
  await ask("teach/start", { name });
  await ask("teach/hand", { script, seconds });
};
for (const script of ["bow", "clap", "wave"]) {
  await begin(script, script, 5);
  await asleep(5600);
  await ask("teach/finish", { save: true });
}
await begin("wave again", "wave", 4);
await asleep(4300);
const raised = { shoulder_pitch: -1.3, shoulder_roll: -0.5, shoulder_yaw: -0.35, elbow: -0.15, wrist_roll: 0.2, wrist_pitch: 0, wrist_yaw: 0 };
for (const [name, value_rad] of Object.entries(raised)) await ask("teach/drag", { joint: `right_${name}_joint`, value_rad });
await asleep(1500);
if (!process.env.ROTE_ONLY) await picture("teach", { width: 1440, height: 900, scheme: "dark", quality: "high" }, async (page) => {
  await page.goto(`${url}#/teach`);
  await page.getByTestId("recording").waitFor();
});
await ask("teach/finish", { save: false });
await asleep(3000);
const roles = { ann: {}, bob: {}, cleo: {} };
const greet = [
  { role: "ann", take: "wave", at_s: 0.5 },
  { role: "bob", take: "wave", at_s: 1.5, mirror: true },
  { role: "cleo", take: "clap", at_s: 2 },
];
const cues = [{ at_s: 1, role: "ann", say: "Good evening" }, { at_s: 2.5, role: "bob", light: [0, 160, 255] }];
const sections = [
  { name: "hello", clips: greet, cues },
  { name: "bow", start: { on: "after", seconds: 1 }, clips: Object.keys(roles).map((role) => ({ role, take: "bow" })) },
];
await ask("shows/save", { name: "evening", show: { rote_show: 1, title: "Three greet", roles, sections } });
await ask("command/release");
await close();

// [width, height, colours, end of the name]
const looks = process.env.ROTE_ONLY === "show" ? [] : [[1440, 900, "dark", ""], [360, 740, "light", "-phone"]];
if (all) looks.push([1440, 900, "light", "-light"], [360, 740, "dark", "-phone-dark"]);
for (const [width, height, scheme, suffix] of looks) {
  for (const name of ["robot", "teach", "library", "edit"]) {
    if (name === "teach" && !suffix) continue;
    await picture(`${name}${suffix}`, { width, height, scheme, quality: "high" }, async (page) => {
      if (name === "edit") await edit(page, "wave");
      else await page.goto(`${url}#/${name}`);
    });
  }
}

for (const [width, height, scheme, suffix] of [[1440, 900, "dark", ""], [360, 740, "light", "-phone"]]) {
  // Several robots in high quality are too much for software.
  await picture(`show${suffix}`, { width, height, scheme, quality: "low" }, async (page) => {
    await page.goto(`${url}#/show`);
    await page.getByTestId("go").waitFor();
    if (suffix) return;
    await page.locator("[data-testid=show-dock][data-checked=true]").waitFor();
    const ruler = page.getByTestId("ruler").locator("[data-lane-area]");
    const box = await ruler.boundingBox();
    await ruler.click({ position: { x: box.width * 0.42, y: 10 } });
  });
}

// Last, because the others are of a G1.
if (!process.env.ROTE_ONLY) await picture("a1", { width: 1440, height: 900, scheme: "dark", quality: "high" }, async (page) => {
  await page.getByText("Another robot").click();
  await page.getByLabel("Address").fill(a1);
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  await page.waitForSelector("canvas[data-robot=a1]");
  await page.getByText("The walking controller is connected").waitFor();
  await page.getByText("Another robot").click();
  // Drawing so well by software keeps the computer from hearing the robot in time.
  for (let tries = 0; tries < TRIES; tries += 1) {
    await page.waitForTimeout(3000);
    if (await page.getByTestId("anew").isVisible()) await page.getByTestId("anew").click();
  }
  await page.getByText("No problem found for moving it").waitFor();
});
