/** A robot that exists only as a pose: it follows motions in the browser's time. */

import { rowAt } from "../interpolate";
import type { Activity, Joint } from "../types";
import { type DemoTrack, durationOf, minimumJerk } from "./edits";

/** How fast the arms go to the first pose of a motion, and back to rest, at most. */
const RAMP_RAD_S = 1.5;
const MIN_RAMP_S = 0.4;
const MINIMUM_JERK_PEAK = 1.875;
/** A motion that ends nearer to its beginning than this is repeated without a return. */
const CLOSED_RAD = 0.005;

interface Segment {
  phase: Activity["phase"];
  round: number;
  duration_s: number;
  poseAt: (time_s: number) => number[];
}

export interface Playing {
  name: string;
  track: DemoTrack;
  speed: number;
  loop: boolean;
}

const IDLE: Activity = {
  kind: "idle",
  name: "",
  phase: "none",
  elapsed_s: 0,
  duration_s: null,
  fraction: 0,
  round: 1,
  samples: 0,
};

export class DemoRobot {
  /** The angle of each joint, by its index. */
  pose: number[];
  private playing: Playing | null = null;
  private segments: Generator<Segment> | null = null;
  private segment: Segment | null = null;
  private began_s = 0;
  private segmentBegan_s = 0;

  constructor(
    private readonly joints: readonly Joint[],
    private readonly rest_rad: readonly number[],
  ) {
    this.pose = [...rest_rad];
  }

  /** Begin a motion at a time in seconds; the robot must be idle. */
  play(playing: Playing, now_s: number): void {
    this.playing = playing;
    this.began_s = this.segmentBegan_s = now_s;
    this.segments = this.plan(playing);
    this.segment = this.segments.next().value ?? null;
  }

  /** End the motion where it is; return whether there was one. */
  stop(): boolean {
    const moved = this.segment !== null;
    this.playing = this.segments = this.segment = null;
    return moved;
  }

  /** Move to where the motion is at a time; return whether it moves. */
  advance(now_s: number): boolean {
    while (this.segment) {
      const since_s = now_s - this.segmentBegan_s;
      const { duration_s, poseAt } = this.segment;
      this.pose = poseAt(Math.min(since_s, duration_s));
      if (since_s < duration_s) return true;
      this.segmentBegan_s += duration_s;
      this.segment = this.segments?.next().value ?? null;
    }
    this.stop();
    return false;
  }

  /** Describe what the robot does at a time. */
  activity(now_s: number): Activity {
    const { playing, segment } = this;
    if (!playing || !segment) return IDLE;
    const duration_s = durationOf(playing.track) / playing.speed;
    const done = segment.phase === "playing" ? (now_s - this.segmentBegan_s) / segment.duration_s : 0;
    return {
      ...IDLE,
      kind: "playing",
      name: playing.name,
      phase: segment.phase,
      elapsed_s: now_s - this.began_s,
      duration_s,
      fraction: segment.phase === "return" ? 1 : Math.min(1, done),
      round: segment.round,
    };
  }

  private *plan({ track, speed, loop }: Playing): Generator<Segment> {
    const first = track.joints_rad[0] as number[];
    const last = track.joints_rad.at(-1) as number[];
    const isClosed = first.every((angle, at) => Math.abs(angle - (last[at] as number)) <= CLOSED_RAD);
    const duration_s = durationOf(track) / speed;
    yield this.ramp("approach", this.withJoints(track.names, first), 1);
    for (let round = 1; ; round += 1) {
      const poseAt = (time_s: number): number[] =>
        this.withJoints(track.names, rowAt(track.times_s, track.joints_rad, time_s * speed));
      yield { phase: "playing", round, duration_s, poseAt };
      if (!loop) break;
      if (isClosed) continue;
      yield this.ramp("return", this.rest_rad, round);
      yield this.ramp("approach", this.withJoints(track.names, first), round + 1);
    }
    yield this.ramp("return", this.rest_rad, 1);
  }

  /** Go softly from the pose of this moment to another one. */
  private ramp(phase: "approach" | "return", to: readonly number[], round: number): Segment {
    const from = this.pose;
    const far = Math.max(...from.map((angle, at) => Math.abs((to[at] as number) - angle)));
    const duration_s = Math.max(MIN_RAMP_S, (MINIMUM_JERK_PEAK * far) / RAMP_RAD_S);
    const poseAt = (time_s: number): number[] => {
      const share = minimumJerk(time_s / duration_s);
      return from.map((angle, at) => angle + ((to[at] as number) - angle) * share);
    };
    return { phase, round, duration_s, poseAt };
  }

  /** Return the pose of this moment with some joints at other angles. */
  private withJoints(names: readonly string[], angles: readonly number[]): number[] {
    const pose = [...this.pose];
    for (const { name, index } of this.joints) {
      const column = names.indexOf(name);
      if (column >= 0) pose[index] = angles[column] as number;
    }
    return pose;
  }
}
