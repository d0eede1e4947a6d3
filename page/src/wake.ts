/** Keep the screen on during a teaching and while the robot moves: STOP must not be behind a dark screen. */

import { effect } from "@preact/signals";
import { connection } from "./state/connection";
import { robot } from "./state/robot";
import { scene } from "./state/scene";
import { stage } from "./state/stage";

let held: WakeLockSentinel | null = null;
let asked = false;

async function hold(): Promise<void> {
  if (held || asked || document.visibilityState !== "visible") return;
  asked = true;
  try {
    held = await navigator.wakeLock.request("screen");
    // The browser lets go of it when the page is hidden.
    held.addEventListener("release", () => (held = null));
    if (!wanted()) letGo();
  } catch {
    // Not every browser can, nor may it without HTTPS.
  } finally {
    asked = false;
  }
}

function letGo(): void {
  void held?.release();
  held = null;
}

function wanted(): boolean {
  return (
    connection.link.value === "open" && (robot.moving.value || stage.running.value || scene.countdown.value !== null)
  );
}

/** Keep the screen on where it is needed, from now on. */
export function watchScreen(): void {
  if (!("wakeLock" in navigator)) return;
  effect(() => {
    if (wanted()) void hold();
    else letGo();
  });
  document.addEventListener("visibilitychange", () => {
    if (wanted()) void hold();
  });
}
