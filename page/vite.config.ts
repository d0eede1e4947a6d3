import { defineConfig } from "vitest/config";

// `npm run dev` shows the page with live reload; the robot's server is `rote web --port 8899`.
const server = { target: "http://127.0.0.1:8899", ws: true };

export default defineConfig({
  base: "./",
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
  test: { css: true },
  server: { proxy: { "/api": server } },
});
