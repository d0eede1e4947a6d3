// Runs stories one after another in one Chromium, which takes less than a browser and a Node process for each. Each line
// of standard input names a story and its task as JSON, each line of output is its report or why there is none. A report
// has the story's steps with their times, and every error on the console.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { chromiumOf } from "./chromium.mjs";
import { setTask } from "./task.mjs";

const { chromium, options } = chromiumOf(JSON.parse(process.argv[2]));
const browser = await chromium.launch(options);
let count = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { story, task } = JSON.parse(line);
  setTask({ ...task, browser });
  count += 1;
  let told;
  try {
    told = { report: (await import(`${pathToFileURL(story)}?${count}`)).report };
  } catch (error) {
    told = { error: String(error.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
await browser.close();
