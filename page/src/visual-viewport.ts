/**
 * Where the screen really ends. An on-screen keyboard may cover the page's lower edge, and two fingers may
 * have enlarged a part of it: STOP stays in what is seen.
 */

/** A keyboard is at least this high. */
const KEYBOARD_PX = 80;
const MARGIN_PX = 8;

function place(seen: VisualViewport): void {
  const root = document.documentElement;
  const zoomed = seen.scale > 1.02;
  const covered = zoomed ? 0 : Math.max(0, innerHeight - seen.height - seen.offsetTop);
  root.style.setProperty("--covered", `${Math.round(covered)}px`);
  root.classList.toggle("typing", covered > KEYBOARD_PX);
  root.classList.toggle("enlarged", zoomed);
  const stop = document.querySelector<HTMLElement>("[data-testid=stop]");
  if (!zoomed || !stop) return;
  const [width, height] = [stop.offsetWidth + MARGIN_PX, stop.offsetHeight + MARGIN_PX];
  root.style.setProperty("--seen-x", `${seen.offsetLeft + seen.width - width / seen.scale}px`);
  root.style.setProperty("--seen-y", `${seen.offsetTop + seen.height - height / seen.scale}px`);
  root.style.setProperty("--seen-scale", String(1 / seen.scale));
}

/** Keep STOP where it is seen, from now on. */
export function watchViewport(): void {
  const seen = window.visualViewport;
  if (!seen) return;
  const again = (): void => place(seen);
  for (const event of ["resize", "scroll"]) seen.addEventListener(event, again);
  addEventListener("resize", again);
  again();
}
