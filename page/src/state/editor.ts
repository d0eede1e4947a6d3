/** The take being edited: its steps, their result, and the moment shown. */

import { batch, computed, effect, signal } from "@preact/signals";
import { api } from "../api";
import { adoptDraft, drafts, dropDraft, isUnsavedHere, keepDraft, keeps, otherDraft } from "./drafts";
import { degrees, hundredths, joint as jointName, seconds } from "../format";
import { addEntry, type History, NOTHING_DONE } from "./history";
import { rowAt } from "../interpolate";
import { type JointAngles, handOf, movedMiddle, poseAt, poseLine } from "../pose";
import { type Bend, bendOf, LEAST_S, movedTo, ofJoint, room, stepOf } from "../keyframes";
import { now } from "./clock";
import { library } from "./library";
import { playback } from "./playback";
import { robot } from "./robot";
import { claim, scene } from "./scene";
import { ui } from "./ui";
import { TEXTS } from "../texts";
import { createTimeline } from "./timeline";
import { isPart, LOOKS_CLOSER, panned, showing, type Span, within, zoomed } from "./span";
import type {
  EditCheck,
  EditCurves,
  EditFacts,
  Edited,
  JointKeyframe,
  KnownRobots,
  Mark,
  RobotModel,
  Step,
  Vector,
} from "../types";

const edited = signal<Edited | null>(null);
const selection = signal<Span>({ from: 0, to: 0 });
const opened = signal<string | null>(null);
/** The edits there are, as the server's table has them. */
const edits = signal<EditFacts[]>([]);
/** The builds that a motion can be brought to. */
const builds = signal<KnownRobots["simulated"]>([]);

/** The steps of the take; what is picked are the joints that an edit changes, by name or limb; none stands for all. */
const timeline = createTimeline<Step, readonly string[]>({
  nothingPicked: [],
  end_s: () => edited.peek()?.duration_s ?? 0,
  previewSpan: () => (edited.peek() ? selection.peek() : null),
  restartWithin_s: 0.1,
  isUnsaved: () => opened.value !== null && isUnsavedHere(opened.value),
  isShown: () => ui.screen.value === "edit",
  onFrame: () => reveal(playhead.peek()),
  adopt: (next) => {
    if (opened.peek()) void apply(opened.peek() as string, next);
  },
  newestHistory: () => newestHistory(),
});
const { history, picked, playhead, working, moveTo, seek: seekTo, stopPreview } = timeline;

/** The part of the take that is shown. */
const view = signal<Span>({ from: 0, to: 0 });
/** A part of the take, with more samples than the whole was sent with. */
const detail = signal<EditCurves | null>(null);

/** Whether keyframes are shown, and of which joint. */
const keyframing = signal(false);
const keyJoint = signal("");
/** A few angles that the joint passes through; nothing while they are asked for. */
const keyframes = signal<JointKeyframe[] | null>(null);
/** A keyframe that is being dragged: how the curve bends, and what the joint's angle becomes. */
const dragged = signal<{ joint: string; bend: Bend; value: number } | null>(null);
/** Angles of the ghost that replace those of the take during a drag. */
const bending = signal<Record<string, number> | null>(null);
/** What a hand that is dragged makes: a keyframe, a pose that the whole motion is led through, or another path. */
const dragMakes = signal<"keyframe" | "through" | "path" | "both">("keyframe");
/** A pose that the whole motion would be led through; pending until it is accepted or dropped. */
export interface Proposal {
  time_s: number;
  pose: Record<string, number>;
  /** Whether the hand is still held: nothing on the screen may move away from it now. */
  held: boolean;
  /** The motion as it would be; nothing while that is worked out. */
  curves: EditCurves | null;
  /** What speaks against it; nothing while that is checked. */
  check: EditCheck | null;
}
const proposal = signal<Proposal | null>(null);
/** From how long before a moment the motion follows a pose that is set there, and until when. */
const widths = signal({ before: 0.5, after: 0.5 });

effect(() => {
  if (ui.screen.value !== "edit" || edits.peek().length) return;
  api.edits().then((answer) => (edits.value = answer.edits), ui.report);
  api.robots().then((answer) => (builds.value = answer.simulated), ui.report);
});
/** Why the robot that is connected cannot play the take: it is of another kind. Empty where it can. */
const strange = computed(() => (edited.value ? robot.explainForeign(edited.value) : ""));

/** The robot that the take is of; nothing while it is asked for, null where it is not known. */
const whose = signal<RobotModel | null | undefined>(undefined);

effect(() => {
  const build = edited.value?.build;
  if (!build) {
    whose.value = edited.value ? null : undefined;
    return;
  }
  if (whose.peek()?.build === build) return;
  whose.value = undefined;
  robot.modelOf(build).then((found) => edited.peek()?.build === build && (whose.value = found), ui.report);
});

/** The versions of the take that can be edited, the oldest first. */
const versions = computed(() => library.takes.value.find(({ name }) => name === opened.value)?.versions ?? []);
/** If a view has fewer samples than this, and the take has more, they are requested. */
const LEAST_SAMPLES = 400;
/** Whether the operator chose the version; otherwise it is the newest. */
let chosen = false;
let asked = 0;
/** What is being worked out: the next step, undo or redo goes on from there, not from what is still shown. */
let wanted: { take: string; history: History<Step>; version: number | undefined } | null = null;

/** The history with what is still being worked out. */
function newestHistory(): History<Step> {
  return wanted && wanted.take === opened.peek() ? wanted.history : history.peek();
}

/**
 * Ask what the steps make of a version of the take; the answer to the newest question counts. The version
 * stays the one that was opened, whatever is saved under the take's name meanwhile. What is seen comes
 * first; what speaks against playing it takes longer, and comes after it.
 */
async function apply(
  take: string,
  next: History<Step>,
  version = wanted?.take === take ? wanted.version : edited.peek()?.version,
  keyframesThen: JointKeyframe[] | null = null,
): Promise<boolean> {
  asked += 1;
  const mine = asked;
  wanted = { take, history: next, version };
  working.value = true;
  superseded(checking);
  try {
    const made = await api.editCurves(take, next.done, version);
    if (mine !== asked) return false;
    const was = edited.peek();
    const same = was !== null && opened.peek() === take;
    batch(() => {
      opened.value = take;
      history.value = next;
      detail.value = null;
      proposal.value = null;
      keyframes.value = keyframesThen;
      if (!made.names.includes(keyJoint.peek())) keyframing.value = false;
      edited.value = { ...made, findings: [], ok: false, checked: false };
      if (!same || was.duration_s !== made.duration_s) {
        view.value = same && isPart(view.peek(), was.duration_s) ? within(view.peek(), made.duration_s) : whole(made);
        selection.value = whole(made);
      }
      picked.value = picked.peek().filter((name) => made.names.includes(name) || name in made.limbs);
    });
    moveTo(playhead.peek());
    void check(mine, take, next.done, made.version);
    return true;
  } catch (error) {
    if (mine === asked) ui.report(error);
    return false;
  } finally {
    if (mine === asked) {
      wanted = null;
      working.value = false;
      dragged.value = null;
      bending.value = null;
      proposal.value = null;
    }
  }
}

const whole = ({ duration_s }: { duration_s: number }): Span => ({ from: 0, to: duration_s });

/** A check begins when nothing else was done for so long. */
const QUIET_MS = 120;
/**
 * A check that is not wanted any more has so long to end by itself: the process that does it then goes on
 * with the next one at once. One that takes longer is ended, and its process with it.
 */
const ENDS_ITSELF_MS = 1500;
let checking = new AbortController();

function superseded(check: AbortController): void {
  setTimeout(() => check.abort(), ENDS_ITSELF_MS);
}

async function check(mine: number, take: string, steps: readonly Step[], version: number): Promise<void> {
  await new Promise((quiet) => setTimeout(quiet, QUIET_MS));
  if (mine !== asked) return;
  checking = new AbortController();
  try {
    const { findings, ok } = await api.editCheck(take, steps, version, checking.signal);
    const made = edited.peek();
    if (mine === asked && made) edited.value = { ...made, findings, ok, checked: true };
  } catch (error) {
    if (mine === asked) ui.report(error);
  }
}

/** Open a take, with the edits of it that were not saved. */
async function openTake(take: string): Promise<void> {
  stopPreview();
  chosen = false;
  batch(() => {
    edited.value = null;
    playhead.value = 0;
    opened.value = take;
    picked.value = [];
    keyframing.value = false;
    proposal.value = bending.value = null;
  });
  const draft = adoptDraft(take);
  const still = (): boolean => opened.peek() === take && edited.peek() === null;
  if (draft) {
    if (await apply(take, { done: draft.steps, undone: draft.undone }, draft.version)) {
      if (draft.steps.length) ui.notify(TEXTS.edit.draft.back(draft.steps.length));
      return;
    }
    // They can be done again when what they need is there again.
    const later = { done: [], undone: [...draft.steps, ...draft.undone] };
    if (still() && (await apply(take, later))) return ui.notify(TEXTS.edit.draft.failed, "bad");
  } else if (await apply(take, NOTHING_DONE)) return;
  if (still()) opened.value = null;
}

// ---- edits that are not saved yet ---------------------------------------------------------------

effect(() => {
  const take = opened.value;
  const made = edited.value;
  void drafts.value; // another tab may have taken them over
  if (take && made) keepDraft(take, history.value, made.version);
});

/** Ask, and go back to the take as it was saved. */
function askToRevert(): void {
  const count = history.peek().done.length;
  const take = opened.peek();
  if (!take || !count) return;
  ui.question.value = {
    title: TEXTS.edit.draft.revertTitle(count),
    message: TEXTS.edit.draft.revertWords,
    confirm: TEXTS.edit.draft.revert,
    danger: true,
    then: () => void apply(take, NOTHING_DONE),
  };
}

addEventListener("beforeunload", (event) => {
  // Where the browser keeps nothing, they would be gone.
  if (!keeps.peek() && timeline.unsaved.peek()) event.preventDefault();
});

// ---- what is done to it -----------------------------------------------------------------------

function step(made: Step): void {
  if (opened.peek()) void apply(opened.peek() as string, addEntry(newestHistory(), made));
}

/** Work out a step that changes the pace, and ask before it is done: what it was, and what it would be. */
async function proposeStep(made: Step, title: string): Promise<void> {
  const take = opened.peek();
  const before = edited.peek();
  if (!take || !before) return;
  working.value = true;
  const was = history.peek();
  try {
    const after = await api.editCurves(take, [...was.done, made], before.version);
    if (opened.peek() !== take || history.peek() !== was) return;
    ui.question.value = {
      title: TEXTS.edit.pace.title(title),
      message: TEXTS.edit.pace.words(describePace(before), describePace(after)),
      confirm: TEXTS.edit.pace.confirm,
      then: () => step(made),
    };
  } catch (error) {
    ui.report(error);
  } finally {
    working.value = false;
  }
}

function describePace({ duration_s, peak_rad_s }: EditCurves): { time: string; speed: string } {
  return { time: seconds(duration_s), speed: `${degrees(peak_rad_s)}/s` };
}

/** Undo the last step, also one that is still being worked out; a proposal that is not accepted yet goes first. */
function undo(): void {
  if (proposal.peek()) dropProposal();
  else timeline.undo();
}

/** Do the same steps to another version of the take. */
function chooseVersion(version: number): void {
  chosen = true;
  if (opened.peek()) void apply(opened.peek() as string, newestHistory(), version);
}

/**
 * Save what the steps have made; it is what is edited from then on, unless something else was done meanwhile. `over` is
 * the newest version of the take called `name` that the person knows of, 0 for none; null saves over any.
 */
async function save(name: string, over: number | null): Promise<void> {
  const take = opened.peek();
  const made = edited.peek();
  if (!take || !made) return;
  const was = history.peek();
  const entry = await api.saveEdit(take, was.done, name, made.version, over);
  ui.notify(TEXTS.edit.saved(entry.name), "good");
  void library.load();
  if (opened.peek() !== take) return dropDraft(take);
  if (newestHistory() !== was || !(await apply(entry.name, NOTHING_DONE, entry.version))) return;
  dropDraft(take);
  chosen = false;
  if (name !== take) ui.go("edit", entry.name);
}

/** The newest version of the take if it is newer than what is edited and the person did not choose that; else null. */
function newerVersion(): number | null {
  const newest = versions.peek().at(-1) ?? 0;
  return !chosen && newest > (edited.peek()?.version ?? newest) ? newest : null;
}

/** Whether the take was deleted elsewhere while it is edited here. */
const deleted = computed(
  () => library.loaded.value && edited.value !== null && !library.takes.value.some(({ name }) => name === opened.value),
);

/** Other edits of the take that are not saved, made in another tab. */
const elsewhere = computed(() => (opened.value ? otherDraft(opened.value, history.value) : null));

/** Go on with the edits of another tab. */
function takeElsewhere(): void {
  const other = elsewhere.peek();
  if (!other || history.peek().done.length) return;
  void apply(other.take, { done: other.steps, undone: other.undone }, other.version);
}

function askToDropElsewhere(): void {
  const other = elsewhere.peek();
  if (!other) return;
  ui.question.value = {
    title: TEXTS.edit.draft.revertTitle(other.steps.length),
    message: TEXTS.edit.draft.otherWords,
    confirm: TEXTS.edit.draft.revert,
    danger: true,
    then: () => dropDraft(other.take, other.tab),
  };
}

// ---- the robot plays it -----------------------------------------------------------------------

/** What was sent to the robot from here. */
const played = signal<Edited | null>(null);

function play(): void {
  const made = edited.peek();
  if (!made || !opened.peek()) return;
  played.value = made;
  void playback.playTake(opened.peek() as string, history.peek().done, made.version);
}

/** Whether the robot plays what the time line shows. */
const following = computed(() => {
  const made = edited.value;
  const untouched = !history.value.done.length && made?.version === versions.value.at(-1);
  return (
    made !== null &&
    robot.activity.value?.kind === "playing" &&
    robot.activity.value.name === opened.value &&
    (untouched || made === played.value)
  );
});

/** Move the playhead with the robot, also between the messages of the server. */
function follow(): void {
  const doing = robot.activity.peek();
  const made = edited.peek();
  if (!doing?.duration_s || !made) return;
  const since = doing.phase === "playing" ? Math.min(1.5, Math.max(0, now() - robot.statusAt.peek())) : 0;
  moveTo(Math.min(1, doing.fraction + since / doing.duration_s) * made.duration_s);
}

effect(() => {
  if (!following.value || ui.screen.value !== "edit") return undefined;
  stopPreview();
  const timer = setInterval(follow, 50);
  return () => clearInterval(timer);
});

// ---- the ghost ------------------------------------------------------------------------------

const [showGhost, showGuest, showHandles] = [claim(scene.ghost), claim(scene.guest), claim(scene.limbHandles)];

effect(() => {
  const made = proposal.value?.curves ?? edited.value;
  const owner = whose.value;
  const time = playhead.value;
  const live = robot.model.value;
  const shown = ui.screen.value === "edit" && opened.value && made && owner;
  // A take of the same kind of robot is a ghost beside it; another robot is shown in its stead.
  const same = shown && live?.family === owner.family;
  const bent = bending.value ?? {};
  showGhost(same && !following.value ? poseAt(made, time, live, robot.poses.at(now()) ?? live.rest_rad, bent) : null);
  showGuest(shown && !same ? { model: owner, pose: poseAt(made, time, owner, owner.rest_rad, bent) } : null);
});

/** Whether the take has a newer version than the one that is shown, and nothing speaks for this one. */
function stale(): boolean {
  return !history.peek().done.length && newerVersion() !== null;
}

effect(() => {
  const wanted = ui.take.value;
  if (ui.screen.value === "edit" && wanted && (wanted !== opened.peek() || stale())) void openTake(wanted);
});

// ---- the time line ------------------------------------------------------------------------------

function zoom(factor: number, around = playhead.peek()): void {
  const duration = edited.peek()?.duration_s ?? 0;
  const { from, to } = view.peek();
  const middle = around >= from && around <= to ? around : (from + to) / 2;
  view.value = zoomed(view.peek(), duration, factor, middle);
}

function pan(by: number): void {
  view.value = panned(view.peek(), edited.peek()?.duration_s ?? 0, by);
}

function showAll(): void {
  if (edited.peek()) view.value = whole(edited.peek() as Edited);
}

/** Let a moment be seen, for example one that was gone to by a key. */
function reveal(time: number): void {
  view.value = showing(view.peek(), edited.peek()?.duration_s ?? 0, time);
}

/** Whether a part covers a view with enough samples, or with all that the take has. */
function showsEnough({ times_s, whole: complete }: EditCurves, from: number, to: number): boolean {
  if ((times_s[0] ?? 0) > from || (times_s.at(-1) ?? 0) < to) return false;
  return complete || times_s.filter((time) => time >= from && time <= to).length >= LEAST_SAMPLES;
}

effect(() => {
  const made = edited.value;
  const { from, to } = view.value;
  const take = opened.peek();
  const known = detail.peek();
  if (!made || !take || made.whole || (to - from) * LOOKS_CLOSER > made.duration_s) return undefined;
  if (known && showsEnough(known, from, to)) return undefined;
  const mine = asked;
  const timer = setTimeout(async () => {
    const more = (to - from) / 2;
    try {
      const part = { from: Math.max(0, from - more), to: to + more };
      const closer = await api.editCurves(take, history.peek().done, made.version, part);
      if (mine === asked) detail.value = closer;
    } catch (error) {
      ui.report(error);
    }
  }, 120);
  return () => clearTimeout(timer);
});

// ---- keyframes and hands ------------------------------------------------------------------------

/** The keyframes of the joint that is shown. */
const ownKeyframes = computed(() => ofJoint(keyframes.value ?? [], keyJoint.value));

effect(() => {
  const made = edited.value;
  const take = opened.peek();
  const joint = keyJoint.value;
  if (!keyframing.value || !made?.names.includes(joint) || !take || keyframes.value !== null) return;
  const mine = asked;
  const still = (): boolean => mine === asked && joint === keyJoint.peek();
  api.editKeyframes(take, history.peek().done, made.version, joint).then(
    ({ keyframes: found }) => still() && (keyframes.value = found),
    (error) => {
      if (!still()) return;
      ui.report(error);
      keyframing.value = false;
    },
  );
});

/** The limits of a joint of the take; a joint that is not known has wide ones. */
function limitsOf(name: string): { lower_rad: number; upper_rad: number } {
  return whose.value?.joints.find((joint) => joint.name === name) ?? { lower_rad: -Math.PI, upper_rad: Math.PI };
}

/** Show the keyframes of a joint; of none where it has no name. */
function showKeyframes(joint: string): void {
  batch(() => {
    keyframes.value = null;
    keyJoint.value = joint;
    keyframing.value = joint !== "";
  });
}

/** Where a keyframe of the joint can go. */
function dragKeyframe(index: number, time: number, value: number): void {
  const made = edited.peek();
  const own = ownKeyframes.peek();
  if (!made || !own[index] || working.peek()) return;
  stopPreview();
  const { low, high } = room(own, index, made.duration_s);
  const { lower_rad, upper_rad } = limitsOf(keyJoint.peek());
  const at = Math.min(high, Math.max(low, time));
  const angle = Math.min(upper_rad, Math.max(lower_rad, value));
  batch(() => {
    dragged.value = { joint: keyJoint.peek(), bend: bendOf(own, index, at, made.duration_s), value: angle };
    bending.value = { [keyJoint.peek()]: angle };
    moveTo(at);
  });
}

/** A keyframe was let go of: that is a step like all others. */
function dropKeyframe(): void {
  const take = opened.peek();
  const now = dragged.peek();
  if (!take || !now || working.peek()) return;
  const { joint, bend, value } = now;
  const old = ownKeyframes.peek().find(({ time_s }) => time_s === bend.old);
  if (!old || (bend.at === bend.old && Math.abs(value - old.value_rad) < 1e-4)) {
    batch(() => (dragged.value = bending.value = null));
    return;
  }
  const then = movedTo(keyframes.peek() ?? [], old, bend.at, value);
  void apply(take, addEntry(history.peek(), stepOf(joint, bend, value)), undefined, then);
}

/** Take hold of the joint's curve at the moment shown too. */
function addKeyframe(): void {
  const made = edited.peek();
  const joint = keyJoint.peek();
  const column = made?.names.indexOf(joint) ?? -1;
  if (!made || column < 0) return;
  const time_s = playhead.peek();
  const value_rad = rowAt(made.times_s, made.joints_rad, time_s)[column] ?? 0;
  const others = (keyframes.peek() ?? []).filter(
    (each) => each.joint !== joint || Math.abs(each.time_s - time_s) > LEAST_S,
  );
  keyframes.value = [...others, { joint, time_s, value_rad }];
}

/** Set a pose of some joints at the moment shown. */
function setPose(pose: Record<string, number>): void {
  const made = edited.peek();
  const time = playhead.peek();
  if (!made || working.peek()) return;
  const last = made.duration_s;
  const time_s = time < LEAST_S ? 0 : time > last - LEAST_S ? last : Number(time.toFixed(4));
  const { before, after } = widths.peek();
  const rounded = Object.entries(pose).map(([name, angle]) => [name, Number(angle.toFixed(4))]);
  step({ op: "keyframe", time_s, pose: Object.fromEntries(rounded), before_s: before, after_s: after });
}

/** The step that leads the whole motion through a pose of some joints; its ends stay. */
function throughStep(time: number, pose: Record<string, number>): Step {
  const rounded = Object.entries(pose).map(([name, angle]) => [name, Number(angle.toFixed(4))]);
  return { op: "through", time_s: Number(time.toFixed(4)), pose: Object.fromEntries(rounded) };
}

/** Lead the whole motion through a pose of some joints at the moment shown. */
function leadThrough(pose: Record<string, number>): void {
  if (edited.peek() && !working.peek()) step(throughStep(playhead.peek(), pose));
}

// ---- a proposal: the whole motion led through a pose that is dragged ------------------------------

/** Nearer to an end of the take than this, the motion cannot be led elsewhere: its ends stay. */
const FROM_ENDS_S = 0.02;
let asking = false;

/** Propose a pose at the moment shown, together with what was proposed for the same moment before. */
function propose(pose: Record<string, number>): void {
  const time_s = playhead.peek();
  const was = proposal.peek();
  const same = was !== null && Math.abs(was.time_s - time_s) < 1e-3;
  const all = same ? { ...was.pose, ...pose } : pose;
  batch(() => {
    bending.value = all;
    proposal.value = { time_s, pose: all, held: true, curves: was?.curves ?? null, check: null };
  });
  void workOut();
}

/** Ask what comes of the newest proposal; while it is dragged, one question at a time. */
async function workOut(): Promise<void> {
  if (asking) return;
  asking = true;
  let requested: Record<string, number> | null = null;
  try {
    for (let wanted = proposal.peek(); wanted && wanted.pose !== requested; wanted = proposal.peek()) {
      requested = wanted.pose;
      const steps = [...history.peek().done, throughStep(wanted.time_s, wanted.pose)];
      const curves = await api.editCurves(opened.peek() as string, steps, edited.peek()?.version);
      const now = proposal.peek();
      if (now) proposal.value = { ...now, curves };
    }
  } catch (error) {
    dropProposal();
    ui.report(error);
  } finally {
    asking = false;
  }
}

/** Whether the moment shown is an end of the take, where nothing can be led elsewhere. */
function atAnEnd(): boolean {
  const time = playhead.peek();
  return Math.min(time, (edited.peek()?.duration_s ?? 0) - time) < FROM_ENDS_S;
}

/** The hand was let go of: show the motion that comes of it, and check that. */
async function checkProposal(): Promise<void> {
  const take = opened.peek();
  const wanted = proposal.peek();
  if (!take || !wanted) return;
  const { time_s, pose } = wanted;
  proposal.value = { ...wanted, held: false };
  const still = (): boolean => proposal.peek()?.pose === pose;
  const steps = [...history.peek().done, throughStep(time_s, pose)];
  try {
    const check = await api.editCheck(take, steps, edited.peek()?.version);
    const now = proposal.peek();
    if (now && still()) proposal.value = { ...now, check };
  } catch (error) {
    if (still()) ui.report(error);
  }
}

effect(() => {
  // Elsewhere the ghost shows the proposed motion, no more the pose that was dragged.
  const time = playhead.value;
  const now = proposal.peek();
  if (now && Math.abs(time - now.time_s) > 1e-3) bending.value = null;
});

/** Do what is proposed: a step like all others, checked anew. */
function acceptProposal(): void {
  const now = proposal.peek();
  if (now?.curves && !working.peek()) step(throughStep(now.time_s, now.pose));
}

function dropProposal(): void {
  batch(() => (proposal.value = bending.value = null));
}

/** The point that a dragged hand, or the middle of both, passes at the moment shown, and which hand that is. */
let passed: { hand: "left" | "right" | "both"; at_m: Vector } | null = null;

/** Lead the path of a hand through where it was dragged to. */
function movePath(): void {
  if (!passed) return;
  const point = [playhead.peek(), ...passed.at_m].map((value) => Number(value.toFixed(4)));
  step({ op: "move_hand", hand: passed.hand, through: [point] });
}

/** The ends of the limbs that the take moves; those whose path can be dragged are hands. */
const takenEnds = computed(() => {
  const names = edited.value?.names ?? [];
  return (whose.value?.ends ?? [])
    .map((end) => ({ ...end, joints: end.joints.filter((name) => names.includes(name)) }))
    .filter(({ joints }) => joints.length);
});
const hasHands = computed(() => takenEnds.value.some(({ limb }) => handOf(limb)));
const hasBothHands = computed(() => takenEnds.value.filter(({ limb }) => handOf(limb)).length === 2);

effect(() => {
  const made = edited.value;
  const owner = whose.value;
  const can = { keyframe: true, through: true, path: hasHands.value, both: hasBothHands.value };
  const makes = can[dragMakes.value] ? dragMakes.value : "keyframe";
  const isPath = makes === "path" || makes === "both";
  if (ui.screen.value !== "edit" || !made || !owner || following.value) return showHandles(null);
  const ends = takenEnds.value.filter(({ limb }) => !isPath || handOf(limb));
  const live = robot.model.value;
  const same = live?.family === owner.family;
  const shownBy = same ? live : owner;
  const rest = (same ? robot.poses.at(now()) : null) ?? shownBy.rest_rad;
  const line = isPath ? poseLine(made, shownBy, rest) : null;
  if (!ends.length) return showHandles(null);
  return showHandles({
    ends,
    together: makes === "both",
    line: line && { ...line, moment: () => playhead.peek(), onGrab: (time_s) => !working.peek() && seekTo(time_s) },
    onMove: (pose, end, locate) => {
      if (working.peek()) return;
      stopPreview();
      if (makes === "keyframe") bending.value = pose;
      else if (atAnEnd()) return;
      else if (makes === "through") propose(pose);
      else {
        bending.value = pose;
        const at = (instead: JointAngles = {}) => poseAt(made, playhead.peek(), owner, owner.rest_rad, instead);
        const at_m = locate(owner, at(pose));
        const before = ends.map((each) => locate(owner, at(), each));
        const middle_m = movedMiddle(before, ends.indexOf(end), at_m);
        passed = makes === "both" ? { hand: "both", at_m: middle_m } : { hand: handOf(end.limb) ?? "right", at_m };
      }
    },
    onDone: () => {
      const pose = bending.peek();
      if (working.peek()) return;
      if (makes === "keyframe") pose && setPose(pose);
      else if (atAnEnd()) ui.notify(TEXTS.edit.lead.atEnd, "bad");
      else if (makes === "through") void checkProposal();
      else movePath();
    },
  });
});

// ---- marks --------------------------------------------------------------------------------------

function askForMark(): void {
  const time_s = Number(playhead.peek().toFixed(4));
  ui.question.value = {
    title: TEXTS.edit.marks.addTitle(hundredths(time_s)),
    message: "",
    confirm: TEXTS.edit.marks.add,
    field: { label: TEXTS.edit.marks.label, value: "", free: true },
    then: (label) => step({ op: "mark", time_s, label }),
  };
}

function askToRename(mark: Mark): void {
  ui.question.value = {
    title: TEXTS.edit.marks.renameTitle(mark.label),
    message: "",
    confirm: TEXTS.edit.marks.rename,
    field: { label: TEXTS.edit.marks.label, value: mark.label, free: true },
    then: (label) => step({ op: "change_mark", time_s: mark.time_s, label }),
  };
}

function moveMark(mark: Mark, to: number): void {
  if (Math.abs(to - mark.time_s) < 5e-4) return;
  step({ op: "change_mark", time_s: mark.time_s, to_s: Number(to.toFixed(4)) });
}

function removeMark(mark: Mark): void {
  step({ op: "remove_mark", time_s: mark.time_s });
}

// ---- in words -----------------------------------------------------------------------------------

/** A step in words: the edit's title, and what was chosen. */
function describe(made: Step): string {
  const { op, ...given } = made as { op: string } & Record<string, unknown>;
  const edit = edits.value.find(({ name }) => name === op);
  const { step: words } = TEXTS.edit;
  if (made.op === "trim")
    return made.auto ? TEXTS.edit.trimIdle : words.trim(hundredths(made.start_s ?? 0), hundredths(made.end_s ?? 0));
  if (made.op === "keyframe") {
    const joints = Object.entries(made.pose).map(([name, angle]) => `${jointName(name)} ${degrees(angle)}`);
    return words.keyframe(hundredths(made.to_s ?? made.time_s), joints.slice(0, 2).join(", "), joints.length - 2);
  }
  if (made.op === "move_hand" && made.through?.length === 1) {
    const whose = made.hand === "both" ? words.bothHands : TEXTS.edit.ends[`${made.hand}_arm`];
    return words.path(whose, hundredths(made.through[0]?.[0] ?? 0));
  }
  const details = Object.entries(given).map(([name, value]) => {
    const parameter = edit?.parameters.find((each) => each.name === name);
    if (value === true) return parameter?.title.toLowerCase() ?? name;
    if (typeof value === "number" && parameter?.unit === "s") return hundredths(value);
    if (typeof value === "number") return `${value} ${parameter?.unit ?? ""}`.trim();
    if (parameter?.kind === "joints") return (value as string[]).map(limbName).join(", ");
    return `“${Array.isArray(value) ? value.join(", ") : String(value)}”`;
  });
  return [edit?.title ?? op, ...details].join(" · ");
}

/** A limb or a joint, as people call it. */
function limbName(name: string): string {
  return (TEXTS.edit.limbs as Record<string, string>)[name] ?? jointName(name);
}

export const editor = {
  ...timeline,
  undo,
  edited,
  selection,
  opened,
  edits,
  builds,
  view,
  detail,
  keyframing,
  keyJoint,
  keyframes,
  dragged,
  bending,
  dragMakes,
  hasBothHands,
  hasHands,
  proposal,
  widths,
  strange,
  whose,
  versions,
  openTake,
  askToRevert,
  step,
  proposeStep,
  chooseVersion,
  save,
  newerVersion,
  deleted,
  elsewhere,
  takeElsewhere,
  askToDropElsewhere,
  play,
  following,
  zoom,
  pan,
  showAll,
  reveal,
  ownKeyframes,
  limitsOf,
  showKeyframes,
  dragKeyframe,
  dropKeyframe,
  addKeyframe,
  setPose,
  leadThrough,
  acceptProposal,
  dropProposal,
  askForMark,
  askToRename,
  moveMark,
  removeMark,
  describe,
  limbName,
};
