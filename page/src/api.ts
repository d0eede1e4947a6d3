/** Asking the server. Every refusal becomes an `ApiError` with words and a remedy. */

import type { Problem } from "./api-types";
import { TEXTS } from "./texts";
import { remedy, message } from "./wording";
import type {
  Actions,
  Curves,
  EditFacts,
  Edited,
  Finding,
  FormatFacts,
  Found,
  KnownRobots,
  Links,
  Motion,
  RobotModel,
  Status,
  Step,
  Stopped,
  Take,
  Taught,
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

/** Who we are to the server; told by its first message. */
export const identity = { client: "" };

async function problem(response: Response): Promise<ApiError> {
  try {
    const body = (await response.json()) as Partial<Problem>;
    const said = { message: body.message ?? response.statusText, remedy: body.remedy ?? "", texts: body.texts ?? null };
    return new ApiError(body.error ?? String(response.status), message(said), remedy(said));
  } catch {
    if (response.status === 413) return new ApiError("too-large", TEXTS.errors.tooLarge, TEXTS.errors.tooLargeRemedy);
    return new ApiError(String(response.status), response.statusText || TEXTS.errors.network, "");
  }
}

async function ask<Answer>(path: string, how: RequestInit = {}): Promise<Answer> {
  let response: Response;
  try {
    response = await fetch(`/api/${path}`, { ...how, headers: { "X-Rote-Client": identity.client, ...how.headers } });
  } catch {
    throw new ApiError("network", TEXTS.errors.network, TEXTS.errors.networkRemedy);
  }
  if (!response.ok) throw await problem(response);
  return (await response.json()) as Answer;
}

function tell<Answer>(path: string, body: object = {}): Promise<Answer> {
  return ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

const part = encodeURIComponent;

export const api = {
  status: () => ask<Status>("status"),
  /** The robot that is connected, or one of a build. */
  joints: (build?: string) => ask<RobotModel>(build ? `robot/joints?build=${part(build)}` : "robot/joints"),
  shapes: (build: string) => `/api/robot/model?build=${part(build)}`,
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
  /** All joints give way, and a robot that stands sinks: only once a person has said yes. */
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
    speed: number | undefined,
    yes: { force?: boolean; mapped?: boolean },
  ) => tell("play/take", { take, steps, version, ...(speed ? { speed } : {}), ...yes }),
  pause: (paused: boolean) => tell("pause", { paused }),
  stop: () => tell<Stopped>("stop"),
  renameAction: (old: string, name: string) => tell("actions/rename", { old, new: name }),
  deleteAction: (name: string) => tell("actions/delete", { name }),
  takes: () => ask<{ takes: Take[] }>("takes"),
  take: (name: string) => ask<Motion>(`takes/${part(name)}`),
  edits: () => ask<{ edits: EditFacts[] }>("edits"),
  formats: () => ask<{ formats: FormatFacts[] }>("formats"),
  takeFile: (name: string, format: string) => `/api/takes/${part(name)}/file?format=${part(format)}`,
  renameTake: (old: string, name: string) => tell("takes/rename", { old, new: name }),
  deleteTake: (name: string) => tell("takes/delete", { name }),
  tagTake: (name: string, add: string[], remove: string[]) => tell("takes/tag", { name, add, remove }),
  upload: (file: File) => {
    const body = new FormData();
    body.append("file", file, file.name);
    return ask<Take>("takes/upload", { method: "POST", body });
  },
  edit: (take: string, steps: readonly Step[], version: number | undefined) =>
    tell<Edited>("edit", { take, steps, version }),
  saveEdit: (take: string, steps: readonly Step[], name: string, version: number) =>
    tell<Take>("edit/save", { take, steps, name, version }),
};
