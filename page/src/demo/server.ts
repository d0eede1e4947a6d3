/** Answers the page's requests in the page itself: a robot, the sample motions, and the edits that a browser can do. */

import type { Problem, StageNow } from "../api-types";
import type { Host, LiveSocket } from "../host";
import type { EditCheck, EditCurves, EventNow, Finding, Message, Status, Step, Stopped, Take, Trashed } from "../types";
import type { DemoData, Sample } from "./data";
import { applySteps, type DemoTrack, durationOf, EditError, jerkOf, NeedsRoteError, peakSpeedOf } from "./edits";
import { DemoRobot } from "./robot";
import { DEMO_TEXTS as T } from "./texts";

const STATE_MS = 50;
/** The page takes a server for silent after a second. */
const BEAT_MS = 400;
const ME = { number: 1, name: null, role: "command" } as const;
const NO_STAGE: StageNow = {
  there: false,
  is_superseded: false,
  name: "",
  robots: [],
  run: null,
  stop: null,
  last: null,
  worst: null,
};
/** The ops that `applySteps` can do at least in part; the tools of all others say what they need. */
const IN_BROWSER = [
  "trim",
  "speed",
  "reverse",
  "mirror",
  "keep",
  "drop",
  "keyframe",
  "mark",
  "change_mark",
  "remove_mark",
];

type Body = Record<string, unknown>;
type Answer = (body: Body, query: URLSearchParams) => unknown;

/** A request that is refused, with the kind by which the page knows it. */
class RefusedError extends Error {
  constructor(
    readonly kind: string,
    message: string,
    readonly remedy = "",
  ) {
    super(message);
  }
}

interface Version {
  track: DemoTrack;
  /** The check by rote itself; null for a motion that was made here. */
  check: EditCheck | null;
  thumbnail: string;
}

interface StoredTake {
  name: string;
  tags: string[];
  versions: Version[];
  robot: Sample["robot"];
}

function finding(severity: Finding["severity"], kind: string, message: string, remedy = ""): Finding {
  const facts = { joint: null, time_s: null, value: null, limit: null, margin: null, unit: "", acts: [] };
  const texts = { message: { template: message, facts: {} }, remedy: { template: remedy, facts: {} } };
  return { severity, kind, message, remedy, ...facts, texts };
}

const now_s = (): number => performance.now() / 1000;

export class DemoServer {
  private readonly robot: DemoRobot;
  private takes: StoredTake[];
  private trash: { id: string; deleted_s: number; take: StoredTake }[] = [];
  private events: EventNow[] = [];
  private changes = 1;
  private stops = 0;
  private socket: DemoSocket | null = null;
  private ticking: ReturnType<typeof setInterval> | null = null;

  constructor(private readonly data: DemoData) {
    this.robot = new DemoRobot(data.model.joints, data.model.rest_rad);
    this.takes = data.samples.map(({ entry, track, check, robot }) => ({
      name: entry.name,
      tags: [...entry.tags],
      versions: [{ track, check, thumbnail: entry.thumbnail }],
      robot,
    }));
    setInterval(() => {
      this.send({ type: "beat", time_s: now_s() });
      this.sendStatus();
      this.sendPose();
    }, BEAT_MS);
  }

  /** Answer a request, as the server's API does. */
  request(path: string, how: RequestInit): Response {
    const [route = "", query = ""] = path.split("?");
    const body = (typeof how.body === "string" ? JSON.parse(how.body) : {}) as Body;
    try {
      const answer = this.answers[`${how.method ?? "GET"} ${route}`];
      if (!answer) throw new NeedsRoteError(route);
      return Response.json(answer(body, new URLSearchParams(query)) ?? { done: true });
    } catch (error) {
      return Response.json(problemOf(error), { status: 409 });
    }
  }

  /** Return a take as a CSV file, in an address that contains it; empty for one that was renamed or deleted. */
  csvUrl(name: string): string {
    const take = this.takes.find((each) => each.name === name);
    if (!take) return "";
    const { track } = newestOf(take);
    const rows = track.joints_rad.map((row, index) => [Number((track.times_s[index] as number).toFixed(6)), ...row]);
    const text = [["t", ...track.names], ...rows].map((row) => `${row.join(",")}\n`).join("");
    return `data:text/csv;charset=utf-8,${encodeURIComponent(text)}`;
  }

  /** Send the page what it needs at its start. */
  join(socket: DemoSocket): void {
    this.socket = socket;
    const client = "demo";
    this.send({ type: "hello", client, ...ME, version: this.data.version });
    this.send({ type: "people", people: [ME] });
    this.send({ type: "events", events: this.events });
    this.send({ type: "stage", ...NO_STAGE });
    this.sendStatus();
    this.sendPose();
  }

  /** Stop the robot, and answer on the socket. */
  answerStop(): void {
    this.send({ type: "stopped", ...this.stop() });
  }

  private send(message: Message): void {
    this.socket?.receive(JSON.stringify(message));
  }

  private sendStatus(): void {
    this.send({ type: "status", ...this.status() });
  }

  private sendPose(): void {
    const common = { type: "state", time_s: now_s(), mode: 0, soft: false } as const;
    this.send({ ...common, joints_rad: this.robot.pose, phase: this.robot.activity(now_s()).phase });
  }

  // ---- the robot --------------------------------------------------------------------------------

  private status(): Status {
    const nothing = { message: { template: "", facts: {} }, remedy: { template: "", facts: {} } };
    const { build, family, title } = this.data.model;
    return {
      connection: {
        state: "connected",
        url: null,
        wire: null,
        simulated: true,
        stage: null,
        message: "",
        remedy: "",
        texts: nothing,
      },
      mode: null,
      build,
      family,
      title,
      battery_percent: null,
      temperatures_c: [],
      faults: [],
      findings: [finding("note", "demo", T.drawn)],
      abilities: ["stream", "stop", "states"],
      elsewhere: [],
      activity: this.robot.activity(now_s()),
      commander: { you: true, number: ME.number, name: null, locked: false, next: null },
      holding: false,
      stops: this.stops,
      paused: false,
      return_in_s: null,
      return_s: null,
      proposal: null,
      unconfirmed_stop: null,
      soft: null,
      actions_changes: 0,
      takes_changes: this.changes,
      storage_problem: null,
      unsaved: [],
    };
  }

  private play(body: Body): void {
    const {
      take: name,
      steps = [],
      version,
      speed,
      loop,
      force,
    } = body as unknown as {
      take: string;
      steps?: Step[];
      version?: number;
      speed?: number;
      loop?: boolean;
      force?: boolean;
    };
    const { name: played, kind } = this.robot.activity(now_s());
    if (kind !== "idle") throw new RefusedError("busy", T.busy(played));
    const take = this.takeNamed(name);
    const found = versionOf(take, version);
    const warning = steps.length ? null : found.check?.findings.find(({ severity }) => severity === "warning");
    if (warning && !force) throw new RefusedError("warned-motion", warning.message, warning.remedy);
    const track = this.edit(take, found, steps);
    this.robot.play({ name, track, speed: speed ?? 1, loop: loop ?? false }, now_s());
    this.ticking ??= setInterval(() => this.tick(), STATE_MS);
    this.sendStatus();
  }

  private tick(): void {
    const phase = this.robot.activity(now_s()).phase;
    const moves = this.robot.advance(now_s());
    this.sendPose();
    if (this.robot.activity(now_s()).phase !== phase) this.sendStatus();
    if (!moves) this.endTicking();
  }

  private endTicking(): void {
    if (this.ticking !== null) clearInterval(this.ticking);
    this.ticking = null;
    this.sendStatus();
  }

  private stop(): Stopped {
    this.stops += 1;
    this.robot.advance(now_s());
    const moved = this.robot.stop();
    this.endTicking();
    const message = moved ? T.stopped : T.nothing;
    const text = { template: message, facts: {} };
    const common = { kind: "stop", safety: false, acknowledged: false } as const;
    const event: EventNow = { id: this.stops, time_s: Date.now() / 1000, ...common, message, text };
    this.events = [...this.events, event];
    this.send({ type: "event", event });
    return { stopped: moved ? "playing" : "nothing", message, confirmed: true };
  }

  // ---- the library ------------------------------------------------------------------------------

  private takeNamed(name: string): StoredTake {
    // Edits of a deleted take can still be saved.
    const found =
      this.takes.find((take) => take.name === name) ?? this.trash.find(({ take }) => take.name === name)?.take;
    if (!found) throw new RefusedError("no-such-take", T.noTake(name));
    return found;
  }

  private entry(take: StoredTake): Take {
    const { track, thumbnail } = newestOf(take);
    return {
      name: take.name,
      duration_s: rounded(durationOf(track)),
      samples: track.times_s.length,
      version: take.versions.length,
      versions: take.versions.map((_, index) => index + 1),
      tags: take.tags,
      variant: take.robot.build ?? "",
      family: take.robot.family,
      title: take.robot.title,
      source: track.source,
      problem: "",
      thumbnail,
    };
  }

  private changed(): void {
    this.changes += 1;
    this.takes.sort((a, b) => a.name.localeCompare(b.name));
    this.sendStatus();
  }

  private requireFree(name: string): void {
    if (this.takes.some((take) => take.name === name))
      throw new RefusedError("name-taken", T.taken(name), T.takenRemedy);
  }

  private rename(old: string, name: string): Take {
    const take = this.takeNamed(old);
    if (old !== name) this.requireFree(name);
    take.name = name;
    this.changed();
    return this.entry(take);
  }

  private delete(name: string): void {
    const take = this.takeNamed(name);
    this.takes = this.takes.filter((each) => each !== take);
    this.trash.unshift({ id: `${name} ${this.changes}`, deleted_s: Date.now() / 1000, take });
    this.changed();
  }

  private restore(id: string, to: string | undefined): Take | null {
    const found = this.trash.find((each) => each.id === id);
    if (!found) return null;
    this.requireFree(to ?? found.take.name);
    found.take.name = to ?? found.take.name;
    this.takes.push(found.take);
    this.purge(id);
    this.changed();
    return this.entry(found.take);
  }

  private purge(id: string): void {
    this.trash = this.trash.filter((each) => each.id !== id);
  }

  private trashed(): Trashed[] {
    return this.trash.map(({ id, deleted_s, take }) => ({
      id,
      name: take.name,
      deleted_s,
      versions: take.versions.length,
      duration_s: durationOf(newestOf(take).track),
    }));
  }

  // ---- the editor -------------------------------------------------------------------------------

  private edit(take: StoredTake, { track }: Version, steps: readonly Step[]): DemoTrack {
    return applySteps(track, steps, {
      joints: this.data.model.joints,
      limbs: take.robot.limbs,
    });
  }

  private editedOf(body: Body): { take: StoredTake; found: Version; steps: Step[]; track: DemoTrack } {
    const { take: name, steps = [], version } = body as unknown as { take: string; steps?: Step[]; version?: number };
    const take = this.takeNamed(name);
    const found = versionOf(take, version);
    return { take, found, steps, track: this.edit(take, found, steps) };
  }

  private curves(body: Body): EditCurves {
    const { take, found, track } = this.editedOf(body);
    const limbs = Object.entries(take.robot.limbs)
      .map(([limb, names]) => [limb, names.filter((name) => track.names.includes(name))] as const)
      .filter(([, names]) => names.length);
    return {
      ...track,
      ...take.robot,
      version: take.versions.indexOf(found) + 1,
      limbs: Object.fromEntries(limbs),
      whole: true,
      duration_s: rounded(durationOf(track)),
      jerk: jerkOf(track),
      peak_rad_s: peakSpeedOf(track),
    };
  }

  private check(body: Body): EditCheck {
    const { take, found, steps } = this.editedOf(body);
    const version = take.versions.indexOf(found) + 1;
    if (!steps.length && found.check) return { ...found.check, version };
    return { version, ok: true, findings: [finding("warning", "unchecked", T.unchecked, T.remedy)] };
  }

  private save(body: Body): Take {
    const { name, over } = body as unknown as { name: string; over?: number };
    const { take, track } = this.editedOf(body);
    const made = { track, check: null, thumbnail: "" };
    const old = this.takes.find((each) => each.name === name);
    if (old && over === 0) this.requireFree(name);
    const kept = old ?? { ...take, name, tags: [...take.tags], versions: [] };
    kept.versions.push(made);
    if (!old) this.takes.push(kept);
    this.changed();
    return this.entry(kept);
  }

  // ---- the API ----------------------------------------------------------------------------------

  private readonly answers: Record<string, Answer> = {
    "GET status": () => this.status(),
    "GET preflight": () => ({ findings: this.status().findings }),
    "GET robot/joints": (_, query) => {
      const build = query.get("build");
      if (build && build !== this.data.model.build) throw new NeedsRoteError(build);
      return this.data.model;
    },
    "GET robots": () => this.data.robots,
    "GET formats": () => ({ formats: this.data.formats.filter(({ name }) => name === "csv") }),
    "GET edits": () => ({
      edits: this.data.edits.map((edit) =>
        IN_BROWSER.includes(edit.name) ? edit : { ...edit, summary: `${edit.summary} ${T.toolNeedsRote}` },
      ),
    }),
    "GET takes": (_, query) => {
      const tag = String(this.changes);
      const same = query.get("known") === tag;
      return { takes: same ? [] : this.takes.map((take) => this.entry(take)), total: this.takes.length, tag, same };
    },
    "GET takes/trash": () => ({ trash: this.trashed() }),
    "GET shows": () => ({ shows: [], casts: {}, sounds: [], folder: "" }),
    "POST play/take": (body) => this.play(body),
    "POST stop": () => this.stop(),
    "POST takes/rename": ({ old, new: name }) => this.rename(String(old), String(name)),
    "POST takes/delete": ({ name }) => this.delete(String(name)),
    "POST takes/restore": ({ id, to }) => this.restore(String(id), to as string | undefined),
    "POST takes/purge": ({ id }) => this.purge(String(id)),
    "POST takes/tag": ({ name, add, remove }) => {
      const take = this.takeNamed(String(name));
      const kept = take.tags.filter((tag) => !(remove as string[]).includes(tag));
      take.tags = [...new Set([...kept, ...(add as string[])])];
      this.changed();
      return this.entry(take);
    },
    "POST edit/curves": (body) => this.curves(body),
    "POST edit/check": (body) => this.check(body),
    "POST edit/save": (body) => this.save(body),
  };
}

function newestOf(take: StoredTake): Version {
  return take.versions.at(-1) as Version;
}

function versionOf(take: StoredTake, version: number | null | undefined): Version {
  return take.versions[(version ?? 0) - 1] ?? newestOf(take);
}

function rounded(value: number): number {
  return Number(value.toFixed(4));
}

function problemOf(error: unknown): Problem {
  if (error instanceof NeedsRoteError) return { error: "needs-rote", message: T.needsRote, remedy: T.remedy };
  if (error instanceof RefusedError) return { error: error.kind, message: error.message, remedy: error.remedy };
  if (error instanceof EditError) return { error: "bad-request", message: error.message, remedy: error.remedy };
  return { error: "internal", message: String(error), remedy: "" };
}

/** The page's side of the socket; messages arrive as from a network, after the present work is done. */
export class DemoSocket implements LiveSocket {
  readyState: LiveSocket["readyState"] = WebSocket.CONNECTING;
  onmessage: LiveSocket["onmessage"] = null;
  onclose: LiveSocket["onclose"] = null;
  private server: DemoServer | null = null;

  /** Connect it to a server. */
  open(server: DemoServer): void {
    this.server = server;
    this.readyState = WebSocket.OPEN;
    server.join(this);
  }

  receive(data: string): void {
    queueMicrotask(() => this.onmessage?.call(this as unknown as WebSocket, new MessageEvent("message", { data })));
  }

  send(text: string): void {
    const { type } = JSON.parse(text) as { type: string };
    if (type === "stop") this.server?.answerStop();
  }

  close(): void {
    this.readyState = WebSocket.CLOSED;
  }
}

/** Return what the page reaches in place of a server, once the samples are read. */
export function demoHost(loaded: Promise<DemoData>): Omit<Host, "storage" | "texts"> {
  let server: DemoServer | null = null;
  const started = loaded.then((data) => (server = new DemoServer(data)));
  const serve = started.catch(() => null);
  return {
    request: async (path, how) => (await started).request(path, how),
    fileUrl: (path) => {
      if (path.startsWith("robot/model")) return "./g1.glb";
      const name = /^takes\/([^/]+)\/file/.exec(path)?.[1];
      return name && server ? server.csvUrl(decodeURIComponent(name)) : "";
    },
    openSocket: () => {
      const socket = new DemoSocket();
      void serve.then((found) => found && socket.open(found));
      return socket;
    },
  };
}
