/** Screen 2: teach. Tips, countdown, recording with live curves, and what came of it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { api } from "../api";
import { badName, degrees, freeName, joint as jointName, motion, seconds, sentence } from "../format";
import { stopping } from "../live";
import { Chart } from "../parts/chart";
import { Findings } from "../parts/findings";
import { Icon } from "../parts/icons";
import { UnsavedTakes } from "../parts/unsaved";
import { PlayTip } from "../parts/play-tip";
import { now } from "../state/clock";
import { library } from "../state/library";
import { playback } from "../state/playback";
import { robot } from "../state/robot";
import { scene } from "../state/scene";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { Anew, Levels } from "./robot";
import type { Curves, Finding, Taught } from "../types";
import * as wording from "../wording";
import { bindStyles } from "../css";
import styles from "./teach.module.css";

const css = bindStyles(styles);
const T = TEXTS.teach;
const COUNT_S = 3;
const MAX_S = 180;
const CURVE_MS = 250;
const DRAG_MS = 60;
const HANDS = ["wave", "bow", "clap", "drum"] as const;
const NO_CURVES: Curves = { names: [], times_s: [], joints_rad: [] };

// Kept while another screen is open.
const name = signal("");
const hand = signal<string>("");
const handSeconds = signal(6);
const result = signal<{ taught: Taught; name: string } | null>(null);
const busy = signal(false);
const recorded = signal<Curves>(NO_CURVES);
/** What the check says of the result; nothing while it is asked, null where there is no take to check. */
const checked = signal<Finding[] | null | undefined>(undefined);
let checking: Promise<void> = Promise.resolve();
/** Whether the form comes right after the tips. */
let tipsJustRead = false;
/** The question for new samples that is under way, if any; and whether more may be asked. */
let curveAsked: Promise<void> = Promise.resolve();
let curveOver = false;

const recording = (): boolean => robot.activity.value?.kind === "teaching";

function Tips() {
  const done = (): void => {
    tipsJustRead = true;
    robot.tipsRead.value = "yes";
  };
  return (
    <section class={css("card tips")} aria-labelledby="tips-title" data-testid="tips">
      <h2 id="tips-title">{T.tipsTitle}</h2>
      {T.tipsOfApp[robot.limbs.value] && <p>{T.tipsOfApp[robot.limbs.value]}</p>}
      <ol>
        {T.tips[robot.limbs.value].map(([title, words]) => (
          <li key={title}>
            <strong>{title}</strong>
            <span>{words}</span>
          </li>
        ))}
      </ol>
      <button type="button" class="button primary big-button" onClick={done}>
        {T.tipsDone}
      </button>
    </section>
  );
}

/** Begin the form at its top, after the tips. A finger gets no keyboard that it did not ask for. */
function useTop(): void {
  useEffect(() => {
    if (!tipsJustRead) return;
    tipsJustRead = false;
    scrollTo({ top: 0 });
    document.getElementById("panel")?.scrollTo({ top: 0 });
    const finger = matchMedia("(pointer: coarse)").matches;
    document.getElementById(finger ? "ready-title" : "teach-name")?.focus({ preventScroll: true });
  }, []);
}

function suggestion(): string {
  const taken = [...(robot.actions.value?.taught ?? []), ...library.takes.value].map((each) => each.name);
  return freeName(hand.value || "motion 1", taken);
}

/** Why a teaching under this name would be refused; empty where nothing is known against it. */
function obstacle(wanted: string): string {
  const doing = robot.activity.value;
  // On the way back to rest after a teaching, the next one may begin.
  const returning = doing?.name === "" && doing.phase === "return";
  if (doing && doing.kind !== "idle" && !returning)
    return T.busy(doing.kind === "performing" ? motion(doing.name) : doing.name);
  const soft = robot.status.value?.soft;
  if (soft && soft.by !== "damping") return T.softAlready[robot.limbs.value];
  if (robot.status.value?.mode?.balanced === false) return T.unbalanced;
  // A robot that rote drives itself does nothing more after a protection has tripped.
  if (robot.status.value?.faults.length && !robot.can("list")) return T.tripped;
  const exists = robot.actions.value?.taught.some((action) => action.name === wanted) ?? false;
  if (exists) return robot.can("overwrite") ? "" : T.takenRemedy;
  if ((robot.actions.value?.free_places ?? 1) <= 0) return T.full;
  return wanted && badName(wanted);
}

/** Ask what speaks against the take that was just kept. */
async function loadCheck(take: string | null): Promise<void> {
  checked.value = undefined;
  try {
    checked.value = take ? (await api.editCheck(take, [], undefined)).findings : null;
  } catch {
    checked.value = null;
  }
}

async function count(): Promise<boolean> {
  for (let left = COUNT_S; left > 0; left -= 1) {
    scene.countdown.value = left;
    await new Promise((resolve) => setTimeout(resolve, 1000));
    if (scene.countdown.peek() === null) return false;
  }
  scene.countdown.value = null;
  return true;
}

async function start(overwrite = false): Promise<void> {
  const wanted = name.peek().trim() || suggestion();
  name.value = wanted;
  result.value = null;
  recorded.value = NO_CURVES;
  busy.value = true;
  try {
    if (!(await count())) return;
    await api.teachStart(wanted, overwrite);
    if (hand.peek()) await api.teachHand(hand.peek(), handSeconds.peek());
  } catch (error) {
    ui.report(error);
  } finally {
    scene.countdown.value = null;
    busy.value = false;
  }
}

async function finish(save: boolean): Promise<void> {
  busy.value = true;
  try {
    curveOver = true;
    await curveAsked;
    // A page that was opened in the middle of a recording has no name of its own for it.
    const wanted = name.peek().trim() || (robot.activity.peek()?.name ?? "");
    const taught = await api.teachFinish(save, wanted);
    if (save) {
      result.value = { taught, name: taught.take ?? wanted };
      checking = loadCheck(taught.take);
      name.value = "";
      hand.value = "";
    } else ui.notify(T.discarded);
  } catch (error) {
    ui.report(error);
  } finally {
    busy.value = false;
    void robot.loadActions();
    void library.load();
  }
}

function Hand() {
  if (!robot.can("hand")) return null;
  return (
    <fieldset class={css("hand")}>
      <legend>{T.hand}</legend>
      <p class="muted">{T.handWords}</p>
      <div class="row wrap">
        {["", ...HANDS].map((each) => (
          <button
            key={each}
            type="button"
            class="toggle"
            aria-pressed={hand.value === each}
            onClick={() => (hand.value = each)}
          >
            {each ? T.hands[each as (typeof HANDS)[number]] : T.handNone}
          </button>
        ))}
      </div>
      {hand.value && (
        <label class="inline">
          <span>{T.handSeconds}</span>
          <input
            type="number"
            min={1}
            max={60}
            value={handSeconds.value}
            onInput={(event) => (handSeconds.value = Number(event.currentTarget.value) || 6)}
          />{" "}
          s
        </label>
      )}
    </fieldset>
  );
}

function Name({ overwrites }: { overwrites: boolean }) {
  return (
    <label class="field">
      <span>{T.name}</span>
      <input
        type="text"
        value={name.value}
        maxLength={31}
        placeholder={recording() ? robot.activity.value?.name : suggestion()}
        autoComplete="off"
        id="teach-name"
        data-testid="teach-name"
        onInput={(event) => (name.value = event.currentTarget.value)}
      />
      <small class={overwrites ? "bad-words" : "muted"}>
        {overwrites ? (robot.can("overwrite") ? T.replaces : T.taken) : T.nameHint}
      </small>
    </label>
  );
}

function Ready() {
  useTop();
  const free = robot.actions.value?.now ? robot.actions.value.free_places : null;
  const against = robot.ready.value ? obstacle(name.value.trim()) : "";
  const wrong = (robot.status.value?.findings ?? []).filter(({ severity }) => severity === "error");
  const exists = robot.actions.value?.taught.some((action) => action.name === name.value.trim()) ?? false;
  return (
    <section class="card" aria-labelledby="ready-title">
      <div class="row spread">
        <h2 id="ready-title" tabIndex={-1}>
          {T.title}
        </h2>
        <button type="button" class="link" onClick={() => (robot.tipsRead.value = "no")}>
          {T.tipsAgain}
        </button>
      </div>
      {wrong.length > 0 && <Findings findings={wrong} fine="" />}
      <Anew />
      {wrong.length > 0 && robot.can("mode") && (
        <button
          type="button"
          class="button"
          disabled={!robot.ready.value}
          onClick={() => ui.attempt(() => api.mode("stand"))}
        >
          {TEXTS.health.stand}
        </button>
      )}
      <Name overwrites={exists} />
      <Hand />
      <button
        type="button"
        class="button primary big-button"
        disabled={!robot.ready.value || busy.value || against !== ""}
        aria-describedby="start-note"
        onClick={() => start(exists && robot.can("overwrite"))}
        data-testid="teach-start"
      >
        <span class={css("record")} aria-hidden="true" />
        {T.start}
      </button>
      <p id="start-note" class={against ? "bad-words" : "muted"}>
        {against ||
          `${T.startNote(COUNT_S, robot.limbs.value)} ${robot.can("list") ? `${free === null ? T.placesUnknown : T.places(free)}.` : ""}`}
      </p>
    </section>
  );
}

async function askCurve(): Promise<void> {
  const all = recorded.peek();
  try {
    const more = await api.teachCurve(all.times_s.length);
    if (!more.times_s.length || recorded.peek() !== all) return;
    recorded.value = {
      names: more.names,
      times_s: [...all.times_s, ...more.times_s],
      joints_rad: [...all.joints_rad, ...more.joints_rad],
    };
  } catch {
    // The recording may have ended meanwhile; the status says so.
  }
}

/** Ask for the samples that are new, while the recording goes on. */
function useRecording(on: boolean): void {
  useEffect(() => {
    if (!on) return undefined;
    // A phone shows the recording from its top, wherever the person had scrolled to.
    scrollTo({ top: 0 });
    curveOver = false;
    let over = false;
    const ask = async (): Promise<void> => {
      if (!curveOver && !stopping.peek()) await (curveAsked = askCurve());
      if (!over) setTimeout(ask, CURVE_MS);
    };
    void ask();
    return () => {
      over = true;
      scrollTo({ top: 0 });
    };
  }, [on]);
}

/** Send where a joint is dragged to, the newest value only and not too often. */
function dragger(): (joint: string | null, value: number) => void {
  let waiting: [string | null, number] | null = null;
  let running = false;
  const run = async (): Promise<void> => {
    running = true;
    while (waiting) {
      const [joint, value] = waiting;
      waiting = null;
      if (!(await ui.attempt(() => api.teachDrag(joint, value)))) break;
      await new Promise((resolve) => setTimeout(resolve, DRAG_MS));
    }
    running = false;
  };
  return (joint, value) => {
    waiting = [joint, value];
    if (!running) void run();
  };
}

function Drag() {
  const joints = robot.model.value?.joints.filter((joint) => joint.taught) ?? [];
  const [chosen, setChosen] = useState("right_shoulder_pitch_joint"); // where the robot has it
  const [send] = useState(dragger);
  const joint = joints.find((each) => each.name === chosen) ?? joints[0];
  const [value, setValue] = useState<number | null>(null);
  useEffect(() => {
    // The hand keeps hold of an arm that was dragged, or it would sink before the next one is led.
    scene.onTurnJoint.value = (turned, wanted) => void (turned && send(turned, wanted));
    return () => {
      scene.onTurnJoint.value = null;
    };
  }, []);
  if (!joint) return null;
  const angle = value ?? robot.poses.at(now())?.[joint.index] ?? 0;
  const letGo = (): void => {
    setValue(null);
    send(null, 0);
  };
  return (
    <fieldset class={css("hand")}>
      <legend class="hidden">{T.dragPick}</legend>
      <p class="muted">{T.dragWords}</p>
      <div class={css("row drag")}>
        <select
          aria-label={T.dragPick}
          value={joint.name}
          onChange={(event) => {
            setChosen(event.currentTarget.value);
            setValue(null);
          }}
        >
          {joints.map((each) => (
            <option key={each.name} value={each.name}>
              {jointName(each.name)}
            </option>
          ))}
        </select>
        <input
          type="range"
          aria-label={jointName(joint.name)}
          min={joint.lower_rad}
          max={joint.upper_rad}
          step={0.01}
          value={angle}
          onInput={(event) => {
            const wanted = Number(event.currentTarget.value);
            setValue(wanted);
            scene.highlighted.value = joint.name;
            send(joint.name, wanted);
          }}
          onChange={() => (scene.highlighted.value = null)}
        />
        <output data-testid="drag-angle">{degrees(angle)}</output>
      </div>
      <button type="button" class="button" onClick={letGo}>
        {T.letGo}
      </button>
    </fieldset>
  );
}

/** The numbers of a recording; they alone are drawn anew ten times a second. */
function Elapsed() {
  const [, tick] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => tick((count) => count + 1), 100);
    return () => clearInterval(timer);
  }, []);
  const doing = robot.activity.value;
  const since = robot.paused.value ? 0 : Math.min(1.5, now() - robot.statusAt.value);
  const elapsed = (doing?.elapsed_s ?? 0) + since;
  return (
    <dl class="facts three">
      <div>
        <dt>{T.elapsed}</dt>
        <dd class="number">{seconds(elapsed)}</dd>
      </div>
      <div>
        <dt>{T.left}</dt>
        <dd class="number">{seconds(MAX_S - elapsed)}</dd>
      </div>
      <div>
        <dt>{T.samples}</dt>
        <dd class="number">{doing?.samples ?? 0}</dd>
      </div>
    </dl>
  );
}

function LiveCurves() {
  const curves = recorded.value;
  return <Chart curves={curves} label={T.curves} view={{ from: 0, to: Math.max(6, curves.times_s.at(-1) ?? 0) }} />;
}

function Recording() {
  const title = useRef<HTMLHeadingElement>(null);
  // Not on a button: one more Enter would end what was just begun.
  useEffect(() => title.current?.focus({ preventScroll: true }), []);
  return (
    <section class="card recording" aria-labelledby="recording-title" data-testid="recording">
      <h2 id="recording-title" class={css("live")} ref={title} tabIndex={-1}>
        <span class={css(robot.paused.value ? "record" : "record live")} aria-hidden="true" />
        {robot.paused.value ? T.paused : T.recording}
      </h2>
      <p class="muted">{robot.paused.value ? T.pausedWords[robot.limbs.value] : T.soft[robot.limbs.value]}</p>
      <Elapsed />
      <div class="row fill">
        <button
          type="button"
          class="button primary big-button"
          disabled={!robot.ready.value || busy.value}
          onClick={() => finish(true)}
          data-testid="teach-end"
        >
          {busy.value ? T.saving : T.end}
        </button>
        {robot.can("pause") && (
          <button
            type="button"
            class="button big-button"
            disabled={!robot.ready.value}
            onClick={() => ui.attempt(() => api.pause(!robot.paused.value))}
            data-testid="pause"
          >
            {robot.paused.value ? T.resume : T.pause}
          </button>
        )}
        <button
          type="button"
          class="button big-button"
          disabled={!robot.ready.value || busy.value}
          onClick={() => finish(false)}
        >
          {T.discard}
        </button>
      </div>
      <LiveCurves />
      <Name overwrites={false} />
      {robot.can("hand") && (
        <div class="row wrap" role="group" aria-label={T.hand}>
          {HANDS.map((each) => (
            <button
              type="button"
              key={each}
              class="toggle"
              disabled={!robot.ready.value}
              onClick={() => ui.attempt(() => api.teachHand(each, handSeconds.value))}
            >
              {T.hands[each]}
            </button>
          ))}
        </div>
      )}
      {robot.can("drag") && <Drag />}
    </section>
  );
}

/** What the check says of the result, as elsewhere. */
function Checked() {
  const found = checked.value;
  if (found === undefined) return <p class="muted">{T.checking}</p>;
  if (found === null) return <p class="muted">{T.unchecked}</p>;
  return (
    <div data-testid="result-check">
      {found.some(({ severity }) => severity === "error") && (
        <p>
          <span class="chip bad">{TEXTS.edit.cannot}</span>
        </p>
      )}
      <Findings findings={found} fine={TEXTS.edit.fine} limit={4} />
    </div>
  );
}

/** Play the result, once the operator has seen the findings of the check. */
async function playResult(play: () => Promise<unknown>): Promise<void> {
  await checking;
  const against = (checked.peek() ?? []).filter(({ severity }) => severity !== "note");
  const [first] = against;
  if (!first) return void (await play());
  const { title, confirm, unsafe, more } = TEXTS.warned;
  const words = [
    first.severity === "error" ? unsafe : "",
    sentence(wording.message(first)),
    against.length > 1 ? more(against.length - 1) : "",
  ];
  ui.question.value = { title, message: words.filter(Boolean).join(" "), confirm, danger: true, then: play };
}

function Result({ taught, saved }: { taught: Taught; saved: string }) {
  const curves = recorded.value;
  const onRobot = robot.actions.value?.taught.some((action) => action.name === saved) ?? false;
  const how = robot.can("tempo") ? { speed: playback.speed.value, loop: playback.loop.value } : {};
  // A take that is streamed is checked, and asked about, by the server.
  const play = (): Promise<unknown> =>
    onRobot ? playResult(() => ui.attempt(() => api.play(saved, how))) : playback.playTake(saved);
  const against = obstacle("");
  const again = (): void => {
    name.value = freeName(
      saved,
      [...(robot.actions.value?.taught ?? []), ...library.takes.value].map((each) => each.name),
    );
    void start();
  };
  return (
    <section class="card" aria-labelledby="result-title" data-testid="result">
      {taught.saved && (
        <h2 id="result-title" class="good-words">
          <Icon name="check" />
          {taught.kept ? T.savedTitle : T.robotOnlyTitle}
        </h2>
      )}
      {!taught.saved && (
        <h2 id="result-title" class="bad-words">
          <Icon name="warn" />
          {T.notSavedTitle}
        </h2>
      )}
      <p class="big">{taught.saved ? T.saved(saved, seconds(taught.duration_s)) : T.notSaved(saved)}</p>
      <p class="muted">{T.rate(taught.rate_hz.toFixed(0), taught.samples)}</p>
      <Checked />
      <PlayTip />
      <div class="row fill">
        <button
          type="button"
          class="button primary big-button"
          disabled={!robot.ready.value}
          onClick={play}
          data-testid="result-play"
        >
          <Icon name="play" />
          {T.play}
        </button>
        {taught.take && (
          <button type="button" class="button big-button" onClick={() => ui.go("edit", taught.take as string)}>
            <Icon name="edit" />
            {T.edit}
          </button>
        )}
      </div>
      <div class="row fill">
        <button
          type="button"
          class="button"
          disabled={!robot.ready.value || busy.value || against !== ""}
          title={against}
          onClick={again}
        >
          {T.again}
        </button>
        <button type="button" class="button" onClick={() => (result.value = null)} data-testid="teach-another">
          {T.another}
        </button>
      </div>
      {curves.times_s.length > 1 && (
        <Chart curves={curves} label={T.curves} view={{ from: 0, to: curves.times_s.at(-1) ?? 1 }} />
      )}
    </section>
  );
}

/** What the robot that is connected cannot do, and at which other level it can. */
function NotHere() {
  return (
    <section class="card" aria-labelledby="ready-title" data-testid="not-here">
      <h2 id="ready-title">{T.title}</h2>
      {!robot.canElsewhere("teach") && <p class="muted">{T.noWire}</p>}
      <Levels />
    </section>
  );
}

export function TeachScreen() {
  const on = recording();
  // Before the first sample there is nothing to ask for.
  useRecording(on && (robot.activity.value?.samples ?? 0) > 0);
  return (
    <>
      <UnsavedTakes />
      <Teaching on={on} />
    </>
  );
}

function Teaching({ on }: { on: boolean }) {
  if (on) return <Recording />;
  if (robot.connected.value && !robot.can("teach")) return <NotHere />;
  if (robot.tipsRead.value === "no") return <Tips />;
  if (result.value) return <Result taught={result.value.taught} saved={result.value.name} />;
  return <Ready />;
}
