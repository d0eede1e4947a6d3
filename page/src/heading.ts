/** What the bar says: the worst of this page's robot and of all robots of the stage. */

import type { StageWorst } from "./api-types";
import { motion } from "./format";
import { TEXTS } from "./texts";
import type { Connection, Limbs, StageNow, Status } from "./types";

export interface Heading {
  title: string;
  note: string;
  /** Whether a person must act: it is drawn as an alarm. */
  alarm?: boolean;
}

export interface Facts {
  status: Status | null;
  stage: StageNow | null;
  limbs: Limbs;
  /** The state of the connection to the robot, in words. */
  words: (there: Connection | null) => string;
}

const T = TEXTS.bar;

/** Return what the bar says while the page is live. */
export function headingOf(facts: Facts): Heading {
  const { status, stage } = facts;
  const worst = stage?.worst ?? null;
  const unconfirmed = worst?.state === "stop-unconfirmed" ? worst.robots : [];
  if (status?.unconfirmed_stop || unconfirmed.length)
    return {
      title: T.unconfirmed,
      note: unconfirmed.length ? T.useRemoteOf(unconfirmed.join(", ")) : T.useRemote,
      alarm: true,
    };
  const trouble = worst && (worst.state === "fault" || worst.state === "lost") ? stageNote(worst) : "";
  const run = stage?.run;
  if (run) {
    const title = TEXTS.show.title(run.show);
    return trouble
      ? { title, note: trouble, alarm: true }
      : { title, note: TEXTS.show.barNote[run.state](run.section) };
  }
  const own = ownHeading(facts);
  if (trouble) {
    if (own.rests) return { title: T.stageTrouble, note: trouble, alarm: true };
    return { title: own.title, note: own.note ? `${own.note} · ${trouble}` : trouble, alarm: true };
  }
  if (own.rests && worst && (worst.state === "moving" || worst.state === "stopped"))
    return { title: T.stage, note: stageNote(worst) };
  return own;
}

function stageNote({ state, robots }: StageWorst): string {
  return T.worst[state](robots.join(", "));
}

/** What this page's own robot does; `rests` if there is nothing to say of it. */
function ownHeading({ status, limbs, words }: Facts): Heading & { rests?: boolean } {
  const doing = status?.activity;
  const soft = status?.soft;
  if (soft && soft.by !== "teaching" && soft.by !== "damping")
    return {
      title: soft.by === "unknown" ? TEXTS.soft.maybe[limbs] : TEXTS.soft.title[limbs],
      note: T.soft,
      alarm: true,
    };
  if (status?.connection.state !== "connected")
    return { title: words(status?.connection ?? null), note: "", rests: status?.connection.state === "off" };
  if (status.return_in_s !== null && (!doing || doing.kind === "idle" || doing.kind === "teaching"))
    return { title: TEXTS.hold.title[limbs], note: TEXTS.hold.short };
  if (!doing || doing.kind === "idle") {
    if (soft) return { title: TEXTS.soft.damping, note: T.damping };
    return { title: T.idle, note: status.holding ? T.holding : T.idleNote, rests: !status.holding };
  }
  if (doing.kind === "teaching")
    return { title: doing.name || T.teaching, note: status.paused ? TEXTS.teach.paused : T.teaching };
  const phase = doing.phase === "none" ? (doing.kind === "performing" ? T.performing : T.playing) : T[doing.phase];
  // A motion begun elsewhere, and the way back after a teaching, have no name.
  if (!doing.name) return { title: phase, note: "" };
  const title = doing.kind === "performing" ? motion(doing.name) : doing.name;
  return { title, note: doing.round > 1 ? `${phase}, ${T.round(doing.round)}` : phase };
}
