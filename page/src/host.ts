/** What depends on where the page runs: the server's API, its socket, its files, the browser's storage, and some texts. */

import type { Translation } from "./languages";
import type { Shelf } from "./storage";
import type { Catalogue } from "./texts";

/** The part of a WebSocket that the page uses. */
export type LiveSocket = Pick<WebSocket, "readyState" | "onmessage" | "onclose" | "send" | "close">;

export interface Host {
  /** Send a request to the API; `path` begins after `/api/`. */
  request(path: string, how: RequestInit): Promise<Response>;
  /** Return the address of a file of the API. */
  fileUrl(path: string): string;
  /** Open the socket; `client` is the identity that this page had before, if any. */
  openSocket(client: string | null): LiveSocket;
  /** Return a storage of the browser. Raises if the browser refuses. */
  storage(shelf: Shelf): Pick<Storage, "getItem" | "setItem">;
  /** Texts that replace those of the page. */
  texts: Translation<Catalogue>;
}

const fileUrl = (path: string): string => `/api/${path}`;

/** The server that sent the page. The demo, which has none, replaces this before the page starts. */
export const host: Host = {
  request: (path, how) => fetch(fileUrl(path), how),
  fileUrl,
  openSocket: (client) => {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const query = client ? `?client=${encodeURIComponent(client)}` : "";
    return new WebSocket(`${scheme}://${location.host}${fileUrl("live")}${query}`);
  },
  storage: (shelf) => window[shelf],
  texts: {},
};
