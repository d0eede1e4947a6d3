import { describe, expect, it } from "vitest";
import { DEAD_MS, Liveness, SILENT_MS } from "../src/liveness";

const LOOK_MS = 100;

/** Look every 100 ms until a moment; return the first moment at which the server counted as silent. */
function firstSilence(liveness: Liveness, from: number, to: number, heard: (at: number) => boolean): number | null {
  for (let at = from; at <= to; at += LOOK_MS) {
    if (heard(at)) liveness.noteMessage(at);
    if (liveness.check(at) !== "live") return at;
  }
  return null;
}

describe("a page", () => {
  it("is live while a message comes every 400 ms", () => {
    const liveness = new Liveness();
    expect(firstSilence(liveness, 0, 20_000, (at) => at % 400 === 0)).toBeNull();
  });
  it("is not live little more than a second after the last message, and then gives the socket up", () => {
    const liveness = new Liveness();
    const silent = firstSilence(liveness, 0, 20_000, (at) => at <= 800);
    expect(silent).toBeGreaterThan(800 + SILENT_MS);
    expect(silent).toBeLessThanOrEqual(800 + SILENT_MS + 3 * LOOK_MS);
    expect(liveness.check(800 + DEAD_MS)).toBe("silent");
    expect(liveness.check(801 + DEAD_MS)).toBe("dead");
    expect(liveness.silentS(3300)).toBeCloseTo(2.5);
    liveness.wait(6000); // another socket has its own time, and the silence goes on
    expect([liveness.check(6900), liveness.silentS(6900)]).toEqual(["live", 6.1]);
    liveness.noteMessage(7000);
    expect([liveness.check(7000), liveness.silentS(7000)]).toEqual(["live", 0]);
  });
  it("that was held up itself reads what waits for it before it judges", () => {
    const liveness = new Liveness();
    liveness.noteMessage(0);
    expect(liveness.check(100)).toBe("live");
    expect(liveness.check(4000)).toBe("live"); // the timer comes first, the messages right after it
    liveness.noteMessage(4001);
    expect(liveness.check(4100)).toBe("live");
  });
});
