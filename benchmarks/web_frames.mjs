// How smoothly the pendant draws without a graphics card, in low quality, while the robot moves.
// Called by benchmarks/web.py with the page's folder, the browser, the address and the seconds to look; prints JSON:
// frames drawn per second, the longest time from one turn of the page to the next, and the 99th of a hundred.

import { createRequire } from "node:module";

const [page, executablePath, url, seconds] = process.argv.slice(2);
const { chromium } = createRequire(`${page}/package.json`)("playwright-core");
const args = ["--enable-unsafe-swiftshader", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
const browser = await chromium.launch({ executablePath, args });
const opened = await browser.newPage({ viewport: { width: 1440, height: 900 } });
await opened.goto(url, { waitUntil: "commit" });
const drawn = (frames) =>
  opened.waitForFunction(
    (many) => Number(document.querySelector("[data-testid=stage] canvas")?.dataset.frames) > many,
    frames,
    { timeout: 120_000 },
  );
await drawn(40); // shaders are made, and its pace is found
const told = await opened.evaluate(
  (long) =>
    new Promise((resolve) => {
      const canvas = document.querySelector("[data-testid=stage] canvas");
      const first = Number(canvas.dataset.frames);
      const began = performance.now();
      const gaps = [];
      let last = began;
      const turn = (now) => {
        gaps.push(now - last);
        last = now;
        if (now - began < 1000 * long) requestAnimationFrame(turn);
        else {
          gaps.shift();
          gaps.sort((one, other) => one - other);
          resolve({
            per_second: (1000 * (Number(canvas.dataset.frames) - first)) / (now - began),
            longest_ms: gaps.at(-1),
            p99_ms: gaps[Math.floor(0.99 * gaps.length)],
            quality: canvas.dataset.quality,
          });
        }
      };
      requestAnimationFrame(turn);
    }),
  Number(seconds),
);
console.log(JSON.stringify(told));
await browser.close();
