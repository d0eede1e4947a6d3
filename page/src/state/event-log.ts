/** Recent events, and the safety notices among them. */

import { computed, effect, signal } from "@preact/signals";
import { api } from "../api";
import { sentence } from "../format";
import type { EventNow } from "../types";
import { worded } from "../wording";
import { connection } from "./connection";
import { robot } from "./robot";
import { ui } from "./ui";

const MAX_EVENTS = 200;

/** Recent events, the oldest first; the server keeps them. */
const events = signal<EventNow[]>([]);
/** Events hidden on this page only: a page that only watches acknowledges nothing for others. */
const hidden = signal<ReadonlySet<number>>(new Set());
/** Safety notices: each is shown until it is acknowledged. */
const safety = computed(() =>
  events.value.filter((each) => each.safety && !each.acknowledged && !hidden.value.has(each.id)),
);
/** Why the last playback ended early; until the robot moves again. */
const cutShort = signal("");

/** Add a new event, or update one that has changed. */
function note(event: EventNow): void {
  const known = events.peek().some(({ id }) => id === event.id);
  events.value = known
    ? events.peek().map((each) => (each.id === event.id ? event : each))
    : [...events.peek(), event].slice(-MAX_EVENTS);
  if (!known && event.kind === "ended") cutShort.value = sentence(worded(event.text));
}

effect(() => {
  if (robot.moving.value) cutShort.value = "";
});

async function acknowledge(event: EventNow): Promise<void> {
  if (connection.me.peek()?.role === "watch") hidden.value = new Set([...hidden.peek(), event.id]);
  else await ui.attempt(() => api.acknowledge(event.id));
}

export const eventLog = { events, safety, cutShort, note, acknowledge };
