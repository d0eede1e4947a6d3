// The browser of the stories.

import { createRequire } from "node:module";

/** How long a picture that moves waits for its next frame. */
const FRAME_MS = 200;

/** Make the display a slow one: what draws again and again does so five times a second, and what asks for one frame
 * has it at once. Here the processor draws, and at sixty frames a second it would do little else. */
const slowDisplay = (frameMs) => {
  const soon = window.requestAnimationFrame.bind(window);
  const forget = window.cancelAnimationFrame.bind(window);
  const lately = new WeakMap();
  window.requestAnimationFrame = (draw) => {
    const run = (now) => {
      lately.set(draw, now);
      draw(now);
    };
    const wait = (lately.get(draw) ?? Number.NEGATIVE_INFINITY) + frameMs - performance.now();
    return wait > 0 ? -setTimeout(() => run(performance.now()), wait) : soon(run);
  };
  window.cancelAnimationFrame = (id) => (id < 0 ? clearTimeout(-id) : forget(id));
};

/** Start Chromium: it draws by software unless `args` say otherwise, and has no sandbox where the tests run as root. */
export async function launch(task, args = ["--enable-unsafe-swiftshader"]) {
  const { chromium } = createRequire(`${task.page}/package.json`)("playwright-core");
  const browser = await chromium.launch({
    executablePath: task.chromium,
    args: [...args, ...(process.getuid() === 0 ? ["--no-sandbox"] : [])],
  });
  const newContext = browser.newContext.bind(browser);
  browser.newContext = async (options) => {
    // What breathes and fades would be drawn sixty times a second, too.
    const context = await newContext({ reducedMotion: "reduce", ...options });
    await context.addInitScript(slowDisplay, FRAME_MS);
    return context;
  };
  return browser;
}
