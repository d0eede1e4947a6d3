/** The show that is being edited: its document, its file, its check, and its preview. */

import { computed, effect, signal } from "@preact/signals";
import { ApiError, api } from "../api";
import { sentence } from "../format";
import {
  addedClip,
  type Clip,
  clipsOf,
  type CueKind,
  cuesOf,
  filled,
  laneEnd,
  type Lengths,
  movedClip,
  newCue,
  newShow,
  renamedRole,
  rolePose,
  type Section,
  sectionLength,
  sectionsOf,
  type Show,
  type ShowCue,
  type ShowFinding,
  trimmedFrom,
  trimmedTo,
  withClip,
  withCue,
  without,
  withoutRole,
  withSection,
} from "../show";
import {
  attempt,
  company,
  companyPoses,
  mayCommand,
  modelOf,
  now,
  question,
  report,
  say,
  screen,
  stageAt,
  stageNow,
  takes,
} from "../store";
import { TAB } from "../drafts";
import { recall, remember, type Shelf } from "../storage";
import { TEXTS } from "../texts";
import type { RobotModel, SectionCurves, ShowShelf, SoundPeaks } from "../types";

const T = TEXTS.show;
const CHECK_MS = 350;
const MAX_PAST = 100;
const LEAST_SPAN_S = 8;
const DRAFT_KEY = "show.draft";
const LAST_KEY = "show.name";

// ---- what is edited -----------------------------------------------------------------------------

/** The file it is kept in; no name before it was saved first. */
interface ShowFile {
  name: string | null;
  tag: string | null;
  path: string;
}

export const shelf = signal<ShowShelf | null>(null);
export const draft = signal<Show | null>(null);
export const file = signal<ShowFile>({ name: null, tag: null, path: "" });
/** The document as the file has it. */
const kept = signal<Show | null>(null);
export const unsaved = computed(() => draft.value !== null && draft.value !== kept.value);
const past = signal<readonly Show[]>([]);
const future = signal<readonly Show[]>([]);
export const canUndo = computed(() => past.value.length > 0);
export const canRedo = computed(() => future.value.length > 0);
export const sectionIndex = signal(0);
export const picked = signal<{ kind: "clip" | "cue"; index: number } | null>(null);
/** The role that gets what is added by a button. */
const chosenLane = signal("");
export const cast = signal<Record<string, string>>({});
export const working = signal(false);

export const roles = computed(() => Object.keys(draft.value?.roles ?? {}));
export const lane = computed(() =>
  roles.value.includes(chosenLane.value) ? chosenLane.value : (roles.value[0] ?? ""),
);
export const sections = computed(() => (draft.value ? sectionsOf(draft.value) : []));
export const section = computed<Section | null>(() => sections.value[sectionIndex.value] ?? sections.value[0] ?? null);
export const lengths = computed<Lengths>(() => new Map(takes.value.map(({ name, duration_s }) => [name, duration_s])));
export const soundLengths = computed<Lengths>(
  () => new Map((shelf.value?.sounds ?? []).map(({ name, duration_s }) => [name, duration_s ?? 1])),
);
/** How many seconds the lanes show. */
export const span = computed(() => {
  const length = section.value ? sectionLength(section.value, lengths.value, soundLengths.value) : 0;
  return Math.max(LEAST_SPAN_S, Math.ceil(length * 1.15 + 1));
});

export function chooseLane(role: string): void {
  chosenLane.value = role;
}

// ---- the file -----------------------------------------------------------------------------------

export async function loadShelf(): Promise<void> {
  await attempt(async () => {
    shelf.value = await api.shows();
  });
}

/** Counts the shows that were opened: an answer that comes later belongs to the one it was asked for. */
let sitting = 0;

function begin(show: Show, where: ShowFile, saved: Show | null): void {
  sitting += 1;
  stopPreview();
  draft.value = show;
  file.value = where;
  kept.value = saved;
  past.value = [];
  future.value = [];
  sectionIndex.value = 0;
  picked.value = null;
  playhead.value = 0;
  remember("localStorage", LAST_KEY, where.name ?? "");
  const named = where.name ? shelf.peek()?.casts[where.name] : undefined;
  cast.value = named ?? guessedCast(show, cast.peek());
}

/** Keep who plays what of the former cast, and give the other roles the robots that are left. */
function guessedCast(show: Show, old: Record<string, string>): Record<string, string> {
  const names = Object.keys(show.roles);
  const made: Record<string, string> = Object.fromEntries(
    names.filter((role) => old[role]).map((role) => [role, old[role] as string]),
  );
  const free = (stageNow.peek()?.robots ?? [])
    .map(({ name }) => name)
    .filter((name) => !Object.values(made).includes(name));
  for (const role of names) {
    const next = made[role] ? undefined : free.shift();
    if (next) made[role] = next;
  }
  return made;
}

export function open(name: string): Promise<boolean> {
  sitting += 1;
  const mine = sitting;
  const was = draft.peek();
  return attempt(async () => {
    const told = await api.show(name);
    // Another one was opened since, or this one was edited: that must not be lost.
    if (mine !== sitting || draft.peek() !== was) return;
    begin(told.show, { name, tag: told.tag, path: told.path }, told.show);
  });
}

/** Do something that leaves this show; where it is not saved, the person decides. */
export function leaving(then: () => void): void {
  if (!unsaved.peek()) {
    then();
    return;
  }
  question.value = { title: T.leaveTitle, message: T.leaveWords, confirm: T.leaveConfirm, danger: true, then };
}

export function makeNew(): void {
  const robots = (stageNow.peek()?.robots ?? []).length;
  const names = Array.from({ length: Math.max(2, robots) }, (_, index) => T.roleName(index + 1));
  begin(newShow("", names, T.sectionName(1)), { name: null, tag: null, path: "" }, null);
}

let saving: Promise<unknown> = Promise.resolve();

/** Save the show to its file, one save after another. If the file was changed elsewhere, the person decides. */
export function saveTo(name: string, replace = false): Promise<void> {
  const show = draft.peek();
  if (!show) return Promise.resolve();
  const mine = sitting;
  const { name: fileName, tag } = file.peek();
  const next = saving.then(() => {
    // A save before this one has given the file another tag, unless another show was opened since.
    const known = mine === sitting ? file.peek().tag : tag;
    return saveNow(mine, name, show, name === fileName ? known : null, replace);
  });
  saving = next.catch(() => undefined);
  return next;
}

async function saveNow(mine: number, name: string, show: Show, known: string | null, replace: boolean): Promise<void> {
  const roles = cast.peek();
  try {
    const told = await api.saveShow(name, show, known, replace);
    // Another show may have been opened meanwhile: this file is not its file.
    if (mine === sitting) {
      file.value = { name, tag: told.tag, path: told.path };
      kept.value = show;
      remember("localStorage", LAST_KEY, name);
    }
    if (Object.keys(roles).length) await api.saveCast(name, roles);
    await loadShelf();
    say(T.saved(told.path), "good");
  } catch (error) {
    if (!(error instanceof ApiError) || !["show-exists", "changed-show", "show-deleted"].includes(error.kind))
      throw error;
    if (mine !== sitting) throw error;
    question.value = {
      title: T.replaceTitle(name),
      message: `${sentence(error.message)} ${sentence(error.remedy)}`,
      confirm: error.kind === "show-deleted" ? T.writeAgain : T.replaceConfirm,
      danger: true,
      then: () => attempt(() => saveTo(name, true)),
    };
  }
}

export function askToSave(as = false): void {
  const name = file.peek().name;
  if (name && !as) {
    void attempt(() => saveTo(name));
    return;
  }
  question.value = {
    title: T.saveTitle,
    message: "",
    confirm: T.save,
    field: { label: T.name, value: name ?? draft.peek()?.title ?? "" },
    then: (text) => saveTo(text),
  };
}

export function askToRename(): void {
  const old = file.peek().name;
  if (!old) return;
  question.value = {
    title: T.renameTitle,
    message: "",
    confirm: T.rename,
    field: { label: T.name, value: old },
    then: async (name) => {
      if (name === old) return;
      const mine = sitting;
      await api.renameShow(old, name);
      await loadShelf();
      if (mine !== sitting) return;
      const path = file.peek().path.replace(/[^/\\]*$/, `${name}.json`);
      file.value = { ...file.peek(), name, path };
      remember("localStorage", LAST_KEY, name);
    },
  };
}

export function askToDelete(): void {
  const name = file.peek().name;
  if (!name) return;
  question.value = {
    title: T.deleteTitle(name),
    message: T.deleteWords,
    confirm: T.delete,
    danger: true,
    then: () =>
      attempt(async () => {
        const mine = sitting;
        await api.deleteShow(name);
        if (mine === sitting) {
          sitting += 1;
          remember("localStorage", LAST_KEY, "");
          draft.value = kept.value = null;
          file.value = { name: null, tag: null, path: "" };
          forgetDraft();
        }
        await loadShelf();
      }),
  };
}

/** What is not saved outlives a reload in its own tab, and the newest of all tabs outlives them. */
effect(() => {
  if (draft.value === null) return;
  if (!unsaved.value) return forgetDraft();
  const text = JSON.stringify({ show: draft.value, file: file.value, cast: cast.value, tab: TAB });
  remember("sessionStorage", DRAFT_KEY, text);
  remember("localStorage", DRAFT_KEY, text);
});

interface LeftDraft {
  show: Show;
  file: ShowFile;
  cast: Record<string, string>;
  tab?: string;
}

function leftDraft(shelfName: Shelf): LeftDraft | null {
  try {
    const left = JSON.parse(recall(shelfName, DRAFT_KEY) || "null") as LeftDraft | null;
    return left?.show?.rote_show === 1 ? left : null;
  } catch {
    return null; // what an older page has kept, or half of it, is no show
  }
}

/** Nothing of this tab is unsaved any more; what another tab keeps stays. */
function forgetDraft(): void {
  remember("sessionStorage", DRAFT_KEY, "");
  if ((leftDraft("localStorage")?.tab ?? TAB) === TAB) remember("localStorage", DRAFT_KEY, "");
}

let began = false;

/** Open what was open last, once. */
export async function start(): Promise<void> {
  await loadShelf();
  if (began || draft.peek()) return;
  began = true;
  const left = leftDraft("sessionStorage") ?? leftDraft("localStorage");
  if (left) {
    begin(left.show, left.file, null);
    cast.value = left.cast;
    return;
  }
  const names = (shelf.peek()?.shows ?? []).filter(({ problem }) => !problem).map(({ name }) => name);
  const last = recall("localStorage", LAST_KEY);
  const first = names.find((name) => name === last) ?? names[0];
  if (first) await open(first);
}

// ---- edits --------------------------------------------------------------------------------------

/** Replace the document; while something is dragged, all of it is one step back. */
export function change(to: (show: Show) => Show, together = false): void {
  const show = draft.peek();
  if (!show) return;
  const made = to(show);
  if (!together) {
    past.value = [...past.peek().slice(1 - MAX_PAST), show];
    future.value = [];
  }
  draft.value = made;
}

/** Note where a drag begins, so that one step goes back to it. */
export function holdHistory(): void {
  const show = draft.peek();
  if (show && past.peek().at(-1) !== show) {
    past.value = [...past.peek().slice(1 - MAX_PAST), show];
    future.value = [];
  }
}

export function undo(): void {
  const [show, before] = [draft.peek(), past.peek().at(-1)];
  if (!show || !before) return;
  past.value = past.peek().slice(0, -1);
  future.value = [show, ...future.peek()];
  draft.value = before;
  picked.value = null;
}

export function redo(): void {
  const [show, next] = [draft.peek(), future.peek()[0]];
  if (!show || !next) return;
  future.value = future.peek().slice(1);
  past.value = [...past.peek(), show];
  draft.value = next;
  picked.value = null;
}

export function changeSection(to: (section: Section) => Section, together = false): void {
  const index = Math.min(sectionIndex.peek(), sections.peek().length - 1);
  change((show) => withSection(show, index, to), together);
}

export function addClip(take: string, role: string, at_s?: number): void {
  const here = section.peek();
  if (!here) return;
  chooseLane(role);
  const at = at_s ?? laneEnd(here, role, lengths.peek());
  picked.value = { kind: "clip", index: clipsOf(here).length };
  changeSection((each) => addedClip(each, { role, take, at_s: Math.max(0, at) }));
}

export function addAction(action: string, role: string): void {
  const here = section.peek();
  if (!here) return;
  picked.value = { kind: "clip", index: clipsOf(here).length };
  changeSection((each) => addedClip(each, { role, action, at_s: laneEnd(here, role, lengths.peek()) }));
}

export function changeClip(index: number, by: Partial<Clip>, together = false): void {
  changeSection((each) => withClip(each, index, by), together);
}

export function moveClip(index: number, at_s: number, role?: string, together = false): void {
  const clip = section.peek() ? clipsOf(section.peek() as Section)[index] : undefined;
  if (clip) changeClip(index, movedClip(clip, at_s, role), together);
}

export function trimClip(index: number, edge: "from" | "to", moment_s: number, together = false): void {
  const clip = section.peek() ? clipsOf(section.peek() as Section)[index] : undefined;
  if (!clip) return;
  changeClip(index, (edge === "from" ? trimmedFrom : trimmedTo)(clip, moment_s, lengths.peek()), together);
}

export function removePicked(): void {
  const what = picked.peek();
  if (!what) return;
  picked.value = null;
  changeSection((each) =>
    what.kind === "clip"
      ? { ...each, clips: without(clipsOf(each), what.index) }
      : { ...each, cues: without(cuesOf(each), what.index) },
  );
}

export function addCue(kind: CueKind): void {
  const here = section.peek();
  const sound = shelf.peek()?.sounds[0]?.name ?? "";
  if (!here) return;
  if (kind === "sound" && !sound) {
    say(T.noSounds, "bad");
    return;
  }
  picked.value = { kind: "cue", index: cuesOf(here).length };
  changeSection((each) => ({ ...each, cues: [...cuesOf(each), newCue(kind, playhead.peek(), lane.peek(), sound)] }));
}

export function changeCue(index: number, by: Partial<ShowCue>, together = false): void {
  changeSection((each) => withCue(each, index, by), together);
}

export function addSection(): void {
  const names = sections.peek().map(({ name }) => name);
  let number = names.length + 1;
  while (names.includes(T.sectionName(number))) number += 1;
  change((show) => ({
    ...show,
    sections: [...sectionsOf(show), { name: T.sectionName(number), start: { on: "go" }, clips: [], cues: [] }],
  }));
  sectionIndex.value = sections.peek().length - 1;
  picked.value = null;
}

export function removeSection(): void {
  const index = sectionIndex.peek();
  change((show) => ({ ...show, sections: without(sectionsOf(show), index) }));
  sectionIndex.value = Math.max(0, index - 1);
  picked.value = null;
}

export function moveSection(by: number): void {
  const [index, to] = [sectionIndex.peek(), sectionIndex.peek() + by];
  change((show) => {
    const rest = without(sectionsOf(show), index);
    const moved = sectionsOf(show)[index];
    return moved ? { ...show, sections: [...rest.slice(0, to), moved, ...rest.slice(to)] } : show;
  });
  sectionIndex.value = to;
}

export function addRole(): void {
  let number = roles.peek().length + 1;
  while (roles.peek().includes(T.roleName(number))) number += 1;
  change((show) => ({ ...show, roles: { ...show.roles, [T.roleName(number)]: {} } }));
}

export function askToRenameRole(old: string): void {
  question.value = {
    title: T.renameRole(old),
    message: "",
    confirm: T.rename,
    field: { label: T.name, value: old },
    then: (name) => {
      if (name === old) return;
      if (roles.peek().includes(name)) throw new ApiError("role", T.roleTaken(name), "");
      const { [old]: robot, ...rest } = cast.peek();
      change((show) => renamedRole(show, old, name));
      if (robot) cast.value = { ...rest, [name]: robot };
    },
  };
}

export function removeRole(name: string): void {
  change((show) => withoutRole(show, name));
  picked.value = null;
}

/** Give a role to a robot; a robot plays one role only. */
export function castRole(role: string, robot: string): void {
  const others = Object.fromEntries(
    Object.entries(cast.peek()).filter(([key, name]) => key !== role && name !== robot),
  );
  takeCast(robot ? { ...others, [role]: robot } : others);
}

/** Take over a cast; it is kept beside the show, if that is kept already. */
export function takeCast(wanted: Record<string, string>): void {
  cast.value = { ...wanted };
  const name = file.peek().name;
  if (name && mayCommand.peek()) void attempt(() => api.saveCast(name, cast.peek()));
}

/** Robots that come while nobody is cast get the roles in their order. */
effect(() => {
  const robots = stageNow.value?.robots.length ?? 0;
  const show = draft.value;
  if (robots && show && !Object.keys(cast.peek()).length) cast.value = guessedCast(show, {});
});

// ---- the check and the curves -------------------------------------------------------------------

export const checked = signal<{ ok: boolean; findings: ShowFinding[] } | null>(null);
export const checking = signal(false);
/** Why it could not be checked; empty where it could. */
export const problem = signal("");
export const curves = signal<SectionCurves | null>(null);

let running: AbortController | null = null;

async function look(show: Show, name: string | undefined, players: Record<string, string>): Promise<void> {
  running?.abort();
  const mine = (running = new AbortController());
  const whole = filled(show);
  const over = (): boolean => running !== mine;
  try {
    const there = sectionsOf(whole).some((each) => each.name === name);
    const told = there && name ? await api.showCurves(whole, name, mine.signal) : null;
    if (over()) return;
    curves.value = told;
    const found = await api.checkShow(whole, Object.keys(players).length ? players : null, mine.signal);
    if (over()) return;
    checked.value = found;
    problem.value = "";
  } catch (error) {
    if (over() || mine.signal.aborted) return;
    checked.value = null;
    problem.value = error instanceof ApiError ? `${sentence(error.message)} ${sentence(error.remedy)}` : String(error);
  }
  checking.value = false;
}

effect(() => {
  const [show, name, players] = [draft.value, section.value?.name, cast.value];
  // What a take is may have changed, too.
  void takes.value;
  void shelf.value?.sounds;
  if (screen.value !== "show" || !show) return undefined;
  checking.value = true;
  const timer = setTimeout(() => void look(show, name, players), CHECK_MS);
  return () => clearTimeout(timer);
});

/** What was found in the section that is shown, without notes. */
export const marks = computed(() =>
  (checked.value?.findings ?? []).filter((each) => each.severity !== "note" && each.section === section.value?.name),
);

// ---- sounds -------------------------------------------------------------------------------------

export const peaks = signal<ReadonlyMap<string, SoundPeaks>>(new Map());
const asked = new Set<string>();

export function loadPeaks(sound: string): void {
  if (asked.has(sound) || !soundLengths.peek().has(sound)) return;
  asked.add(sound);
  api.peaks(sound).then(
    (told) => (peaks.value = new Map([...peaks.peek(), [sound, told]])),
    () => undefined, // the check says what is wrong with it
  );
}

export async function addSounds(files: readonly File[]): Promise<void> {
  for (const each of files)
    await attempt(async () => {
      await api.addSound(each, false);
      say(T.soundAdded(each.name), "good");
    });
  await loadShelf();
}

// ---- the preview --------------------------------------------------------------------------------

export const playhead = signal(0);
export const previewing = signal(false);
let frame = 0;
const players: HTMLAudioElement[] = [];

export function stopPreview(): void {
  previewing.value = false;
  cancelAnimationFrame(frame);
  for (const each of players.splice(0)) each.pause();
}

export function preview(): void {
  const here = section.peek();
  if (!here) return;
  const end = sectionLength(here, lengths.peek(), soundLengths.peek());
  if (playhead.peek() >= end - 0.05) playhead.value = 0;
  const first = playhead.peek();
  const from = now();
  previewing.value = true;
  const waiting = cuesOf(here).filter((cue) => cue.sound && (cue.at_s ?? 0) >= first - 0.05);
  const step = (): void => {
    const moment = first + now() - from;
    playhead.value = Math.min(moment, end);
    while (waiting.some((cue) => (cue.at_s ?? 0) <= moment)) {
      const [cue] = waiting.splice(
        waiting.findIndex((each) => (each.at_s ?? 0) <= moment),
        1,
      );
      const player = new Audio(api.soundFile(cue?.sound ?? ""));
      players.push(player);
      player.play().catch(() => undefined);
    }
    if (moment >= end) stopPreview();
    else frame = requestAnimationFrame(step);
  };
  frame = requestAnimationFrame(step);
}

export function seek(moment_s: number): void {
  stopPreview();
  playhead.value = Math.max(0, Math.min(moment_s, span.peek()));
}

/** While the show runs, the moment is that of the robots. */
effect(() => {
  const run = stageNow.value?.run;
  if (screen.value !== "show" || !run || run.show !== file.value.name) return undefined;
  const index = sections.value.findIndex(({ name }) => name === run.section);
  if (index >= 0 && index !== sectionIndex.peek()) sectionIndex.value = index;
  const elapsed = run.elapsed_s;
  if (run.state !== "playing" || elapsed === null) return undefined;
  stopPreview();
  const pace = run.how === "rehearsal" ? 0.5 : 1;
  const tick = (): void => {
    playhead.value = Math.max(0, Math.min((elapsed + now() - stageAt.peek()) * pace, span.peek()));
  };
  tick();
  const timer = setInterval(tick, 60);
  return () => clearInterval(timer);
});

const models = signal<ReadonlyMap<string, RobotModel>>(new Map());

effect(() => {
  for (const role of Object.values(draft.value?.roles ?? {})) {
    const build = role.build ?? "g1-29";
    if (!models.peek().has(build))
      modelOf(build).then((made) => (models.value = new Map([...models.peek(), [build, made]])), report);
  }
});

const modelsOfRoles = computed(() =>
  Object.entries(draft.value?.roles ?? {}).flatMap(([name, role]) => {
    const model = models.value.get(role.build ?? "g1-29");
    return model ? [{ name, model }] : [];
  }),
);

let shown = "";
effect(() => {
  const members = screen.value === "show" && draft.value ? modelsOfRoles.value : [];
  const names = members.map(({ name, model }) => `${name} ${model.build}`).join("\n");
  if (names === shown) return;
  shown = names;
  company.value = members.length ? members : null;
});
effect(() => {
  if (screen.value !== "show") return;
  companyPoses.value = modelsOfRoles.value.map(({ name, model }) =>
    rolePose(
      model,
      curves.value?.roles.find(({ role }) => role === name),
      playhead.value,
    ),
  );
});

// ---- GO -----------------------------------------------------------------------------------------

export const how = signal<"show" | "rehearsal" | "lights">("show");

export async function go(force = false): Promise<void> {
  const run = stageNow.peek()?.run;
  const name = run?.show ?? file.peek().name;
  if (!name) return;
  const due = run?.state === "waiting" ? { section: run.section } : { known: file.peek().tag };
  working.value = true;
  try {
    stageNow.value = await api.stageGo({ show: name, cast: cast.peek(), how: how.peek(), force, ...due });
  } catch (error) {
    if (error instanceof ApiError && error.kind === "changed-show") void open(name);
    if (!(error instanceof ApiError) || error.kind !== "warned-show") report(error);
    else
      question.value = {
        title: T.warnedTitle,
        message: sentence(error.message),
        confirm: T.warnedConfirm,
        danger: true,
        then: () => go(true),
      };
  }
  working.value = false;
}

export function release(): void {
  question.value = {
    title: T.releaseTitle,
    message: T.releaseWords,
    confirm: T.release,
    then: () =>
      attempt(async () => {
        stageNow.value = await api.stageRelease();
      }),
  };
}
