/** The stage that the server conducts: several robots, and the show that runs on them. */

import { computed, signal } from "@preact/signals";
import type { StageNow } from "../types";
import { connection } from "./connection";

const current = signal<StageNow | null>(null);
/** When that was received, on the page's clock in seconds. */
const receivedAt = signal(0);
/** Whether robots of the stage move, or are about to. */
const running = computed(() => {
  const run = current.value?.run;
  return connection.link.value === "open" && !!run && run.state !== "waiting";
});

export const stage = { current, receivedAt, running };
