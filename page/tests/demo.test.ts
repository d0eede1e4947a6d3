import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { DemoData } from "../src/demo/data";
import type { DemoTrack } from "../src/demo/edits";
import { DemoRobot } from "../src/demo/robot";
import { DemoServer } from "../src/demo/server";
import type { Joint, Message } from "../src/types";

const joint = (name: string, index: number): Joint => ({
  name,
  index,
  parent: "",
  link: "",
  origin: [0, 0, 0],
  rpy: [0, 0, 0],
  lower_rad: -2,
  upper_rad: 2,
  taught: true,
  axis: [0, 1, 0],
  part: "arm",
});
const JOINTS = [joint("left_elbow_joint", 0), joint("right_elbow_joint", 1)];

/** A motion of the right elbow alone, one second long. */
const motion = (...angles: number[]): DemoTrack => ({
  names: ["right_elbow_joint"],
  times_s: angles.map((_, index) => index / (angles.length - 1)),
  joints_rad: angles.map((angle) => [angle]),
  marks: [],
  history: [],
  source: "made",
});

/** The phase, round and right elbow of a robot at times in seconds after it began to play. */
function followed(
  track: DemoTrack,
  how: { speed?: number; loop?: boolean },
  times: number[],
): [string, number, number][] {
  const robot = new DemoRobot(JOINTS, [0.3, 0]);
  robot.play({ name: "made", track, speed: 1, loop: false, ...how }, 10);
  return times.map((time) => {
    robot.advance(10 + time);
    const { phase, round } = robot.activity(10 + time);
    expect(robot.pose[0]).toBeCloseTo(0.3);
    return [phase, round, Number(robot.pose[1]?.toFixed(3))];
  });
}

describe("the demo's robot", () => {
  it("approaches, plays and returns to rest, and moves only the joints of the motion", () => {
    expect(followed(motion(0, 1, 0), {}, [0.1, 0.9, 1.6, 2.0])).toEqual([
      ["approach", 1, 0],
      ["playing", 1, 1],
      ["return", 1, 0],
      ["none", 1, 0],
    ]);
  });
  it("plays at another speed", () => {
    expect(followed(motion(0, 1, 0), { speed: 2 }, [0.65])).toEqual([["playing", 1, 1]]);
  });
  it("repeats a closed motion without a return, and another one after it", () => {
    expect(followed(motion(0, 1, 0), { loop: true }, [0.9, 1.9, 2.9])).toEqual([
      ["playing", 1, 1],
      ["playing", 2, 1],
      ["playing", 3, 1],
    ]);
    const phases = followed(motion(0, 0.2), { loop: true }, [0.9, 1.6, 2.0, 2.4]);
    expect(phases.map(([phase, round]) => [phase, round])).toEqual([
      ["playing", 1],
      ["return", 1],
      ["approach", 2],
      ["playing", 2],
    ]);
  });
  it("stays where a stop found it", () => {
    const robot = new DemoRobot(JOINTS, [0, 0]);
    robot.play({ name: "made", track: motion(0, 1, 0), speed: 1, loop: false }, 0);
    robot.advance(0.9);
    expect(robot.stop()).toBe(true);
    expect(robot.advance(5)).toBe(false);
    expect(robot.pose[1]).toBeCloseTo(1);
    expect(robot.stop()).toBe(false);
  });
});

describe("the demo's server", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const made = (): DemoServer => {
    const entry = { name: "made", source: "made", tags: [], thumbnail: "" };
    const sample = {
      entry,
      track: motion(0, 1, 0),
      check: { version: 1, findings: [], ok: true },
      robot: { build: "g1-29", family: "g1", title: "G1", limbs: {} },
    };
    const model = { build: "g1-29", joints: JOINTS, rest_rad: [0, 0] };
    return new DemoServer({ model, samples: [sample], edits: [], formats: [] } as unknown as DemoData);
  };
  const post = async (server: DemoServer, path: string, body: object) => {
    const response = server.request(path, { method: "POST", body: JSON.stringify(body) });
    return (await response.json()) as Record<string, unknown>;
  };

  it("refuses a second motion, and stops the first", async () => {
    const server = made();
    expect(await post(server, "play/take", { take: "made" })).toEqual({ done: true });
    expect((await post(server, "play/take", { take: "made" }))["error"]).toBe("busy");
    expect(await post(server, "stop", {})).toMatchObject({ stopped: "playing", confirmed: true });
    expect(await post(server, "stop", {})).toMatchObject({ stopped: "nothing", confirmed: true });
    expect(await post(server, "play/take", { take: "made" })).toEqual({ done: true });
  });
  it("keeps versions of a take, and replaces none by mistake", async () => {
    const server = made();
    const edit = { take: "made", steps: [{ op: "reverse" }], name: "made" };
    expect((await post(server, "edit/save", { ...edit, over: 0 }))["error"]).toBe("name-taken");
    expect(await post(server, "edit/save", { ...edit, over: 1 })).toMatchObject({ version: 2, versions: [1, 2] });
    expect(await post(server, "edit/curves", { take: "made", version: 1 })).toMatchObject({ version: 1, history: [] });
    expect(await post(server, "edit/curves", { take: "made" })).toMatchObject({ version: 2, history: ["reverse"] });
  });
  it("calls no motion checked that rote has not checked", async () => {
    const server = made();
    expect((await post(server, "edit/check", { take: "made" }))["findings"]).toEqual([]);
    const check = await post(server, "edit/check", { take: "made", steps: [{ op: "reverse" }] });
    expect(check["findings"]).toMatchObject([{ severity: "warning", kind: "unchecked" }]);
  });
  it("names what it cannot do, with the install line", async () => {
    const server = made();
    for (const path of ["teach/start", "connect", "takes/upload", "unknown"])
      expect(await post(server, path, {})).toMatchObject({
        error: "needs-rote",
        remedy: expect.stringContaining("pip install 'rote-robot[web,mcap]'"),
      });
  });
  it("is never silent for a second", () => {
    const server = made();
    const received: string[] = [];
    const socket = { receive: (data: string) => received.push((JSON.parse(data) as Message).type) };
    server.join(socket as never);
    expect(received.slice(0, 1)).toEqual(["hello"]);
    received.length = 0;
    vi.advanceTimersByTime(999);
    expect(received).toContain("beat");
  });
});
