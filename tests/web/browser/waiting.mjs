// Checks and waits that the stories of the pendant share.

export const check = (fact, message) => {
  if (!fact) throw new Error(message);
};

/** Ask again and again until the answer is true, and return it; throw when it takes too long. */
export const until = async (asked, message, within = 20_000) => {
  const end = Date.now() + within;
  for (;;) {
    const answer = await asked();
    if (answer) return answer;
    if (Date.now() > end) throw new Error(`never: ${message}`);
    await new Promise((done) => setTimeout(done, 50));
  }
};
