/** What the browser keeps for the page. Where it refuses, the page works without. */

import { host } from "./host";

export type Shelf = "localStorage" | "sessionStorage";

export function recall(shelf: Shelf, key: string): string | null {
  try {
    return host.storage(shelf).getItem(`rote.${key}`);
  } catch {
    return null;
  }
}

/** Keep a text; returns whether the browser does. Until the page is closed it is known all the same. */
export function remember(shelf: Shelf, key: string, value: string): boolean {
  try {
    host.storage(shelf).setItem(`rote.${key}`, value);
    return true;
  } catch {
    return false;
  }
}
