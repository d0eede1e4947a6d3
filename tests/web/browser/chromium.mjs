// The browser of the stories.

import { createRequire } from "node:module";

import { FRAME_MS } from "./waiting.mjs";

/** Make the display a slow one: an animation draws five times a second, and a single frame is drawn at once. Here the
 * processor draws, and at sixty frames a second it would do little else. */
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

/** Offer no WebGL, as a browser without 3D does. */
const withoutWebgl = () => {
  delete window.WebGL2RenderingContext;
  const getContext = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, ...options) {
    return kind.startsWith("webgl") ? null : getContext.call(this, kind, ...options);
  };
};

/** Draw no robot on pages that the context opens from now on: for the rest of a story that has seen it drawn. */
export const stopDrawing = (context) => context.addInitScript(withoutWebgl);

/** Return Playwright's Chromium and how to start it: it draws by software, and has no sandbox where the tests run as root. */
export function chromiumOf(task) {
  const { chromium } = createRequire(`${task.page}/package.json`)("playwright-core");
  const args = ["--enable-unsafe-swiftshader", ...(process.getuid() === 0 ? ["--no-sandbox"] : [])];
  return { chromium, options: { executablePath: task.chromium, args } };
}

/** Return contexts of the shared browser `task.browser`, or of a new one; `close` closes them.
 *
 * A context draws the robot in 3D only with `draws`: drawing by software takes the processor from the page's messages,
 * and the server takes the command from a page that is silent for too long. */
export async function launch(task) {
  const { chromium, options } = chromiumOf(task);
  const browser = task.browser ?? (await chromium.launch(options));
  const contexts = [];
  const newContext = async ({ draws = false, ...more } = {}) => {
    // Transitions would be drawn sixty times a second, too.
    const context = await browser.newContext({ reducedMotion: "reduce", ...more });
    contexts.push(context);
    await context.addInitScript(slowDisplay, FRAME_MS);
    if (!draws) await stopDrawing(context);
    return context;
  };
  const close = () => (task.browser ? Promise.all(contexts.map((context) => context.close())) : browser.close());
  return { newContext, close };
}
