import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

// `npm run dev` shows the page with live reload; the robot's server is `rote web --port 8899`.
const server = { target: "http://127.0.0.1:8899", ws: true };

/** Begin the page with the demo, which needs neither a server nor a STOP that reaches one when the page has failed. */
const demoEntry: Plugin = {
  name: "demo-entry",
  transformIndexHtml: {
    order: "pre",
    handler: (html) =>
      html
        .replace('<script type="module" src="./src/rescue.ts"></script>', "")
        .replace("./src/main.tsx", "./src/demo/main.tsx")
        .replace("<title>rote pendant</title>", "<title>rote demo</title>"),
  },
};

export default defineConfig(({ mode }) => ({
  base: "./",
  plugins: mode === "demo" ? [demoEntry] : [],
  build: {
    outDir: process.env["ROTE_PAGE_OUT"] ?? "../src/rote/web/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 900,
    reportCompressedSize: true,
  },
  css: { modules: { generateScopedName: "[local]_[hash:base64:4]" } },
  // No test changes what another imports; a process for each file would take twice as long.
  test: { css: true, isolate: false },
  server: { proxy: { "/api": server } },
}));
