/** Lets the page keep nothing: it treats that as a browser that refuses. Loaded first, because modules recall settings. */

import { host } from "../host";

/** The page is loaded again for another language, so this alone is kept, until the tab is closed. */
const LANGUAGE = "rote.language";

function allowed(key: string): Storage {
  if (key !== LANGUAGE) throw new Error("the demo keeps nothing");
  return window.sessionStorage;
}

host.storage = () => ({
  getItem: (key) => allowed(key).getItem(key),
  setItem: (key, value) => allowed(key).setItem(key, value),
});
