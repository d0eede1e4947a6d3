/** The stage that the server conducts: several robots, and the show that runs on them. */

import { computed, signal } from "@preact/signals";
import { ApiError, api } from "../api";
import type { ControlCues, SetOffset } from "../api-types";
import { sentence } from "../format";
import type { StageNow } from "../types";
import { now } from "./clock";
import { connection } from "./connection";

const current = signal<StageNow | null>(null);
/** When that was received, on the page's clock in seconds. */
const receivedAt = signal(0);
/** Whether robots of the stage move, or are about to. */
const running = computed(() => {
  const run = current.value?.run;
  return connection.link.value === "open" && !!run && run.state !== "waiting" && run.state !== "stopped";
});
/** Why the last command was refused; empty if it was not. */
const refusal = signal("");
const working = signal(false);

function report(error: unknown): void {
  refusal.value =
    error instanceof ApiError ? `${sentence(error.message)} ${sentence(error.remedy)}`.trim() : String(error);
}

/** Send a command; what the page shows afterwards is the stage's own answer. */
async function send(request: () => Promise<StageNow>): Promise<void> {
  working.value = true;
  refusal.value = "";
  try {
    current.value = await request();
    receivedAt.value = now();
  } catch (error) {
    report(error);
  }
  working.value = false;
}

const control = (command: ControlCues): Promise<void> => send(() => api.stageCue(command));
const setOffset = (offset: SetOffset): Promise<void> => send(() => api.stageOffset(offset));

/** A refusal belongs to what the show did then. */
const moment = computed(() => `${current.value?.run?.state} ${current.value?.run?.section}`);
moment.subscribe(() => {
  refusal.value = "";
});

export const stage = { current, receivedAt, running, refusal, working, report, send, control, setOffset };
