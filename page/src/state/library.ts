/** The takes of this computer. */

import { signal } from "@preact/signals";
import { api } from "../api";
import type { FormatFacts, Take } from "../types";
import { ui } from "./ui";

/** Number of takes in one request. */
const PAGE_SIZE = 200;

const takes = signal<Take[]>([]);
/** Whether the list of takes was received. */
const loaded = signal(false);
/** The file formats of takes; the first is the native one. */
const formats = signal<FormatFacts[]>([]);

async function loadFormats(): Promise<void> {
  if (!formats.peek().length) formats.value = (await api.formats()).formats;
}

let pages: { takes: Take[]; tag: string }[] = [];
let loading: Promise<void> | null = null;
let loadAgain = false;

/** Request the takes page by page; a page that has not changed is not sent again. */
async function loadPages(): Promise<void> {
  for (let page = 0; ; page += 1) {
    const answer = await api.takes(page * PAGE_SIZE, PAGE_SIZE, pages[page]?.tag ?? "");
    const last = (page + 1) * PAGE_SIZE >= answer.total;
    const fewer = last && pages.length > page + 1;
    if (!answer.same) pages[page] = { takes: answer.takes, tag: answer.tag };
    if (last) pages = pages.slice(0, page + 1);
    if (!answer.same || fewer) takes.value = pages.flatMap((each) => each.takes);
    if (last) {
      loaded.value = true;
      return;
    }
  }
}

async function load(): Promise<void> {
  void ui.attempt(loadFormats);
  loadAgain = loading !== null;
  if (loading) return loading;
  loading = ui
    .attempt(async () => {
      do {
        loadAgain = false;
        await loadPages();
      } while (loadAgain);
    })
    .then(() => {
      loading = null;
    });
  return loading;
}

export const library = { takes, loaded, formats, load };
