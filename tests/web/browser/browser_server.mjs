// One Chromium for several stories: prints its address, and ends when standard input is closed. Its task is its
// first argument, as JSON.

import { chromiumOf } from "./chromium.mjs";

const { chromium, options } = chromiumOf(JSON.parse(process.argv[2]));
const server = await chromium.launchServer(options);
console.log(server.wsEndpoint());
process.stdin.resume();
process.stdin.on("end", async () => {
  await server.close();
  process.exit(0);
});
