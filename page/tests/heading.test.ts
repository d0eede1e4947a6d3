import { describe, expect, it } from "vitest";
import { headingOf } from "../src/heading";
import { TEXTS } from "../src/texts";
import type { StageNow, Status } from "../src/types";

const T = TEXTS.bar;
const connected = { state: "connected" } as Status["connection"];
const activity = { kind: "idle", name: "", phase: "none", round: 1 } as Status["activity"];
const rest = {
  connection: connected,
  activity,
  soft: null,
  unconfirmed_stop: null,
  return_in_s: null,
  holding: false,
  paused: false,
} as unknown as Status;
const stageWith = (state: string, robots: string[], run: unknown = null): StageNow =>
  ({ worst: { state, robots }, run }) as unknown as StageNow;
const run = { show: "opening", state: "playing", section: "one" };
const heading = (status: Status, stage: StageNow | null = null) =>
  headingOf({ status, stage, limbs: "arms", words: () => "Robot lost" });

describe("the bar", () => {
  it("says at rest only if all robots are", () => {
    expect(heading(rest)).toMatchObject({ title: T.idle, note: T.idleNote });
    expect(heading(rest, stageWith("rest", ["robot1", "robot2"]))).toMatchObject({ title: T.idle });
    for (const state of ["stop-unconfirmed", "fault", "lost", "moving", "stopped"]) {
      const made = heading(rest, stageWith(state, ["robot2"]));
      expect(`${made.title} ${made.note}`, state).not.toContain(T.idleNote);
      expect(made.title, state).not.toBe(T.idle);
    }
  });
  it("names the robot that has not confirmed a STOP, whatever else goes on", () => {
    const playing = { ...rest, activity: { ...activity, kind: "playing", name: "wave", phase: "playing" } } as Status;
    for (const made of [
      heading(rest, stageWith("stop-unconfirmed", ["robot2"])),
      heading(playing, stageWith("stop-unconfirmed", ["robot2"], run)),
    ])
      expect(made).toEqual({ title: T.unconfirmed, note: T.useRemoteOf("robot2"), alarm: true });
    const own = { ...playing, unconfirmed_stop: { since_s: 1, message: "", text: { template: "", facts: {} } } };
    expect(heading(own, stageWith("moving", ["robot1"], run))).toEqual({
      title: T.unconfirmed,
      note: T.useRemote,
      alarm: true,
    });
  });
  it("keeps a lost robot of the stage beside what goes on", () => {
    expect(heading(rest, stageWith("lost", ["robot2"], run))).toMatchObject({
      note: T.worst.lost("robot2"),
      alarm: true,
    });
    const playing = { ...rest, activity: { ...activity, kind: "playing", name: "wave", phase: "playing" } } as Status;
    const made = heading(playing, stageWith("fault", ["robot2"]));
    expect([made.title, made.alarm]).toEqual(["wave", true]);
    expect(made.note).toContain(T.worst.fault("robot2"));
  });
  it("shows soft arms whoever made them so, also while the robot is lost", () => {
    const soft = (by: string, state = "connected") =>
      heading({ ...rest, connection: { state }, soft: { by, can_hold: true } } as unknown as Status);
    expect(soft("elsewhere")).toMatchObject({ title: TEXTS.soft.title.arms, alarm: true });
    expect(soft("unknown", "lost")).toMatchObject({ title: TEXTS.soft.maybe.arms, alarm: true });
    expect(soft("damping").title).toBe(TEXTS.soft.damping);
    expect(heading({ ...rest, connection: { state: "lost" } } as unknown as Status).title).toBe("Robot lost");
  });
});
