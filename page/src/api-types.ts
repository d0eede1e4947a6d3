/** What the server answers and is asked, made of /openapi.json by scripts/page_types.py. */

/** Something that a person can do next. Each user interface says how. */
export type Act = "stop" | "list" | "delete" | "takes" | "pipe-capture" | "stand" | "sink" | "get-up" | "lie-down" | "status" | "discover" | "doctor" | "simulate" | "simulate-webrtc" | "simulate-dds" | "simulate-a1" | "other-store" | "play-track" | "force" | "map-joints" | "name-build" | "from-degrees" | "to-build" | "trim" | "speed" | "retime" | "check" | "show" | "plot";

/** What the robot can play. */
export interface ActionsNow {
  presets: PresetNow[];
  taught: TaughtNow[];
  free_places: number;
  now: boolean;
}

/** What the robot is doing. */
export interface ActivityNow {
  kind: "idle" | "teaching" | "playing" | "performing";
  name: string;
  phase: "none" | "approach" | "playing" | "return";
  elapsed_s: number;
  duration_s: number | null;
  fraction: number;
  round: number;
  samples: number;
}

/** Average several takes of one motion, aligned in time. */
export interface AverageStep {
  op: "average";
  others: string[];
}

/** Mix two performances of one motion. Weight 0 is the first, 1 the second. */
export interface BlendStep {
  op: "blend";
  other: string;
  weight?: number;
}

export interface Body_upload_api_takes_upload_post {
  file: string;
}

/** A scripted hand of a simulated robot. */
export interface ByHand {
  script: "wave" | "bow" | "clap" | "drum";
  seconds: number;
}

/** The name by which others see this browser; an empty one takes it away. */
export interface CallMe {
  name: string;
}

/** Return to the first pose at the end, so that it can be played in a loop. */
export interface CloseLoopStep {
  op: "close_loop" | "loop";
  seconds?: number;
}

/** Who commands; nobody where `number` is null. */
export interface Commander {
  you: boolean;
  number: number | null;
  name: string | null;
  locked: boolean;
  next: NextCommander | null;
}

/** Let another motion follow, with a soft bridge between. */
export interface ConcatenateStep {
  op: "concatenate" | "concat";
  other: string;
  bridge_s?: number;
}

/** Which robot to connect to. */
export interface ConnectTo {
  url: string;
  key?: string | null;
  wanted?: "look" | "teach" | null;
}

/** The state of the connection to the robot. */
export interface Connection {
  state: "connected" | "connecting" | "lost" | "off";
  url: string | null;
  wire: string | null;
  simulated: boolean;
  stage: string | null;
  message: string;
  remedy: string;
  texts: Texts;
}

/** Pass into another motion while both are played. */
export interface CrossFadeStep {
  op: "cross_fade" | "fade";
  other: string;
  overlap_s?: number;
}

/** Joints over time. */
export interface Curves {
  names: string[];
  times_s: number[];
  joints_rad: number[][];
}

/** What to delete. */
export interface Delete {
  name: string;
}

/** It was done. */
export interface Done {
  done?: boolean;
}

/** The position that a joint is pulled to; without a joint, all are released. */
export interface Drag {
  joint: string | null;
  value_rad?: number;
}

/** Leave some joints out. */
export interface DropStep {
  op: "drop";
  joints: string[];
}

/** One edit, as a tool shows it. */
export interface EditFacts {
  name: string;
  title: string;
  summary: string;
  takes: number;
  parameters: EditParameter[];
}

/** One parameter of an edit. */
export interface EditParameter {
  name: string;
  title: string;
  help: string;
  kind: "number" | "flag" | "joints" | "build";
  unit: string;
  low: number | null;
  high: number | null;
  slider: [number, number, number] | null;
  default: number | boolean | null;
  required: boolean;
}

/** The same, saved as another take. */
export interface EditSave {
  take: string;
  version?: number | null;
  steps?: (TrimStep | SmoothStep | SpeedStep | RetimeStep | MirrorStep | ReverseStep | ResampleStep | CloseLoopStep | KeepStep | DropStep | ToBuildStep | CrossFadeStep | ConcatenateStep | BlendStep | LayerStep | AverageStep)[];
  name: string;
}

/** A take and the edits to apply. */
export interface EditTake {
  take: string;
  version?: number | null;
  steps?: (TrimStep | SmoothStep | SpeedStep | RetimeStep | MirrorStep | ReverseStep | ResampleStep | CloseLoopStep | KeepStep | DropStep | ToBuildStep | CrossFadeStep | ConcatenateStep | BlendStep | LayerStep | AverageStep)[];
}

/** An edited take, and the result of its check; it begins at 0 s. */
export interface Edited {
  names: string[];
  times_s: number[];
  joints_rad: number[][];
  version: number;
  build: string | null;
  family: string | null;
  title: string;
  duration_s: number;
  history: string[];
  marks: MarkNow[];
  findings: FindingNow[];
  ok: boolean;
  jerk: number | null;
}

/** All edits. */
export interface Edits {
  edits: EditFacts[];
}

/** One fact of a sentence: a quantity, a span, names, an act, a text, or a sentence. */
export interface FactNow {
  value?: number | null;
  low?: number | null;
  high?: number | null;
  unit?: string | null;
  digits?: number | null;
  names?: string[] | null;
  act?: Act | null;
  text?: string | null;
  template?: string | null;
  facts?: Record<string, FactNow> | null;
}

/** Something to know before a robot moves. */
export interface FindingNow {
  severity: "error" | "warning" | "note";
  kind: string;
  joint: string | null;
  time_s: number | null;
  value: number | null;
  limit: number | null;
  margin: number | null;
  unit: string;
  message: string;
  remedy: string;
  acts: Act[];
  texts: Texts;
}

/** What to know before the robot moves, the worst first. */
export interface Findings {
  findings: FindingNow[];
}

/** A file format. */
export interface FormatFacts {
  name: string;
  ending: string;
  title: string;
  loss: string;
}

/** All file formats. */
export interface Formats {
  formats: FormatFacts[];
}

/** To whom: the number of somebody who is here. */
export interface GiveCommand {
  number: number;
}

/** A ball for a head. */
export interface Head {
  link: string;
  at: [number, number, number];
  radius: number;
}

/** One joint, and where it sits. */
export interface JointFacts {
  parent: string;
  link: string;
  origin: [number, number, number];
  rpy: [number, number, number];
  index: number;
  name: string;
  lower_rad: number;
  upper_rad: number;
  taught: boolean;
  axis: [number, number, number];
  part: string;
}

/** A robot as a tree of joints, and what to draw it with. */
export interface JointTree {
  build: string;
  family: string;
  title: string;
  limbs: "arms" | "legs";
  base: string;
  joints: JointFacts[];
  fixed: Mount[];
  rest_rad: number[];
  sticks: Stick[];
  shapes: Solid[];
  head: Head | null;
  floor: LinkPlace[];
  model: boolean;
}

/** Keep some joints only. */
export interface KeepStep {
  op: "keep";
  joints: string[];
}

/** The robots that can be simulated, and examples of URLs. */
export interface KnownRobots {
  simulated: SimulatedRobot[];
  examples: string[];
}

/** Take some joints from another motion: joint right_arm takes its right arm. */
export interface LayerStep {
  op: "layer";
  other: string;
  joints: string[];
}

/** A point on a link, in metres. */
export interface LinkPlace {
  link: string;
  at: [number, number, number];
}

/** The ends of links to this page for others; null where no token is asked for. Nobody is told a link that may do more than their own. */
export interface Links {
  command: string | null;
  watch: string | null;
}

/** Whether only teachers may take command. */
export interface LockCommand {
  locked: boolean;
}

/** A moment with a label. */
export interface MarkNow {
  time_s: number;
  label: string;
}

/** Exchange left and right. */
export interface MirrorStep {
  op: "mirror";
}

/** The mode the robot is in. */
export interface ModeNow {
  id: number;
  name: string;
  label: string;
  balanced: boolean;
}

/** Which mode to change to. */
export interface ModeTo {
  target: "stand" | "damp" | "lie";
  yes?: boolean;
}

/** Where a link sits on another, in metres and rad. */
export interface Mount {
  parent: string;
  link: string;
  origin: [number, number, number];
  rpy: [number, number, number];
}

/** Who commands when a countdown has ended. */
export interface NextCommander {
  number: number;
  name: string | null;
  in_s: number;
}

/** A request without details: {}. */
export interface Nothing {
}

/** Pause, or resume. */
export interface Pause {
  paused: boolean;
}

/** Everything that a page shows as status. */
export interface PendantStatus {
  connection: Connection;
  mode: ModeNow | null;
  build: string | null;
  family: string | null;
  title: string | null;
  battery_percent: number | null;
  temperatures_c: number[];
  faults: string[];
  findings: FindingNow[];
  abilities: string[];
  elsewhere: string[];
  activity: ActivityNow;
  commander: Commander;
  holding: boolean;
}

/** Everybody who is here. */
export interface People {
  people: Person[];
}

/** A factory action. */
export interface Perform {
  preset: number;
}

/** A browser that is here: its number, and the name it has given itself. */
export interface Person {
  number: number;
  name: string | null;
  role: "watch" | "command" | "teacher";
}

/** A taught action, and how to play it. */
export interface Play {
  name: string;
  speed?: number | null;
  loop?: boolean;
}

/** A take of this computer, edited, to be streamed. */
export interface PlayTake {
  take: string;
  version?: number | null;
  steps?: (TrimStep | SmoothStep | SpeedStep | RetimeStep | MirrorStep | ReverseStep | ResampleStep | CloseLoopStep | KeepStep | DropStep | ToBuildStep | CrossFadeStep | ConcatenateStep | BlendStep | LayerStep | AverageStep)[];
  speed?: number | null;
  force?: boolean;
  mapped?: boolean;
}

/** A factory action. */
export interface PresetNow {
  id: number;
  name: string;
}

/** Why something was not done. */
export interface Problem {
  error: string;
  message: string;
  remedy: string;
  stage?: string | null;
  texts?: Texts | null;
}

/** The old and the new name. */
export interface Rename {
  old: string;
  new: string;
}

/** Space the samples evenly. */
export interface ResampleStep {
  op: "resample";
  rate_hz?: number;
}

/** Keep the path within limits of speed, acceleration and jerk. It gets slower where a limit is broken, and nowhere faster than recorded unless that is asked for. */
export interface RetimeStep {
  op: "retime";
  velocity?: number | null;
  acceleration?: number | null;
  jerk?: number | null;
  fastest?: boolean;
}

/** Play it backwards. */
export interface ReverseStep {
  op: "reverse";
}

/** A robot on the network. */
export interface RobotFound {
  serial: string;
  address: string;
  url: string;
}

/** All robots that answered. */
export interface Robots {
  robots: RobotFound[];
}

/** A robot that can be simulated in the server. */
export interface SimulatedRobot {
  build: string;
  title: string;
  url: string;
}

/** Take out trembling, without delay. A lower cutoff is smoother. */
export interface SmoothStep {
  op: "smooth";
  cutoff_hz?: number;
}

/** A capsule on a link; if its radius is 0, a box, and `end` its half sizes. */
export interface Solid {
  link: string;
  start: [number, number, number];
  end: [number, number, number];
  radius: number;
}

/** Make it faster or slower throughout. 2 is twice as fast. */
export interface SpeedStep {
  op: "speed";
  factor: number;
}

/** A line of the stick figure. */
export interface Stick {
  side: "left" | "right" | "";
  link: string;
  start: LinkPlace;
  end: LinkPlace;
}

/** What a stop did. */
export interface StopReport {
  stopped: "playing" | "teaching" | "holding" | "nothing";
  message: string;
}

/** Which tags to add to a take, and which to remove. */
export interface TagTake {
  name: string;
  add?: string[];
  remove?: string[];
}

/** One take of this computer. */
export interface TakeEntry {
  name: string;
  duration_s: number;
  samples: number;
  version: number;
  versions: number[];
  tags: string[];
  variant: string;
  family: string | null;
  title: string;
  source: string;
  problem: string;
  thumbnail: string;
}

/** One take, with at most 1500 rows. */
export interface TakeMotion {
  names: string[];
  times_s: number[];
  joints_rad: number[][];
  name: string;
  duration_s: number;
  rate_hz: number;
  marks: MarkNow[];
  history: string[];
}

/** The takes of this computer. */
export interface Takes {
  takes: TakeEntry[];
}

/** A taught action. */
export interface TaughtNow {
  name: string;
  duration_s: number;
  position: number;
}

/** How a teaching ended. */
export interface TaughtReport {
  take: string | null;
  saved: boolean;
  duration_s: number;
  samples: number;
  rate_hz: number;
}

/** Whether to keep the take, and under which name if not the first. */
export interface TeachFinish {
  save: boolean;
  name?: string | null;
}

/** The name of the new motion. */
export interface TeachStart {
  name: string;
  overwrite?: boolean;
}

/** A sentence with a name in braces for each of its facts. */
export interface TextNow {
  template: string;
  facts: Record<string, FactNow>;
}

/** Message and remedy, for a page that renders them in its own way. */
export interface Texts {
  message: TextNow;
  remedy: TextNow;
}

/** Give it the joints of another build of its robot. */
export interface ToBuildStep {
  op: "to_build";
  build: string;
  force?: boolean;
}

/** Cut off the beginning and the end: by seconds, or where nothing moves. */
export interface TrimStep {
  op: "trim" | "trim_idle";
  start_s?: number | null;
  end_s?: number | null;
  auto?: boolean;
}

export type Step =
  | AverageStep
  | BlendStep
  | CloseLoopStep
  | ConcatenateStep
  | CrossFadeStep
  | DropStep
  | KeepStep
  | LayerStep
  | MirrorStep
  | ResampleStep
  | RetimeStep
  | ReverseStep
  | SmoothStep
  | SpeedStep
  | ToBuildStep
  | TrimStep;
