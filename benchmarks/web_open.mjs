// How long a browser takes from opening the pendant to a robot that is seen to move, in milliseconds.
// Called by benchmarks/web.py with the page's folder, the browser and the address; prints one number per opening.

import { createRequire } from "node:module";

const [page, executablePath, url, times] = process.argv.slice(2);
const { chromium } = createRequire(`${page}/package.json`)("playwright-core");
const args = ["--enable-unsafe-swiftshader", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
const FRAMES = 3; // after the first: it moves

for (let time = 0; time < Number(times); time += 1) {
  const browser = await chromium.launch({ executablePath, args });
  const opened = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  const began = performance.now();
  await opened.goto(url, { waitUntil: "commit" });
  await opened.waitForFunction((frames) => Number(document.querySelector("[data-testid=stage] canvas")?.dataset.frames) > frames, FRAMES);
  console.log(Math.round(performance.now() - began));
  await browser.close();
}
