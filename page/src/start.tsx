/** Start the page. */

import "./styles.css";
import { render } from "preact";
import { App } from "./app";
import { language } from "./languages";
import { open } from "./live";
import { watchViewport } from "./visual-viewport";
import { watchScreen } from "./wake";

/** Render the page and connect it; a `notice` is shown above all its screens. */
export function start(notice?: preact.JSX.Element): void {
  // The 3D part is large; ask for it at once, while the rest comes up.
  if ("WebGL2RenderingContext" in window) void import("./scene/viewport3d");
  document.documentElement.lang = language;
  watchViewport();
  watchScreen();
  open();
  render(<App {...(notice ? { notice } : {})} />, document.getElementById("app") as HTMLElement);
}
