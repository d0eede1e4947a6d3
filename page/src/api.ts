/** Asking the server. Every refusal becomes an `ApiError` with words and a remedy. */

import type {
  ControlCues,
  Problem,
  SetOffset,
  ShowChecked,
  ShowLocked,
  ShowOpened,
  ShowSaved,
  StageGo,
} from "./api-types";
import { host } from "./host";
import { moveDraft } from "./state/drafts";
import { TEXTS } from "./texts";
import type { Show } from "./show-document";
import type { Span } from "./state/span";
import { remedy, message } from "./wording";
import type {
  Actions,
  Adapted,
  AdaptLearned,
  Curves,
  EditCheck,
  EditCurves,
  EditFacts,
  Finding,
  FormatFacts,
  Found,
  JointKeyframe,
  KnownRobots,
  LearnedBand,
  Links,
  Motion,
  RobotModel,
  SectionCurves,
  ShowShelf,
  SoundPeaks,
  StageNow,
  Status,
  Step,
  Stopped,
  Stored,
  Take,
  Takes,
  Taught,
  Trashed,
} from "./types";

export class ApiError extends Error {
  constructor(
    readonly kind: string,
    message: string,
    readonly remedy: string,
  ) {
    super(message);
  }
}

/** The identity of this page at the server, from its first message. */
export const identity = { client: "" };

/** The time of the newest beat, by the server's clock: it refuses to begin a motion for a page that is behind. */
export const lastBeat = { time_s: "" };

async function problem(response: Response): Promise<ApiError> {
  try {
    const body = (await response.json()) as Partial<Problem>;
    const item = { message: body.message ?? response.statusText, remedy: body.remedy ?? "", texts: body.texts ?? null };
    return new ApiError(body.error ?? String(response.status), message(item), remedy(item));
  } catch {
    if (response.status === 413) return new ApiError("too-large", TEXTS.errors.tooLarge, TEXTS.errors.tooLargeRemedy);
    return new ApiError(String(response.status), response.statusText || TEXTS.errors.network, "");
  }
}

function ownHeaders(): Record<string, string> {
  return { "X-Rote-Client": identity.client, "X-Rote-Beat": lastBeat.time_s };
}

async function ask<Answer>(path: string, how: RequestInit = {}): Promise<Answer> {
  let response: Response;
  try {
    response = await host.request(path, { ...how, headers: { ...ownHeaders(), ...how.headers } });
  } catch {
    throw new ApiError("network", TEXTS.errors.network, TEXTS.errors.networkRemedy);
  }
  if (!response.ok) throw await problem(response);
  return (await response.json()) as Answer;
}

function tell<Answer>(path: string, body: object = {}, signal: AbortSignal | null = null): Promise<Answer> {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

const part = encodeURIComponent;

export const api = {
  status: () => ask<Status>("status"),
  /** The robot that is connected, or one of a build. */
  joints: (build?: string) => ask<RobotModel>(build ? `robot/joints?build=${part(build)}` : "robot/joints"),
  shapes: (build: string) => host.fileUrl(`robot/model?build=${part(build)}`),
  robots: () => ask<KnownRobots>("robots"),
  preflight: () => ask<{ findings: Finding[] }>("preflight"),
  takeCommand: () => tell("command/take"),
  keepCommand: () => tell("command/keep"),
  giveCommand: (number: number) => tell("command/give", { number }),
  lockCommand: (locked: boolean) => tell("command/lock", { locked }),
  callMe: (name: string) => tell("people/me", { name }),
  links: () => ask<Links>("links"),
  connect: (url: string, key: string, wanted?: "look" | "teach") =>
    tell<Status>("connect", { url, ...(key ? { key } : {}), ...(wanted ? { wanted } : {}) }),
  disconnect: () => tell("disconnect"),
  discover: () => ask<{ robots: Found[] }>("discover?seconds=2"),
  mode: (target: "stand" | "lie") => tell("mode", { target }),
  /** All joints give way, and a robot that stands sinks: only after the operator has confirmed it. */
  damp: () => tell("mode", { target: "damp", yes: true }),
  actions: () => ask<Actions>("actions"),
  teachStart: (name: string, overwrite: boolean) => tell("teach/start", overwrite ? { name, overwrite } : { name }),
  teachFinish: (save: boolean, name: string) => tell<Taught>("teach/finish", save ? { save, name } : { save }),
  teachHand: (script: string, seconds: number) => tell("teach/hand", { script, seconds }),
  teachDrag: (joint: string | null, value_rad: number) =>
    tell("teach/drag", joint ? { joint, value_rad } : { joint: null }),
  teachCurve: (from: number) => ask<Curves>(`teach/curve?from=${from}`),
  play: (name: string, how: { speed?: number; loop?: boolean }) => tell("play", { name, ...how }),
  perform: (preset: number) => tell("perform", { preset }),
  playTake: (
    take: string,
    steps: readonly Step[],
    version: number | undefined,
    how: { speed?: number; loop?: boolean; force?: boolean; mapped?: boolean; imported?: boolean },
  ) => tell("play/take", { take, steps, version, ...how }),
  /** Put a take on the robot, as keyframes. */
  storeTake: (take: string, name: string) => tell<Stored>("takes/store", { take, name }),
  agentPress: (ticket: string, digest: string, secret: string) => tell("agent/press", { ticket, digest, secret }),
  agentHold: (ticket: string) => tell("agent/hold", { ticket }),
  agentLetGo: (ticket: string) => tell("agent/let-go", { ticket }),
  agentRefuse: (ticket: string) => tell("agent/refuse", { ticket }),
  pause: (paused: boolean) => tell("pause", { paused }),
  stop: (late: AbortSignal) => tell<Stopped>("stop", {}, late),
  acknowledge: (id: number) => tell("events/acknowledge", { id }),
  /** A take that could not be written, from the server's memory. */
  unsavedFile: (id: string, format: string) => host.fileUrl(`takes/unsaved/${part(id)}/file?format=${part(format)}`),
  saveUnsaved: (id: string, name: string, folder: string | null) =>
    tell<{ path: string }>("takes/unsaved/save", { id, name, folder }),
  discardUnsaved: (id: string) => tell("takes/unsaved/discard", { id }),
  renameAction: (old: string, name: string) => tell("actions/rename", { old, new: name }),
  deleteAction: (name: string) => tell("actions/delete", { name }),
  /** A page of the takes; empty where it is the one of the tag that is known. */
  takes: (first: number, count: number, known: string) =>
    ask<Takes>(`takes?first=${first}&count=${count}&known=${part(known)}`),
  trash: () => ask<{ trash: Trashed[] }>("takes/trash"),
  restoreTake: (id: string, to?: string) => tell<Take>("takes/restore", to ? { id, to } : { id }),
  purgeTake: (id: string) => tell("takes/purge", { id }),
  take: (name: string) => ask<Motion>(`takes/${part(name)}`),
  edits: () => ask<{ edits: EditFacts[] }>("edits"),
  formats: () => ask<{ formats: FormatFacts[] }>("formats"),
  takeFile: (name: string, format: string) => host.fileUrl(`takes/${part(name)}/file?format=${part(format)}`),
  renameTake: async (old: string, name: string) => {
    await tell("takes/rename", { old, new: name });
    moveDraft(old, name);
  },
  deleteTake: (name: string) => tell("takes/delete", { name }),
  tagTake: (name: string, add: string[], remove: string[]) => tell("takes/tag", { name, add, remove }),
  upload: (file: File, how: { name: string; unit: "rad" | "deg"; replace: boolean }) => {
    const body = new FormData();
    body.append("file", file, file.name);
    body.append("name", how.name);
    body.append("unit", how.unit);
    body.append("replace", String(how.replace));
    return ask<Take>("takes/upload", { method: "POST", body });
  },
  /** What a take would be after some steps, at once; or a part of it with more of its samples. */
  editCurves: (take: string, steps: readonly Step[], version: number | undefined, part: Partial<Span> = {}) =>
    tell<EditCurves>("edit/curves", {
      take,
      steps,
      version,
      ...(part.from === undefined ? {} : { start_s: part.from }),
      ...(part.to === undefined ? {} : { end_s: part.to }),
    }),
  /** What speaks against playing it. That may take long; where it is not wanted any more, the server ends it. */
  editCheck: (take: string, steps: readonly Step[], version: number | undefined, signal?: AbortSignal) =>
    tell<EditCheck>("edit/check", { take, steps, version }, signal),
  editKeyframes: (take: string, steps: readonly Step[], version: number, joint: string) =>
    tell<{ keyframes: JointKeyframe[] }>("edit/keyframes", { take, steps, version, joints: [joint] }),
  saveEdit: (take: string, steps: readonly Step[], name: string, version: number, over: number | null) =>
    tell<Take>("edit/save", { take, steps, name, version, ...(over === null ? {} : { over }) }),
  learn: (takes: readonly string[]) => tell<LearnedBand>("learn", { takes }),
  /** A learned motion, adapted; checking it takes longer. */
  adapt: (how: AdaptLearned, check: boolean) => tell<Adapted>("learn/adapt", { ...how, check }),
  saveAdapted: (how: AdaptLearned, name: string) => tell<Take>("learn/save", { ...how, name, over: 0 }),
  shows: () => ask<ShowShelf>("shows"),
  show: (name: string) => ask<ShowOpened>(`shows/${part(name)}`),
  saveShow: (name: string, show: Show, known: string | null, replace: boolean) =>
    tell<ShowSaved>("shows/save", { name, show, known, replace }),
  saveCast: (name: string, cast: Record<string, string>) => tell("shows/cast", { name, cast }),
  renameShow: (old: string, name: string) => tell("shows/rename", { old, new: name }),
  deleteShow: (name: string) => tell("shows/delete", { name }),
  checkShow: (show: Show, cast: Record<string, string> | null, signal: AbortSignal) =>
    tell<ShowChecked>("shows/check", { show, cast }, signal),
  showCurves: (show: Show, section: string, signal: AbortSignal) =>
    tell<SectionCurves>("shows/curves", { show, section }, signal),
  addSound: (file: File, replace: boolean) => {
    const body = new FormData();
    body.append("file", file, file.name);
    body.append("replace", String(replace));
    return ask("shows/sounds/upload", { method: "POST", body });
  },
  peaks: (sound: string) => ask<SoundPeaks>(`shows/sounds/${part(sound)}/peaks`),
  soundFile: (sound: string) => host.fileUrl(`shows/sounds/${part(sound)}/file`),
  stageGo: (wanted: StageGo) => tell<StageNow>("stage/go", wanted),
  lockShow: (name: string, locked: boolean) => tell<ShowLocked>("shows/lock", { name, locked }),
  sheet: (name: string) => host.fileUrl(`shows/${part(name)}/sheet`),
  stageOffset: (offset: SetOffset) => tell<StageNow>("stage/offset", offset),
  stageCue: (command: ControlCues) => tell<StageNow>("stage/cue", command),
  stageRelease: (stop: string) => tell<StageNow>("stage/release", { stop }),
};
