// Checks and waits that the stories of the pendant share.

export const check = (fact, message) => {
  if (!fact) throw new Error(message);
};

const FIRST_PAUSE_MS = 50;
/** Time between two frames of an animation in a story, in milliseconds. */
export const FRAME_MS = 200;
/** A question costs 10 ms of processor time in Node, browser and page. */
const LONGEST_PAUSE_MS = 250;

/** Ask again and again, less and less often, until the answer is true, and return it; throw when it takes too long. */
export const until = async (asked, message, within = 20_000) => {
  const end = Date.now() + within;
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(1.5 * pause, LONGEST_PAUSE_MS)) {
    const answer = await asked();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`never: ${message}`);
    await new Promise((done) => setTimeout(done, pause));
  }
};

/** Return the box of an element once it is still: the page draws five times a second in the stories. */
export const stillBox = async (element, within = 20_000) => {
  let last = null;
  return until(async () => {
    const box = await element.boundingBox();
    const isStill = box !== null && JSON.stringify(box) === JSON.stringify(last);
    last = box;
    if (!isStill) await new Promise((done) => setTimeout(done, 2 * FRAME_MS));
    return isStill && box;
  }, "the element is still", within);
};
