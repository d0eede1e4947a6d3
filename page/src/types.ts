/** What the server says and hears; the page's side of `/openapi.json`. */

export type Severity = "error" | "warning" | "note";

export interface Finding {
  severity: Severity;
  words: string;
  remedy: string;
}

export interface Mark extends Finding {
  kind: string;
  joint: string | null;
  time_s: number | null;
  value: number | null;
  limit: number | null;
}

export interface Connection {
  state: "connected" | "connecting" | "lost" | "off";
  url: string | null;
  wire: string | null;
  simulated: boolean;
  stage: string | null;
  words: string;
  remedy: string;
}

export interface Activity {
  kind: "idle" | "teaching" | "playing" | "performing";
  name: string;
  phase: "none" | "approach" | "playing" | "return";
  elapsed_s: number;
  duration_s: number | null;
  fraction: number;
  round: number;
  samples: number;
}

export interface Status {
  connection: Connection;
  mode: { id: number; name: string; words: string; balanced: boolean } | null;
  battery_percent: number | null;
  temperatures_c: number[];
  faults: (string | Finding)[];
  findings: Finding[];
  abilities: string[];
  activity: Activity;
  commander: { client: string | null; you: boolean };
  holding: boolean;
  /** Which machine is connected: its build, the family of that, and the build in words. */
  build: string | null;
  family: string | null;
  title: string | null;
  /** What the robot can do at another level, which is connected to anew. */
  elsewhere: string[];
}

export type Vector = [number, number, number];

/** Where a link sits on another. */
export interface Mount {
  origin: Vector;
  rpy: Vector;
  parent: string;
  link: string;
}

export interface Joint extends Mount {
  /** Its place in a pose. */
  index: number;
  name: string;
  lower_rad: number;
  upper_rad: number;
  taught: boolean;
  axis: Vector;
  /** Of the body: leg, waist, arm, wrist, head or finger. */
  part: string;
}

/** A place on a link. */
export interface Place {
  link: string;
  at: Vector;
}

/** A line of the figure that stands for a robot, and the link that moves it. */
export interface Stick {
  link: string;
  start: Place;
  end: Place;
}

/** A capsule on a link; where its radius is 0 a box, and `end` its half sizes. */
export interface Solid {
  link: string;
  start: Vector;
  end: Vector;
  radius: number;
}

/** A robot of one build: its joints, and what to draw it with. */
export interface RobotModel {
  build: string;
  family: string;
  title: string;
  /** What it is taught by. */
  limbs: Limbs;
  base: string;
  joints: Joint[];
  fixed: Mount[];
  rest_rad: number[];
  sticks: Stick[];
  shapes: Solid[];
  head: (Place & { radius: number }) | null;
  floor: Place[];
  /** Whether the server has its real shapes. */
  model: boolean;
}

export type Limbs = "arms" | "legs";

export interface KnownRobots {
  simulated: { build: string; title: string; url: string }[];
  examples: string[];
}

export interface Actions {
  presets: { id: number; name: string }[];
  taught: { name: string; duration_s: number; position: number }[];
  free_places: number;
}

export interface Take {
  name: string;
  duration_s: number;
  samples: number;
  version: number;
  versions: number[];
  tags: string[];
  variant: string;
  family: string | null;
  /** The robot in words. */
  title: string;
  source: string;
  problem: string;
  thumbnail: string;
}

export interface Curves {
  names: string[];
  times_s: number[];
  joints_rad: number[][];
}

export interface Motion extends Curves {
  name: string;
  duration_s: number;
  rate_hz: number;
  marks: unknown[];
  history: string[];
}

export interface Edited extends Curves {
  version: number;
  /** Which robot it is of. */
  build: string | null;
  family: string | null;
  title: string;
  duration_s: number;
  history: string[];
  marks: unknown[];
  findings: Mark[];
  ok: boolean;
  jerk: number | null;
}

export type Step =
  | { op: "trim"; start_s: number; end_s: number }
  | { op: "trim_idle" }
  | { op: "smooth"; cutoff_hz: number }
  | { op: "speed"; factor: number }
  | { op: "mirror" }
  | { op: "reverse" }
  | { op: "retime" }
  | { op: "cross_fade"; other: string; overlap_s: number }
  | { op: "concatenate"; other: string; bridge_s: number }
  | { op: "close_loop"; seconds: number };

export interface Taught {
  take: string | null;
  saved: boolean;
  duration_s: number;
  samples: number;
  rate_hz: number;
}

export interface Stopped {
  stopped: "playing" | "teaching" | "holding" | "nothing";
  words: string;
}

export interface Found {
  serial: string;
  address: string;
  url: string;
}

export type Message =
  | { type: "hello"; client: string; version: string }
  | { type: "state"; t: number; q: number[]; mode: number; phase: string; soft: boolean }
  | ({ type: "status" } & Status)
  | ({ type: "stopped" } & Stopped)
  | { type: "notice"; words: string };
