/** The server's requests and answers, by scripts/generate/page_types.py. */

/** Which event the user has read. */
export interface AcknowledgeEvent {
  id: number;
}

/** Something that a person can do next. Each user interface phrases it. */
export type Act = "stop" | "list" | "delete" | "takes" | "pipe-capture" | "stand" | "sink" | "get-up" | "lie-down" | "status" | "discover" | "doctor" | "simulate" | "simulate-webrtc" | "simulate-dds" | "simulate-a1" | "other-store" | "play-track" | "force" | "overwrite" | "map-joints" | "play-imported" | "name-build" | "from-degrees" | "to-build" | "trim" | "speed" | "retime" | "check" | "show" | "plot";

/** What the robot can play. */
export interface ActionsNow {
  presets: PresetNow[];
  taught: TaughtNow[];
  free_places: number | null;
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

/** A learned motion, adapted. */
export interface Adapted {
  names: string[];
  times_s: number[];
  joints_rad: number[][];
  duration_s: number;
  far: FarPoint[];
  findings: FindingNow[] | null;
  ok: boolean | null;
}

/** Average several takes of one motion, aligned in time. */
export interface AverageStep {
  op: "average";
  others: string[];
}

/** Move each mark to the nearest beat; too fast parts get more beats. */
export interface BeatStep {
  op: "beat";
  bpm: number;
  per_beat?: number;
  first_s?: number | null;
}

/** A proposed motion, and its ticket. */
export interface BeginProposed {
  take: string;
  version?: number | null;
  speed?: number;
  motion?: string | null;
  ticket: string;
}

/** Mix two performances of one motion. Weight 0 is the first, 1 the second. */
export interface BlendStep {
  op: "blend";
  other: string;
  weight?: number;
  joints?: string[] | null;
}

export interface Body_add_sound_api_shows_sounds_upload_post {
  file: string;
  replace?: boolean;
}

export interface Body_upload_api_takes_upload_post {
  file: string;
  name?: string | null;
  unit?: "rad" | "deg";
  replace?: boolean;
}

/** A scripted hand of a simulated robot. */
export interface ByHand {
  script: "wave" | "bow" | "clap" | "drum";
  seconds: number;
}

/** The name by which others see this browser; an empty one removes it. */
export interface CallMe {
  name: string;
}

/** Rename the mark at a moment, or move it. */
export interface ChangeMarkStep {
  op: "change_mark";
  time_s: number;
  label?: string | null;
  to_s?: number | null;
}

/** A show to be checked as it is, saved or not. */
export interface CheckShow {
  show: ShowDocument;
  cast?: Record<string, string> | null;
}

/** Return to the first pose at the end, so that the motion can loop. */
export interface CloseLoopStep {
  op: "close_loop" | "loop";
  seconds?: number;
}

/** The client in command; none if `number` is null. */
export interface Commander {
  you: boolean;
  number: number | null;
  name: string | null;
  locked: boolean;
  next: NextCommander | null;
}

/** Append another motion, with a smooth bridge between the two. */
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

/** A command of the cue list; it applies to the running show. */
export interface ControlCues {
  verb: "back" | "skip" | "jump" | "pause" | "resume" | "mute" | "unmute" | "finish";
  section?: string | null;
  robot?: string | null;
}

/** Cross-fade into another motion while both play. */
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

/** Which take in memory to discard. */
export interface DiscardUnsaved {
  id: string;
}

/** The request was carried out. */
export interface Done {
  done?: boolean;
}

/** The position that a joint is pulled to; without a joint, all are released. */
export interface Drag {
  joint: string | null;
  value_rad?: number;
}

/** A show, and which section of it is to be drawn. */
export interface DrawShow {
  show: ShowDocument;
  section: string;
}

/** Remove some joints. */
export interface DropStep {
  op: "drop";
  joints: string[];
}

/** The findings against playing an edited take. */
export interface EditCheck {
  version: number;
  findings: FindingNow[];
  ok: boolean;
}

/** An edited take, or a part of it, with at most 1500 rows; the take begins at 0 s. */
export interface EditCurves {
  names: string[];
  times_s: number[];
  joints_rad: number[][];
  version: number;
  build: string | null;
  family: string | null;
  title: string;
  limbs: Record<string, string[]>;
  whole: boolean;
  duration_s: number;
  history: string[];
  marks: MarkNow[];
  jerk: number | null;
  peak_rad_s: number;
}

/** One edit, as a tool shows it. */
export interface EditFacts {
  name: string;
  title: string;
  summary: string;
  takes: number;
  parameters: EditParameter[];
}

/** A take, the edits to apply, and the joints to show; all that move by default. */
export interface EditKeyframes {
  take: string;
  version?: number | null;
  steps?: (TrimStep | SmoothStep | SpeedStep | RetimeStep | MirrorStep | ReverseStep | ResampleStep | CloseLoopStep | KeepStep | DropStep | ToBuildStep | ToRobotStep | KeyframeStep | ThroughStep | MoveHandStep | WarpStep | BeatStep | SegmentsStep | KeepPartStep | FitStep | MarkStep | ChangeMarkStep | RemoveMarkStep | CrossFadeStep | ConcatenateStep | BlendStep | LayerStep | AverageStep | MergeStep)[];
  joints?: string[] | null;
}

/** One parameter of an edit. */
export interface EditParameter {
  name: string;
  title: string;
  help: string;
  kind: "number" | "flag" | "joints" | "build" | "text" | "pose" | "choice" | "numbers" | "rows";
  choices: string[];
  columns: number;
  form: string;
  unit: string;
  low: number | null;
  high: number | null;
  slider: [number, number, number] | null;
  default: number | boolean | null;
  required: boolean;
}

/** A take, the edits to apply, and which part of the result to show; all by default. */
export interface EditPart {
  take: string;
  version?: number | null;
  steps?: (TrimStep | SmoothStep | SpeedStep | RetimeStep | MirrorStep | ReverseStep | ResampleStep | CloseLoopStep | KeepStep | DropStep | ToBuildStep | ToRobotStep | KeyframeStep | ThroughStep | MoveHandStep | WarpStep | BeatStep | SegmentsStep | KeepPartStep | FitStep | MarkStep | ChangeMarkStep | RemoveMarkStep | CrossFadeStep | ConcatenateStep | BlendStep | LayerStep | AverageStep | MergeStep)[];
  start_s?: number;
  end_s?: number | null;
}

/** A take, the edits to apply, and the name under which to save the result. */
export interface EditSave {
  take: string;
  version?: number | null;
  steps?: (TrimStep | SmoothStep | SpeedStep | RetimeStep | MirrorStep | ReverseStep | ResampleStep | CloseLoopStep | KeepStep | DropStep | ToBuildStep | ToRobotStep | KeyframeStep | ThroughStep | MoveHandStep | WarpStep | BeatStep | SegmentsStep | KeepPartStep | FitStep | MarkStep | ChangeMarkStep | RemoveMarkStep | CrossFadeStep | ConcatenateStep | BlendStep | LayerStep | AverageStep | MergeStep)[];
  name: string;
  over?: number | null;
}

/** A take and the edits to apply. */
export interface EditTake {
  take: string;
  version?: number | null;
  steps?: (TrimStep | SmoothStep | SpeedStep | RetimeStep | MirrorStep | ReverseStep | ResampleStep | CloseLoopStep | KeepStep | DropStep | ToBuildStep | ToRobotStep | KeyframeStep | ThroughStep | MoveHandStep | WarpStep | BeatStep | SegmentsStep | KeepPartStep | FitStep | MarkStep | ChangeMarkStep | RemoveMarkStep | CrossFadeStep | ConcatenateStep | BlendStep | LayerStep | AverageStep | MergeStep)[];
}

/** An edited take, and the result of its check. */
export interface Edited {
  names: string[];
  times_s: number[];
  joints_rad: number[][];
  version: number;
  build: string | null;
  family: string | null;
  title: string;
  limbs: Record<string, string[]>;
  whole: boolean;
  duration_s: number;
  history: string[];
  marks: MarkNow[];
  jerk: number | null;
  peak_rad_s: number;
  findings: FindingNow[];
  ok: boolean;
}

/** All edits. */
export interface Edits {
  edits: EditFacts[];
}

/** The recent events, the oldest first. */
export interface EventList {
  events: EventNow[];
}

/** Something that has happened, for the list of recent events. */
export interface EventNow {
  id: number;
  time_s: number;
  kind: "stop" | "stop-unconfirmed" | "stop-confirmed" | "lost" | "back" | "saved" | "recovered" | "not-saved" | "soft" | "ended" | "stage";
  safety: boolean;
  acknowledged: boolean;
  message: string;
  text: TextNow;
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

/** A point for a hand that is far from the takes. */
export interface FarPoint {
  hand: "left" | "right";
  time_s: number;
  std: number;
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

/** Remove joints that the robot does not play, keep joints within their range, cut what is too long, and retime what is too fast. With marks, keep the tempo. */
export interface FitStep {
  op: "fit";
  keep_tempo?: boolean;
  slow_down?: boolean;
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

/** How many more browsers of each role the server admits. */
export interface FreePlaces {
  watch: number;
  command: number;
  teacher: number;
}

/** The number of a connected browser. */
export interface GiveCommand {
  number: number;
}

/** Where a hand is to be at one moment, in the frame of the robot's base. */
export interface HandTarget {
  hand: "left" | "right";
  time_s: number;
  x_m: number;
  y_m: number;
  z_m: number;
}

/** A ball for a head. */
export interface Head {
  link: string;
  at: [number, number, number];
  radius: number;
}

/** One joint, and its pose on its parent. */
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

/** An angle that a joint passes through. */
export interface JointKeyframe {
  joint: string;
  time_s: number;
  value_rad: number;
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
  ends: LimbEnd[];
  model: boolean;
}

/** Cut out one part: from the mark with this label to the next mark. */
export interface KeepPartStep {
  op: "keep_part";
  label: string;
}

/** Keep only some joints. */
export interface KeepStep {
  op: "keep";
  joints: string[];
}

/** Lead joints through other angles at one moment; the motion around it follows. */
export interface KeyframeStep {
  op: "keyframe";
  time_s: number;
  pose: Record<string, number>;
  to_s?: number | null;
  before_s?: number;
  after_s?: number;
}

/** The robots that can be simulated, and examples of URLs. */
export interface KnownRobots {
  simulated: SimulatedRobot[];
  led: SimulatedRobot[];
  examples: string[];
}

/** Take some joints from another motion, for example its right_arm. */
export interface LayerStep {
  op: "layer";
  other: string;
  joints: string[];
}

/** Takes of one motion, to learn from. */
export interface LearnTakes {
  takes: string[];
}

/** A motion learned from several takes: the mean of its joints over time. */
export interface LearnedBand {
  names: string[];
  times_s: number[];
  joints_rad: number[][];
  id: string;
  spread_rad: number[][];
  duration_s: number;
  takes: string[];
  build: string | null;
  family: string | null;
  title: string;
}

/** A hand or a foot, and the joints that move it. */
export interface LimbEnd {
  link: string;
  at: [number, number, number];
  limb: string;
  joints: string[];
}

/** A point on a link, in metres. */
export interface LinkPlace {
  link: string;
  at: [number, number, number];
}

/** The query strings of links to this page for others; null if no token is required. No client gets a link of a higher role than its own. */
export interface Links {
  command: string | null;
  watch: string | null;
}

/** Whether only teachers may take command. */
export interface LockCommand {
  locked: boolean;
}

/** Which show to lock or unlock. */
export interface LockShow {
  name: string;
  locked: boolean;
}

/** A moment with a label. */
export interface MarkNow {
  time_s: number;
  label: string;
}

/** Set a mark with a label at a moment. */
export interface MarkStep {
  op: "mark";
  time_s: number;
  label: string;
}

/** Take each part of a motion from one of several takes, aligned in time. */
export interface MergeStep {
  op: "merge";
  others: string[];
  parts: number[][];
  blend_s?: number;
}

/** Exchange left and right. If joints are chosen, only they become the mirror image of the other side. */
export interface MirrorStep {
  op: "mirror";
  joints?: string[] | null;
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

/** The pose of a link on its parent, in metres and rad. */
export interface Mount {
  parent: string;
  link: string;
  origin: [number, number, number];
  rpy: [number, number, number];
}

/** Shift or scale a hand's path, or lead it through points; the arm follows. */
export interface MoveHandStep {
  op: "move_hand";
  hand: "left" | "right" | "both";
  by?: number[] | null;
  scale?: number;
  through?: number[][] | null;
  start_s?: number | null;
  end_s?: number | null;
  blend_s?: number | null;
  keep_orientation?: boolean;
  move_ends?: boolean;
}

/** Which show. */
export interface NamedShow {
  name: string;
}

/** The client that commands when the countdown has ended. */
export interface NextCommander {
  number: number;
  name: string | null;
  in_s: number;
}

/** A request without details: {}. */
export interface Nothing {
}

/** How early an action or sound is requested. */
export interface OffsetNow {
  seconds: number;
  is_set: boolean;
}

/** Which proposal. */
export interface OneTicket {
  ticket: string;
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
  stops: number;
  paused: boolean;
  return_in_s: number | null;
  return_s: number | null;
  proposal: ProposalNow | null;
  unconfirmed_stop: UnconfirmedStop | null;
  soft: SoftLimbs | null;
  actions_changes: number;
  takes_changes: number;
  storage_problem: Texts | null;
  unsaved: UnsavedTake[];
}

/** All connected browsers. */
export interface People {
  people: Person[];
  free: FreePlaces;
}

/** A factory action. */
export interface Perform {
  preset: number;
}

/** A connected browser: its number, and the name that its user has set. */
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
  steps?: (TrimStep | SmoothStep | SpeedStep | RetimeStep | MirrorStep | ReverseStep | ResampleStep | CloseLoopStep | KeepStep | DropStep | ToBuildStep | ToRobotStep | KeyframeStep | ThroughStep | MoveHandStep | WarpStep | BeatStep | SegmentsStep | KeepPartStep | FitStep | MarkStep | ChangeMarkStep | RemoveMarkStep | CrossFadeStep | ConcatenateStep | BlendStep | LayerStep | AverageStep | MergeStep)[];
  speed?: number | null;
  force?: boolean;
  mapped?: boolean;
  imported?: boolean;
  loop?: boolean;
}

/** How a playback ended. */
export interface PlaybackEnd {
  completed: boolean;
  reason: string;
}

/** A factory action. */
export interface PresetNow {
  id: number;
  name: string;
}

/** Which proposal, the digest that the user has seen, and the secret from the terminal. */
export interface PressApproval {
  ticket: string;
  digest: string;
  secret: string;
}

/** How to adapt a learned motion, and whether to check the result, which takes longer. */
export interface PreviewAdapted {
  id: string;
  through?: HandTarget[];
  duration_s?: number | null;
  start?: Record<string, number>;
  end?: Record<string, number>;
  check?: boolean;
}

/** Why a request failed. */
export interface Problem {
  error: string;
  message: string;
  remedy: string;
  stage?: string | null;
  texts?: Texts | null;
}

/** A motion that an agent has proposed, and that waits for the user. */
export interface ProposalNow {
  ticket: string;
  state: "waiting" | "held" | "approved";
  take: string;
  version: number;
  speed: number;
  digest: string;
  left_s: number;
  hold_s: number;
}

/** A take that an agent proposes to play. */
export interface ProposeMotion {
  take: string;
  version?: number | null;
  speed?: number;
  motion?: string | null;
}

/** A few angles of each joint that moves; smooth steps between them approximate its curve. */
export interface ProposedKeyframes {
  keyframes: JointKeyframe[];
  max_error_rad: number;
}

/** What to delete from the trash permanently. */
export interface Purge {
  id: string;
}

/** Remove the mark at a moment. */
export interface RemoveMarkStep {
  op: "remove_mark";
  time_s: number;
}

/** The old and the new name. */
export interface Rename {
  old: string;
  new: string;
}

/** The old and the new name of a show; its cast of the same name is renamed, too. */
export interface RenameShow {
  old: string;
  new: string;
}

/** Space the samples evenly. */
export interface ResampleStep {
  op: "resample";
  rate_hz?: number;
}

/** Which stop to reset. */
export interface ResetStop {
  stop?: string | null;
}

/** What to restore from the trash. */
export interface Restore {
  id: string;
  to?: string | null;
}

/** Keep the path within limits of speed, acceleration and jerk. The motion gets slower where it breaks a limit. It gets faster than recorded only if requested. */
export interface RetimeStep {
  op: "retime";
  velocity?: number | null;
  acceleration?: number | null;
  jerk?: number | null;
  fastest?: boolean;
}

/** Play the motion backwards. */
export interface ReverseStep {
  op: "reverse";
  joints?: string[] | null;
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

/** What one role does in a section, as one motion. */
export interface RoleCurves {
  role: string;
  at_s: number;
  build: string;
  names: string[];
  times_s: number[];
  joints_rad: number[][];
}

/** How to adapt a learned motion, and the name under which to save the result. */
export interface SaveAdapted {
  id: string;
  through?: HandTarget[];
  duration_s?: number | null;
  start?: Record<string, number>;
  end?: Record<string, number>;
  name: string;
  over?: number | null;
}

/** A cast to be saved to a file. */
export interface SaveCast {
  name: string;
  cast: Record<string, string>;
}

/** A show to be saved to a file. */
export interface SaveShow {
  name: string;
  show: ShowDocument;
  known?: string | null;
  replace?: boolean;
}

/** Where to write a take that could not be saved. */
export interface SaveUnsaved {
  id: string;
  name: string;
  folder?: string | null;
}

/** Where a take was written. */
export interface SavedAt {
  path: string;
}

/** What every role does in a section; those that cannot be compiled are missing. */
export interface SectionCurves {
  section: string;
  duration_s: number;
  roles: RoleCurves[];
}

/** One section that was played. */
export interface SectionSeen {
  name: string;
  skew_ms: SkewNow;
  late: string[];
  lost: string[];
  incomplete: string[];
  faults: Record<string, string>;
}

/** Set a mark where each part begins: after pauses and changes of direction. */
export interface SegmentsStep {
  op: "segments";
}

/** How early a robot's action or sounds are requested. A robot that plays ignores it. */
export interface SetOffset {
  robot: string;
  name: string;
  seconds?: number | null;
}

/** The findings against running a show. */
export interface ShowChecked {
  ok: boolean;
  findings: ShowFindingNow[];
}

/** A motion of one role. */
export interface ShowClip {
  role: string;
  take?: string | null;
  action?: string | null;
  at_s?: number | null;
  from_s?: number | null;
  to_s?: number | null;
  speed?: number | null;
  mirror?: boolean | null;
  loop?: number | null;
  blend_s?: number | null;
}

/** Something beside motion. */
export interface ShowCue {
  at_s?: number | null;
  role?: string | null;
  sound?: string | null;
  say?: string | null;
  language?: "zh" | "en" | null;
  light?: number[] | null;
  osc?: string | null;
  to?: string | null;
  args?: (number | string)[] | null;
}

/** A show, as in its file; fields that are null are omitted there. */
export interface ShowDocument {
  rote_show: 1;
  title?: string;
  roles: Record<string, ShowRoleNow>;
  sections?: ShowSectionNow[];
}

/** The result of the last show. */
export interface ShowEnded {
  show: string;
  run: string;
  ended: string;
  finished_early: boolean;
  interruptions: string[];
  unconfirmed: string[];
  lost: string[];
  sections: SectionSeen[];
}

/** One show of this computer. */
export interface ShowEntry {
  name: string;
  title: string;
  roles: string[];
  sections: number;
  problem: string;
}

/** Something to know before a show runs; `time_s` counts from the section's start. */
export interface ShowFindingNow {
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
  section: string | null;
  role: string | null;
}

/** The lock of a show. */
export interface ShowLock {
  locked: string;
  problem: string;
}

/** A show that was locked or unlocked. */
export interface ShowLocked {
  lock: ShowLock | null;
}

/** A show, and the tag of its file. */
export interface ShowOpened {
  name: string;
  tag: string;
  path: string;
  show: ShowDocument;
  lock: ShowLock | null;
}

/** A role of a show. */
export interface ShowRoleNow {
  build?: string | null;
  title?: string | null;
  on_loss?: "stop" | "drop" | null;
}

/** The running show. */
export interface ShowRunNow {
  show: string;
  how: "show" | "rehearsal" | "lights";
  state: "checking" | "waiting" | "starting" | "playing" | "paused" | "stopped" | "ending";
  section: string;
  next: string;
  sections: string[];
  waits: "go" | "after" | "at" | "osc" | "heard" | null;
  detail: string;
  elapsed_s: number | null;
  left_s: number | null;
  duration_s: number;
  interruption: string;
  robots: string[];
}

/** Where a show was saved. */
export interface ShowSaved {
  name: string;
  tag: string;
  path: string;
  lock: ShowLock | null;
}

/** From one start together to the next. */
export interface ShowSectionNow {
  name: string;
  loop?: number | null;
  on_loss?: "stop-all" | "go-on" | null;
  hold?: boolean | null;
  start?: ShowTrigger | null;
  clips?: ShowClip[];
  cues?: ShowCue[];
}

/** The shows, casts and sounds of this computer. */
export interface ShowShelf {
  shows: ShowEntry[];
  casts: Record<string, Record<string, string>>;
  sounds: SoundEntry[];
  folder: string;
}

/** What begins a section. */
export interface ShowTrigger {
  on: "go" | "after" | "at" | "osc" | "heard";
  seconds?: number | null;
  time?: string | null;
  address?: string | null;
  word?: string | null;
}

/** A robot that can be simulated in the server. */
export interface SimulatedRobot {
  build: string;
  title: string;
  url: string;
}

/** How far apart robots began, in ms. */
export interface SkewNow {
  p50: number | null;
  max: number | null;
}

/** Remove trembling, without delay. A lower cutoff makes the motion smoother. */
export interface SmoothStep {
  op: "smooth";
  cutoff_hz?: number;
  joints?: string[] | null;
}

/** The robot's limbs are soft, or may be. */
export interface SoftLimbs {
  by: "teaching" | "elsewhere" | "damping" | "unknown";
  can_hold: boolean;
}

/** A capsule on a link; if its radius is 0, a box, and `end` its half sizes. */
export interface Solid {
  link: string;
  start: [number, number, number];
  end: [number, number, number];
  radius: number;
}

/** One sound beside the shows. */
export interface SoundEntry {
  name: string;
  duration_s: number | null;
}

/** A sound as it is drawn: the loudest sample of each part, 0 to 1. */
export interface SoundPeaks {
  name: string;
  duration_s: number;
  peaks: number[];
}

/** Play the whole motion faster or slower. 2 is twice as fast. */
export interface SpeedStep {
  op: "speed";
  factor: number;
}

/** Begin a show, or the next section of the running show. */
export interface StageGo {
  show: string;
  cast: Record<string, string>;
  section?: string | null;
  known?: string | null;
  how?: "show" | "rehearsal" | "lights";
  force?: boolean;
}

/** The stage, as it is now. */
export interface StageNow {
  there: boolean;
  is_superseded: boolean;
  name: string;
  robots: StageRobot[];
  run: ShowRunNow | null;
  stop: StageStop | null;
  last: ShowEnded | null;
  worst: StageWorst | null;
}

/** One robot of the stage. */
export interface StageRobot {
  name: string;
  reachable: boolean;
  lamp: "ready" | "loading" | "armed" | "playing" | "paused" | "muted" | "STOPPED" | "FAULT" | "LOST";
  muted: boolean;
  offsets: Record<string, OffsetNow>;
  ready: boolean;
  phase: string;
  moving: boolean;
  stopped: boolean | null;
  clock_bound_ms: number | null;
  round_trip_ms: number | null;
  battery_percent: number | null;
  robot: string;
  build: string;
  fault: string;
  faults: string[];
}

/** A stop, which lasts until the user resets it. */
export interface StageStop {
  id: string;
  by: string;
  confirmed_ms: number | null;
  unconfirmed: string[];
  obstacles: Record<string, string>;
}

/** The worst state of any robot of the stage, and which robots are in it. */
export interface StageWorst {
  state: "stop-unconfirmed" | "fault" | "lost" | "moving" | "stopped" | "rest";
  robots: string[];
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
  confirmed: boolean;
}

/** A take of this computer, edited, to be stored on the robot as an action. */
export interface StoreTake {
  take: string;
  name: string;
  version?: number | null;
  steps?: (TrimStep | SmoothStep | SpeedStep | RetimeStep | MirrorStep | ReverseStep | ResampleStep | CloseLoopStep | KeepStep | DropStep | ToBuildStep | ToRobotStep | KeyframeStep | ThroughStep | MoveHandStep | WarpStep | BeatStep | SegmentsStep | KeepPartStep | FitStep | MarkStep | ChangeMarkStep | RemoveMarkStep | CrossFadeStep | ConcatenateStep | BlendStep | LayerStep | AverageStep | MergeStep)[];
}

/** The keyframes of a take that were stored on the robot. */
export interface Stored {
  name: string;
  keyframes: number;
  max_error_rad: number;
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

/** The takes of this computer, or some of them. */
export interface Takes {
  takes: TakeEntry[];
  total: number;
  tag: string;
  same: boolean;
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
  kept: boolean;
  unsaved: string | null;
  duration_s: number;
  samples: number;
  rate_hz: number;
}

/** Whether to keep the take, and its final name if it changes. */
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

/** Lead joints through other angles at one moment, with the least change of acceleration; both ends stay. */
export interface ThroughStep {
  op: "through";
  time_s: number;
  pose: Record<string, number>;
}

/** The state of a proposal, and the motion, robot and build that it is bound to. */
export interface TicketNow {
  ticket: string;
  state: "waiting" | "held" | "approved" | "used" | "refused" | "expired" | "void";
  take: string;
  version: number;
  motion: string;
  speed: number;
  robot: string;
  build: string;
  digest: string;
  ended: PlaybackEnd | null;
}

/** Convert the motion to another build of its robot. */
export interface ToBuildStep {
  op: "to_build";
  build: string;
  force?: boolean;
}

/** Let the hands of another robot follow the same paths, scaled to its arms. */
export interface ToRobotStep {
  op: "to_robot";
  build: string;
}

/** The deleted takes, the newest first. */
export interface Trash {
  trash: TrashedTake[];
}

/** One deleted take. */
export interface TrashedTake {
  id: string;
  name: string;
  deleted_s: number;
  versions: number;
  duration_s: number | null;
}

/** Cut off the beginning and the end, by time or where nothing moves. */
export interface TrimStep {
  op: "trim" | "trim_idle";
  start_s?: number | null;
  end_s?: number | null;
  auto?: boolean;
}

/** A stop that the robot has not confirmed; the server sends it again. */
export interface UnconfirmedStop {
  since_s: number;
  message: string;
  text: TextNow;
}

/** A take that is only in the server's memory because it could not be written. */
export interface UnsavedTake {
  id: string;
  name: string;
  duration_s: number;
  samples: number;
  problem: string;
  folders: string[];
}

/** Move moments to other times; the time between them is stretched smoothly. */
export interface WarpStep {
  op: "warp";
  moves: number[][];
}

export type Step =
  | AverageStep
  | BeatStep
  | BlendStep
  | ChangeMarkStep
  | CloseLoopStep
  | ConcatenateStep
  | CrossFadeStep
  | DropStep
  | FitStep
  | KeepPartStep
  | KeepStep
  | KeyframeStep
  | LayerStep
  | MarkStep
  | MergeStep
  | MirrorStep
  | MoveHandStep
  | RemoveMarkStep
  | ResampleStep
  | RetimeStep
  | ReverseStep
  | SegmentsStep
  | SmoothStep
  | SpeedStep
  | ThroughStep
  | ToBuildStep
  | ToRobotStep
  | TrimStep
  | WarpStep;
