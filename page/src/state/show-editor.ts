/** The show that is being edited: its document, its file, its check, and its preview. */

import { batch, computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { ApiError, api } from "../api";
import type { ShowLock } from "../api-types";
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
  type Role,
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
  withRole,
  withSection,
} from "../show-document";
import { now } from "./clock";
import { library } from "./library";
import { robot } from "./robot";
import { scene } from "./scene";
import { stage } from "./stage";
import { createTimeline, type Timeline } from "./timeline";
import { ui } from "./ui";
import { TAB } from "./drafts";
import { recall, remember, type Shelf } from "../storage";
import { TEXTS } from "../texts";
import type { RobotModel, SectionCurves, ShowShelf, SoundPeaks } from "../types";

const T = TEXTS.show;
const CHECK_MS = 350;
/** The document as it was opened, and the changes that can be undone. */
const MAX_ENTRIES = 101;
const LEAST_SPAN_S = 8;
const DRAFT_KEY = "show.draft";
const LAST_KEY = "show.name";

// ---- what is edited -----------------------------------------------------------------------------

/** The file it is kept in; no name before it was saved first. */
interface ShowFile {
  name: string | null;
  tag: string | null;
  path: string;
  /** Null if it is not locked. */
  lock: ShowLock | null;
}

const NO_FILE: ShowFile = { name: null, tag: null, path: "", lock: null };

const shelf = signal<ShowShelf | null>(null);
const file = signal<ShowFile>(NO_FILE);
/** The document as the file has it. */
const kept = signal<Show | null>(null);
const sectionIndex = signal(0);

/** The sounds of the preview that have started. */
const players: HTMLAudioElement[] = [];
/** The sound cues of the preview that are still to come. */
let upcoming: ShowCue[] = [];

type Picked = { kind: "clip" | "cue"; index: number } | null;

/** All versions of the document, the newest last. */
const timeline: Timeline<Show, Picked> = createTimeline<Show, Picked>({
  nothingPicked: null,
  keep: 1,
  max: MAX_ENTRIES,
  end_s: () => span.peek(),
  previewSpan: () => {
    const here = section.peek();
    return here && { from: 0, to: sectionLength(here, lengths.peek(), soundLengths.peek()) };
  },
  restartWithin_s: 0.05,
  isUnsaved: () => draft.value !== null && draft.value !== kept.value,
  isShown: () => ui.screen.value === "show",
  onFrame: playSounds,
  onPreviewEnd: () => {
    for (const each of players.splice(0)) each.pause();
  },
});
const { history, picked, playhead, working, unsaved, stopPreview } = timeline;
const draft: ReadonlySignal<Show | null> = computed(() => history.value.done.at(-1) ?? null);
/** The role that gets what is added by a button. */
const chosenLane = signal("");
const cast = signal<Record<string, string>>({});

const roles = computed(() => Object.keys(draft.value?.roles ?? {}));
const lane = computed(() => (roles.value.includes(chosenLane.value) ? chosenLane.value : (roles.value[0] ?? "")));
const sections = computed(() => (draft.value ? sectionsOf(draft.value) : []));
const section = computed<Section | null>(() => sections.value[sectionIndex.value] ?? sections.value[0] ?? null);
const lengths = computed<Lengths>(() => new Map(library.takes.value.map(({ name, duration_s }) => [name, duration_s])));
const soundLengths = computed<Lengths>(
  () => new Map((shelf.value?.sounds ?? []).map(({ name, duration_s }) => [name, duration_s ?? 1])),
);
/** How many seconds the lanes show. */
const span = computed(() => {
  const length = section.value ? sectionLength(section.value, lengths.value, soundLengths.value) : 0;
  return Math.max(LEAST_SPAN_S, Math.ceil(length * 1.15 + 1));
});

function chooseLane(role: string): void {
  chosenLane.value = role;
}

// ---- the file -----------------------------------------------------------------------------------

async function loadShelf(): Promise<void> {
  await ui.attempt(async () => {
    shelf.value = await api.shows();
  });
}

/** Counts the shows that were opened: an answer that comes later belongs to the one it was asked for. */
let sitting = 0;

function begin(show: Show, where: ShowFile, saved: Show | null): void {
  sitting += 1;
  batch(() => {
    timeline.reset({ done: [show], undone: [] });
    file.value = where;
    kept.value = saved;
    sectionIndex.value = 0;
  });
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
  const free = (stage.current.peek()?.robots ?? [])
    .map(({ name }) => name)
    .filter((name) => !Object.values(made).includes(name));
  for (const role of names) {
    const next = made[role] ? undefined : free.shift();
    if (next) made[role] = next;
  }
  return made;
}

function open(name: string): Promise<boolean> {
  sitting += 1;
  const mine = sitting;
  const was = draft.peek();
  return ui.attempt(async () => {
    const answer = await api.show(name);
    // Another one was opened since, or this one was edited: that must not be lost.
    if (mine !== sitting || draft.peek() !== was) return;
    begin(answer.show, { name, tag: answer.tag, path: answer.path, lock: answer.lock }, answer.show);
  });
}

/** Do something that leaves this show; where it is not saved, the person decides. */
function leaving(then: () => void): void {
  if (!unsaved.peek()) {
    then();
    return;
  }
  ui.question.value = { title: T.leaveTitle, message: T.leaveWords, confirm: T.leaveConfirm, danger: true, then };
}

function makeNew(): void {
  const robots = (stage.current.peek()?.robots ?? []).length;
  const names = Array.from({ length: Math.max(2, robots) }, (_, index) => T.roleName(index + 1));
  begin(newShow("", names, T.sectionName(1)), NO_FILE, null);
}

let saving: Promise<unknown> = Promise.resolve();

/** Save the show to its file, one save after another. If the file was changed elsewhere, the person decides. */
function saveTo(name: string, replace = false): Promise<void> {
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
    const answer = await api.saveShow(name, show, known, replace);
    // Another show may have been opened meanwhile: this file is not its file.
    if (mine === sitting) {
      file.value = { name, tag: answer.tag, path: answer.path, lock: answer.lock };
      kept.value = show;
      remember("localStorage", LAST_KEY, name);
    }
    if (Object.keys(roles).length) await api.saveCast(name, roles);
    await loadShelf();
    ui.notify(T.saved(answer.path), "good");
  } catch (error) {
    if (!(error instanceof ApiError) || !["show-exists", "changed-show", "show-deleted"].includes(error.kind))
      throw error;
    if (mine !== sitting) throw error;
    ui.question.value = {
      title: T.replaceTitle(name),
      message: `${sentence(error.message)} ${sentence(error.remedy)}`,
      confirm: error.kind === "show-deleted" ? T.writeAgain : T.replaceConfirm,
      danger: true,
      then: () => ui.attempt(() => saveTo(name, true)),
    };
  }
}

function askToSave(as = false): void {
  const name = file.peek().name;
  if (name && !as) {
    void ui.attempt(() => saveTo(name));
    return;
  }
  ui.question.value = {
    title: T.saveTitle,
    message: "",
    confirm: T.save,
    field: { label: T.name, value: name ?? draft.peek()?.title ?? "" },
    then: (text) => saveTo(text),
  };
}

function askToRename(): void {
  const old = file.peek().name;
  if (!old) return;
  ui.question.value = {
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

/** Lock the file as it is, or unlock it. */
function setLock(locked: boolean): void {
  const name = file.peek().name;
  if (!name) return;
  const mine = sitting;
  void ui.attempt(async () => {
    const { lock } = await api.lockShow(name, locked);
    if (mine === sitting) file.value = { ...file.peek(), lock };
  });
}

function askToDelete(): void {
  const name = file.peek().name;
  if (!name) return;
  ui.question.value = {
    title: T.deleteTitle(name),
    message: T.deleteWords,
    confirm: T.delete,
    danger: true,
    then: () =>
      ui.attempt(async () => {
        const mine = sitting;
        await api.deleteShow(name);
        if (mine === sitting) {
          sitting += 1;
          remember("localStorage", LAST_KEY, "");
          batch(() => {
            timeline.reset();
            kept.value = null;
            file.value = NO_FILE;
          });
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
async function start(): Promise<void> {
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

/** Replace the document; `together` makes it one step with the change before, as the moves of a drag are. */
function change(to: (show: Show) => Show, together = false): void {
  const show = draft.peek();
  if (show) (together ? timeline.replace : timeline.add)(to(show));
}

/** Note where a drag begins, so that one undo goes back to it. */
function holdHistory(): void {
  const show = draft.peek();
  if (show && history.peek().done.at(-2) !== show) timeline.add(show);
}

function changeSection(to: (section: Section) => Section, together = false): void {
  const index = Math.min(sectionIndex.peek(), sections.peek().length - 1);
  change((show) => withSection(show, index, to), together);
}

function addClip(take: string, role: string, at_s?: number): void {
  const here = section.peek();
  if (!here) return;
  chooseLane(role);
  const at = at_s ?? laneEnd(here, role, lengths.peek());
  picked.value = { kind: "clip", index: clipsOf(here).length };
  changeSection((each) => addedClip(each, { role, take, at_s: Math.max(0, at) }));
}

function addAction(action: string, role: string): void {
  const here = section.peek();
  if (!here) return;
  picked.value = { kind: "clip", index: clipsOf(here).length };
  changeSection((each) => addedClip(each, { role, action, at_s: laneEnd(here, role, lengths.peek()) }));
}

function changeClip(index: number, by: Partial<Clip>, together = false): void {
  changeSection((each) => withClip(each, index, by), together);
}

function moveClip(index: number, at_s: number, role?: string, together = false): void {
  const clip = section.peek() ? clipsOf(section.peek() as Section)[index] : undefined;
  if (clip) changeClip(index, movedClip(clip, at_s, role), together);
}

function trimClip(index: number, edge: "from" | "to", moment_s: number, together = false): void {
  const clip = section.peek() ? clipsOf(section.peek() as Section)[index] : undefined;
  if (!clip) return;
  changeClip(index, (edge === "from" ? trimmedFrom : trimmedTo)(clip, moment_s, lengths.peek()), together);
}

function removePicked(): void {
  const what = picked.peek();
  if (!what) return;
  picked.value = null;
  changeSection((each) =>
    what.kind === "clip"
      ? { ...each, clips: without(clipsOf(each), what.index) }
      : { ...each, cues: without(cuesOf(each), what.index) },
  );
}

function addCue(kind: CueKind): void {
  const here = section.peek();
  const sound = shelf.peek()?.sounds[0]?.name ?? "";
  if (!here) return;
  if (kind === "sound" && !sound) {
    ui.notify(T.noSounds, "bad");
    return;
  }
  picked.value = { kind: "cue", index: cuesOf(here).length };
  changeSection((each) => ({ ...each, cues: [...cuesOf(each), newCue(kind, playhead.peek(), lane.peek(), sound)] }));
}

function changeCue(index: number, by: Partial<ShowCue>, together = false): void {
  changeSection((each) => withCue(each, index, by), together);
}

function addSection(): void {
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

function removeSection(): void {
  const index = sectionIndex.peek();
  change((show) => ({ ...show, sections: without(sectionsOf(show), index) }));
  sectionIndex.value = Math.max(0, index - 1);
  picked.value = null;
}

function moveSection(by: number): void {
  const [index, to] = [sectionIndex.peek(), sectionIndex.peek() + by];
  change((show) => {
    const rest = without(sectionsOf(show), index);
    const moved = sectionsOf(show)[index];
    return moved ? { ...show, sections: [...rest.slice(0, to), moved, ...rest.slice(to)] } : show;
  });
  sectionIndex.value = to;
}

function addRole(): void {
  let number = roles.peek().length + 1;
  while (roles.peek().includes(T.roleName(number))) number += 1;
  change((show) => ({ ...show, roles: { ...show.roles, [T.roleName(number)]: {} } }));
}

function changeRole(name: string, by: Partial<Role>): void {
  change((show) => withRole(show, name, by));
}

function askToRenameRole(old: string): void {
  ui.question.value = {
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

function removeRole(name: string): void {
  change((show) => withoutRole(show, name));
  picked.value = null;
}

/** Give a role to a robot; a robot plays one role only. */
function castRole(role: string, robot: string): void {
  const others = Object.fromEntries(
    Object.entries(cast.peek()).filter(([key, name]) => key !== role && name !== robot),
  );
  takeCast(robot ? { ...others, [role]: robot } : others);
}

/** Take over a cast; it is kept beside the show, if that is kept already. */
function takeCast(wanted: Record<string, string>): void {
  cast.value = { ...wanted };
  const name = file.peek().name;
  if (name && robot.mayCommand.peek()) void ui.attempt(() => api.saveCast(name, cast.peek()));
}

/** While no robot is cast, the robots of the stage get the roles in their order. */
effect(() => {
  const robots = stage.current.value?.robots.length ?? 0;
  const show = draft.value;
  if (robots && show && !Object.keys(cast.peek()).length) cast.value = guessedCast(show, {});
});

// ---- the check and the curves -------------------------------------------------------------------

const checked = signal<{ ok: boolean; findings: ShowFinding[] } | null>(null);
const checking = signal(false);
/** Why it could not be checked; empty where it could. */
const problem = signal("");
const curves = signal<SectionCurves | null>(null);

let running: AbortController | null = null;

async function runCheck(show: Show, name: string | undefined, players: Record<string, string>): Promise<void> {
  running?.abort();
  const mine = (running = new AbortController());
  const whole = filled(show);
  const over = (): boolean => running !== mine;
  try {
    const there = sectionsOf(whole).some((each) => each.name === name);
    const answer = there && name ? await api.showCurves(whole, name, mine.signal) : null;
    if (over()) return;
    curves.value = answer;
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
  void library.takes.value;
  void shelf.value?.sounds;
  if (ui.screen.value !== "show" || !show) return undefined;
  checking.value = true;
  const timer = setTimeout(() => void runCheck(show, name, players), CHECK_MS);
  return () => clearTimeout(timer);
});

/** What was found in the section that is shown, without notes. */
const marks = computed(() =>
  (checked.value?.findings ?? []).filter((each) => each.severity !== "note" && each.section === section.value?.name),
);

// ---- sounds -------------------------------------------------------------------------------------

const peaks = signal<ReadonlyMap<string, SoundPeaks>>(new Map());
const asked = new Set<string>();

function loadPeaks(sound: string): void {
  if (asked.has(sound) || !soundLengths.peek().has(sound)) return;
  asked.add(sound);
  api.peaks(sound).then(
    (answer) => (peaks.value = new Map([...peaks.peek(), [sound, answer]])),
    () => undefined, // the check says what is wrong with it
  );
}

async function addSounds(files: readonly File[]): Promise<void> {
  for (const each of files)
    await ui.attempt(async () => {
      await api.addSound(each, false);
      ui.notify(T.soundAdded(each.name), "good");
    });
  await loadShelf();
}

// ---- the preview --------------------------------------------------------------------------------

/** Start a preview with the sound cues after the playhead. */
function preview(): void {
  timeline.preview();
  const here = section.peek();
  const first = playhead.peek();
  upcoming = here ? cuesOf(here).filter((cue) => cue.sound && (cue.at_s ?? 0) >= first - 0.05) : [];
}

/** Play the sounds that are due. */
function playSounds(time_s: number): void {
  const due = upcoming.filter((cue) => (cue.at_s ?? 0) <= time_s);
  upcoming = upcoming.filter((cue) => (cue.at_s ?? 0) > time_s);
  for (const cue of due) {
    const player = new Audio(api.soundFile(cue.sound ?? ""));
    players.push(player);
    player.play().catch(() => undefined);
  }
}

/** While the show runs, the moment is that of the robots. */
effect(() => {
  const run = stage.current.value?.run;
  if (ui.screen.value !== "show" || !run || run.show !== file.value.name) return undefined;
  const index = sections.value.findIndex(({ name }) => name === run.section);
  if (index >= 0 && index !== sectionIndex.peek()) sectionIndex.value = index;
  const elapsed = run.elapsed_s;
  if ((run.state !== "playing" && run.state !== "paused") || elapsed === null) return undefined;
  stopPreview();
  const pace = run.how === "rehearsal" ? 0.5 : 1;
  const tick = (): void => {
    const since = run.state === "paused" ? 0 : now() - stage.receivedAt.peek();
    playhead.value = Math.max(0, Math.min((elapsed + since) * pace, span.peek()));
  };
  tick();
  if (run.state === "paused") return undefined;
  const timer = setInterval(tick, 60);
  return () => clearInterval(timer);
});

const models = signal<ReadonlyMap<string, RobotModel>>(new Map());

effect(() => {
  for (const role of Object.values(draft.value?.roles ?? {})) {
    const build = role.build ?? "g1-29";
    if (!models.peek().has(build))
      robot.modelOf(build).then((made) => (models.value = new Map([...models.peek(), [build, made]])), ui.report);
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
  const members = ui.screen.value === "show" && draft.value ? modelsOfRoles.value : [];
  const names = members.map(({ name, model }) => `${name} ${model.build}`).join("\n");
  if (names === shown) return;
  shown = names;
  scene.robotGroup.value = members.length ? members : null;
});
effect(() => {
  if (ui.screen.value !== "show") return;
  scene.groupPoses.value = modelsOfRoles.value.map(({ name, model }) =>
    rolePose(
      model,
      curves.value?.roles.find(({ role }) => role === name),
      playhead.value,
    ),
  );
});

// ---- GO -----------------------------------------------------------------------------------------

const how = signal<"show" | "rehearsal" | "lights">("show");

const chosenFirst = signal("");
/** The section that GO begins the show with; null for its first one. */
const firstSection = computed(() => {
  const index = sections.value.findIndex(({ name }) => name === chosenFirst.value);
  return index > 0 ? chosenFirst.value : null;
});

function chooseFirst(name: string): void {
  chosenFirst.value = name;
}

async function go(force = false): Promise<void> {
  const run = stage.current.peek()?.run;
  const name = run?.show ?? file.peek().name;
  if (!name) return;
  const due = run ? { section: run.section } : { known: file.peek().tag, section: firstSection.peek() };
  working.value = true;
  stage.refusal.value = "";
  try {
    stage.current.value = await api.stageGo({ show: name, cast: cast.peek(), how: how.peek(), force, ...due });
    stage.receivedAt.value = now();
    chosenFirst.value = "";
  } catch (error) {
    if (error instanceof ApiError && error.kind === "changed-show") void open(name);
    if (!(error instanceof ApiError) || error.kind !== "warned-show") stage.report(error);
    else
      ui.question.value = {
        title: T.warnedTitle,
        message: sentence(error.message),
        confirm: T.warnedConfirm,
        danger: true,
        then: () => go(true),
      };
  }
  working.value = false;
}

/** Ask whether to reset the STOP that is shown, and no later one. */
function askToReset(): void {
  const stop = stage.current.peek()?.stop;
  if (!stop) return;
  ui.question.value = {
    title: T.releaseTitle,
    message: T.releaseWords,
    confirm: T.release,
    then: () => stage.send(() => api.stageRelease(stop.id)),
  };
}

export const showEditor = {
  ...timeline,
  preview,
  shelf,
  file,
  sectionIndex,
  draft,
  cast,
  roles,
  lane,
  sections,
  section,
  lengths,
  soundLengths,
  span,
  chooseLane,
  loadShelf,
  open,
  leaving,
  makeNew,
  saveTo,
  askToSave,
  askToRename,
  askToDelete,
  setLock,
  start,
  change,
  holdHistory,
  changeSection,
  addClip,
  addAction,
  changeClip,
  moveClip,
  trimClip,
  removePicked,
  addCue,
  changeCue,
  addSection,
  removeSection,
  moveSection,
  addRole,
  changeRole,
  askToRenameRole,
  removeRole,
  castRole,
  takeCast,
  checked,
  checking,
  problem,
  curves,
  marks,
  peaks,
  loadPeaks,
  addSounds,
  how,
  firstSection,
  chooseFirst,
  go,
  askToReset,
};
