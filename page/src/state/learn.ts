/** A motion learned from several takes, and adapted: in the server's memory until it is saved as a take. */

import { batch, computed, effect, signal } from "@preact/signals";
import { api, ApiError } from "../api";
import { type JointAngles, handOf, poseAt, poseLine } from "../pose";
import { sentence } from "../format";
import type { Adapted, AdaptLearned, LearnedBand, RobotModel, Vector } from "../types";
import { now } from "./clock";
import { library } from "./library";
import { robot } from "./robot";
import { claim, scene } from "./scene";
import { createTimeline } from "./timeline";
import { ui } from "./ui";

export const LEAST_TAKES = 3;

/** Where a hand is to be; the moment is a share of the motion, so that it stays when the duration changes. */
export interface Target {
  hand: "left" | "right";
  share: number;
  at_m: Vector;
}

/** The takes that are chosen to learn from; null while none are to be chosen. */
const chosen = signal<string[] | null>(null);
const band = signal<LearnedBand | null>(null);
const targets = signal<Target[]>([]);
/** How long the motion is to take; null for as long as learned. */
const duration_s = signal<number | null>(null);
/** Angles of the first and of the last pose that are not as learned. */
const edges = { start: signal<JointAngles | null>(null), end: signal<JointAngles | null>(null) } as const;
export type Edge = keyof typeof edges;
/** Whether it begins where the robot is. */
const beginsAtRobot = signal(false);
/** Whether both hands are dragged together, so that they keep their distance. */
const bothHands = signal(false);
const adapted = signal<Adapted | null>(null);
/** Why the motion cannot be adapted like this. */
const refusal = signal("");
/** Angles of the ghost while a hand is dragged, until the answer to it is there. */
const held = signal<JointAngles | null>(null);
const owner = signal<RobotModel | null>(null);

/** The takes as they vary, in the time of the motion that is shown. */
const shownBand = computed<LearnedBand | null>(() => {
  const learned = band.value;
  const ratio = (adapted.value?.duration_s ?? 0) / (learned?.duration_s ?? 1) || 1;
  return learned && { ...learned, times_s: learned.times_s.map((time_s) => time_s * ratio) };
});
const shown = computed(() => adapted.value ?? band.value);

const timeline = createTimeline<never, null>({
  nothingPicked: null,
  end_s: () => shown.peek()?.duration_s ?? 0,
  previewSpan: () => (shown.peek() ? { from: 0, to: shown.peek()?.duration_s ?? 0 } : null),
  restartWithin_s: 0.1,
  isUnsaved: () => false,
  isShown: () => ui.screen.value === "library",
});
const { playhead, working, stopPreview } = timeline;

/** Choose a take to learn from, or not any more. */
function choose(name: string, wanted: boolean): void {
  const others = (chosen.peek() ?? []).filter((each) => each !== name);
  chosen.value = wanted ? [...others, name] : others;
}

/** Learn from the takes that are chosen. */
async function learn(): Promise<void> {
  const takes = chosen.peek() ?? [];
  working.value = true;
  try {
    const learned = await api.learn(takes);
    const model = learned.build ? await robot.modelOf(learned.build) : null;
    batch(() => {
      band.value = learned;
      owner.value = model;
      chosen.value = duration_s.value = adapted.value = held.value = null;
      beginsAtRobot.value = bothHands.value = false;
      reached = AS_LEARNED;
      set(AS_LEARNED);
      refusal.value = "";
      playhead.value = learned.duration_s / 2;
    });
    void adapt(true);
  } catch (error) {
    ui.report(error);
  } finally {
    working.value = false;
  }
}

function close(): void {
  stopPreview();
  batch(() => (band.value = adapted.value = held.value = null));
}

/** What is requested of the server. */
function request(): AdaptLearned | null {
  const learned = band.peek();
  if (!learned) return null;
  const whole_s = duration_s.peek() ?? learned.duration_s;
  const rounded = (value: number): number => Number(value.toFixed(4));
  return {
    id: learned.id,
    through: targets.peek().map(({ hand, share, at_m: [x, y, z] }) => ({
      hand,
      time_s: rounded(share * whole_s),
      x_m: rounded(x),
      y_m: rounded(y),
      z_m: rounded(z),
    })),
    duration_s: whole_s,
    start: edges.start.peek() ?? {},
    end: edges.end.peek() ?? {},
  };
}

/** Where the motion is led. */
interface Setting {
  targets: Target[];
  start: JointAngles | null;
  end: JointAngles | null;
}
const AS_LEARNED: Setting = { targets: [], start: null, end: null };
const setting = (): Setting => ({ targets: targets.peek(), start: edges.start.peek(), end: edges.end.peek() });

function set(wanted: Setting): void {
  batch(() => {
    targets.value = wanted.targets;
    edges.start.value = wanted.start;
    edges.end.value = wanted.end;
    if (!wanted.start) beginsAtRobot.value = false;
  });
}

/** How the motion that is shown is led. */
let reached = AS_LEARNED;
let requested = 0;
let isAsking = false;
let again: boolean | null = null;

/** Adapt the motion as it is set now, one request at a time; the check takes longer, and comes when nothing is held. */
async function adapt(check: boolean): Promise<void> {
  if (isAsking) {
    again = check;
    return;
  }
  isAsking = true;
  requested += 1;
  const mine = requested;
  const wanted = request();
  const wantedSetting = setting();
  try {
    if (!wanted) return;
    const made = await api.adapt(wanted, false);
    if (band.peek()?.id !== wanted.id) return;
    reached = wantedSetting;
    const ratio = made.duration_s / (shown.peek()?.duration_s ?? made.duration_s);
    batch(() => {
      adapted.value = made;
      refusal.value = "";
      if (check) held.value = null;
      // The same moment of the motion stays shown.
      if (ratio !== 1) timeline.moveTo(ratio * playhead.peek());
    });
    if (check) void checkAdapted(wanted, mine);
  } catch (error) {
    batch(() => {
      refusal.value =
        error instanceof ApiError ? `${sentence(error.message)} ${sentence(error.remedy)}` : String(error);
      if (!check) return;
      held.value = null;
      set(reached);
    });
  } finally {
    isAsking = false;
    const next = again;
    again = null;
    if (next !== null) void adapt(next);
  }
}

async function checkAdapted(wanted: AdaptLearned, mine: number): Promise<void> {
  try {
    const made = await api.adapt(wanted, true);
    if (mine === requested && band.peek()?.id === wanted.id) adapted.value = made;
  } catch (error) {
    if (mine === requested) ui.report(error);
  }
}

function setDuration(seconds: number): void {
  duration_s.value = seconds;
  void adapt(true);
}

function removeTarget(target: Target): void {
  targets.value = targets.peek().filter((each) => each !== target);
  void adapt(true);
}

/** Let the motion begin or end as learned again. */
function resetEdge(edge: Edge): void {
  batch(() => {
    edges[edge].value = null;
    if (edge === "start") beginsAtRobot.value = false;
  });
  void adapt(true);
}

/** The angles of the joints that the motion has. */
function ofMotion(pose: JointAngles): JointAngles {
  const names = band.peek()?.names ?? [];
  const own = Object.entries(pose).filter(([name]) => names.includes(name));
  return Object.fromEntries(own.map(([name, angle]) => [name, Number(angle.toFixed(4))]));
}

/** Begin where the robot is now, or as learned. */
function beginAtRobot(wanted: boolean): void {
  const pose = robot.poses.at(now());
  if (!wanted || !pose) {
    resetEdge("start");
    return;
  }
  const joints = robot.model.peek()?.joints ?? [];
  batch(() => {
    edges.start.value = ofMotion(Object.fromEntries(joints.map(({ name, index }) => [name, pose[index] ?? 0])));
    beginsAtRobot.value = true;
  });
  void adapt(true);
}

/** Save the adapted motion as a new take, and open it. */
async function save(name: string): Promise<void> {
  const wanted = request();
  if (!wanted) return;
  const entry = await api.saveAdapted(wanted, name);
  close();
  await library.load();
  ui.go("edit", entry.name);
}

// ---- the ghost and its hands ----------------------------------------------------------------------

const [showGhost, showGuest, showHandles] = [claim(scene.ghost), claim(scene.guest), claim(scene.limbHandles)];
/** The robot that shows the motion: the one that is connected, if it is of the same family. */
const shownBy = computed(() => {
  const live = robot.model.value;
  return live && live.family === owner.value?.family ? live : owner.value;
});
const isShown = computed(() => ui.screen.value === "library" && band.value !== null);

effect(() => {
  const [motion, by] = [shown.value, shownBy.value];
  const pose = isShown.value && motion && by ? poseAt(motion, playhead.value, by, by.rest_rad, held.value ?? {}) : null;
  const isGuest = by !== robot.model.value;
  showGhost(isGuest ? null : pose);
  showGuest(isGuest && pose && by ? { model: by, pose } : null);
});

/** Nearer to an end of the motion than this, a dragged hand changes the first or the last pose. */
const FROM_ENDS_S = 0.05;

function edgeShown(): Edge | null {
  if (playhead.peek() < FROM_ENDS_S) return "start";
  return (shown.peek()?.duration_s ?? 0) - playhead.peek() < FROM_ENDS_S ? "end" : null;
}

/** Hands are dragged at an end of the motion: their arms have this pose there. */
function moveEdge(pose: JointAngles, edge: Edge): void {
  batch(() => {
    held.value = pose;
    edges[edge].value = { ...edges[edge].peek(), ...ofMotion(pose) };
    if (edge === "start") beginsAtRobot.value = false;
  });
  void adapt(false);
}

/** Hands are dragged at the moment shown: they are targets, in place of those for the same hands and moment. */
function moveTargets(pose: JointAngles, places: readonly Omit<Target, "share">[]): void {
  const share = playhead.peek() / (shown.peek()?.duration_s ?? 1);
  const isMoved = (each: Target): boolean =>
    Math.abs(each.share - share) <= 1e-3 && places.some(({ hand }) => hand === each.hand);
  batch(() => {
    held.value = pose;
    targets.value = [
      ...targets.peek().filter((each) => !isMoved(each)),
      ...places.map((place) => ({ ...place, share })),
    ];
  });
  void adapt(false);
}

effect(() => {
  const [motion, by, of] = [shown.value, shownBy.value, owner.value];
  if (!isShown.value || !motion || !by || !of) return showHandles(null);
  const ends = of.ends.filter(({ limb }) => handOf(limb));
  if (!ends.length) return showHandles(null);
  return showHandles({
    ends,
    together: bothHands.value,
    line: { ...poseLine(motion, by, by.rest_rad), moment: null, onGrab: (time_s) => timeline.seek(time_s) },
    onMove: (pose, end, locate) => {
      stopPreview();
      const edge = edgeShown();
      if (edge) return moveEdge(pose, edge);
      const at = (instead: JointAngles = {}) => poseAt(motion, playhead.peek(), of, of.rest_rad, instead);
      const [from, to] = [locate(of, at()), locate(of, at(pose))];
      const by_m = (place: Vector): Vector =>
        place.map((each, axis) => each + (to[axis] as number) - (from[axis] as number)) as Vector;
      const dragged = bothHands.peek() ? ends : [end];
      return moveTargets(
        pose,
        dragged.map((each) => ({ hand: handOf(each.limb) ?? "right", at_m: by_m(locate(of, at(), each)) })),
      );
    },
    onDone: () => void adapt(true),
  });
});

export const learning = {
  ...timeline,
  chosen,
  choose,
  learn,
  close,
  band,
  shownBand,
  shown,
  adapted,
  targets,
  removeTarget,
  duration_s,
  setDuration,
  edges,
  resetEdge,
  beginsAtRobot,
  beginAtRobot,
  bothHands,
  owner,
  refusal,
  save,
};
