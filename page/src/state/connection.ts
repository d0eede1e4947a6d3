/** The connection between this browser and the server, and the other browsers at that server. */

import { computed, signal } from "@preact/signals";
import { api } from "../api";
import { recall, remember } from "../storage";
import type { Person } from "../types";
import { ui } from "./ui";

/** The state of the WebSocket; it is silent after a second without a message. */
const link = signal<"opening" | "open" | "silent" | "closed" | "full">("opening");
/** Whether what the page shows, if anything, is not live. */
const stale = computed(() => link.value !== "open" && link.value !== "opening");
/** Why the server refuses another page, in the server's words. */
const refusal = signal<{ message: string; remedy: string }>({ message: "", remedy: "" });
/** This browser: its number, and what its link allows. */
const me = signal<{ number: number; role: Person["role"] } | null>(null);
/** All browsers that are connected, including this one. */
const people = signal<Person[]>([]);

const NAME_KEY = "name";

/** Give this browser the name that others see, and remember it. */
async function setName(name: string): Promise<void> {
  if (await ui.attempt(() => api.callMe(name))) remember("localStorage", NAME_KEY, name.trim());
}

/** Send the name that this browser was given earlier, unless the server has it. */
function sendName(known: string | null): void {
  const name = recall("localStorage", NAME_KEY);
  if (name && name !== known) void ui.attempt(() => api.callMe(name));
}

export const connection = { link, stale, refusal, me, people, setName, sendName };
