/** The cue list of the running show: what plays, what is next, and its commands. */

import { useEffect, useState } from "preact/hooks";
import type { ControlCues } from "../../api-types";
import { sentence } from "../../format";
import { Icon } from "../../parts/icons";
import { now } from "../../state/clock";
import { robot } from "../../state/robot";
import { showEditor } from "../../state/show-editor";
import { stage } from "../../state/stage";
import { TEXTS } from "../../texts";
import type { StageNow } from "../../types";
import { bindStyles } from "../../css";
import styles from "./cue-list.module.css";

const css = bindStyles(styles);
const T = TEXTS.show;

function describe(run: NonNullable<StageNow["run"]>, since_s: number): string {
  if (run.state === "starting") {
    const until_s = run.elapsed_s === null ? 0 : -(run.elapsed_s + since_s);
    return until_s > 0 ? T.run.soon(run.section, Math.ceil(until_s)) : T.run.starting(run.section);
  }
  if (run.state === "waiting") return T.run.waiting(run.section, T.waits[run.waits ?? "go"](run.detail));
  return T.run[run.state](run.section);
}

/** What the show does, the time left, and what is next. */
export function RunWords() {
  const run = stage.current.value?.run;
  const [, tick] = useState(0);
  const counts = run?.state === "playing" || run?.state === "starting";
  useEffect(() => {
    if (!counts) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 200);
    return () => clearInterval(timer);
  }, [counts]);
  if (!run) return null;
  const since_s = run.state === "paused" ? 0 : now() - stage.receivedAt.value;
  return (
    <div class={css("run")}>
      <p class={css("run-words")} role="status" data-testid="run" data-state={run.state} data-section={run.section}>
        {describe(run, since_s)}
      </p>
      {run.left_s !== null && (
        <p class={css("numbers time-left")} data-testid="time-left">
          {T.cueList.left(Math.ceil(Math.max(0, run.left_s - since_s)))}
        </p>
      )}
      {run.section && (
        <p class="muted" data-testid="next-section">
          {run.next ? T.cueList.next(run.next) : T.cueList.last}
        </p>
      )}
      {run.state === "paused" && <p class="muted small">{T.cueList.pausedNote}</p>}
      {run.interruption && <p class="bad-words">{sentence(run.interruption)}</p>}
    </div>
  );
}

/** BACK, pause, skip and the end of the show; the stage refuses what is not possible now. */
export function CueButtons() {
  const run = stage.current.value?.run;
  if (!run?.section) return null;
  const disabled = !robot.mayCommand.value || stage.working.value;
  const send = (command: ControlCues) => () => void stage.control(command);
  const isPaused = run.state === "paused";
  return (
    <div class={css("cue-buttons")} role="group" aria-label={T.cueList.title}>
      <button type="button" class="button" disabled={disabled} onClick={send({ verb: "back" })} data-testid="cue-back">
        {T.cueList.back}
      </button>
      <button
        type="button"
        class="button"
        disabled={disabled || !(isPaused || run.state === "playing")}
        onClick={send({ verb: isPaused ? "resume" : "pause" })}
        data-testid="cue-pause"
      >
        <Icon name={isPaused ? "play" : "pause"} />
        {isPaused ? T.cueList.resume : T.cueList.pause}
      </button>
      <button type="button" class="button" disabled={disabled} onClick={send({ verb: "skip" })} data-testid="cue-skip">
        {T.cueList.skip}
      </button>
      <button
        type="button"
        class="button"
        disabled={disabled}
        onClick={send({ verb: "finish" })}
        data-testid="cue-finish"
      >
        {T.cueList.finish}
      </button>
    </div>
  );
}

/** The sections of the show; each can be the next one. */
export function Sections() {
  const run = stage.current.value?.run;
  const names = run ? run.sections : showEditor.sections.value.map(({ name }) => name);
  if (names.length < 2) return null;
  const current = run ? run.section : (showEditor.firstSection.value ?? names[0]);
  const select = (section: string): void => {
    if (run) void stage.control({ verb: "jump", section });
    else showEditor.chooseFirst(section);
  };
  return (
    <ol class={css("cue-sections")} aria-label={T.sections}>
      {names.map((name) => (
        <li key={name} aria-current={name === current ? "step" : undefined} data-testid="cue-section" data-name={name}>
          <span class={css("cue-section-name")}>
            {name === current ? <strong>{name}</strong> : name}
            {name === current && <span class="muted"> · {run ? T.cueList.states[run.state] : T.cueList.first}</span>}
            {run && name === run.next && name !== current && <span class="muted"> · {T.cueList.isNext}</span>}
          </span>
          <button
            type="button"
            class="button quiet"
            aria-label={T.cueList.startAt(name)}
            disabled={!robot.mayCommand.value || stage.working.value || (!!run && run.section === "")}
            onClick={() => select(name)}
            data-testid="start-here"
          >
            {T.cueList.startHere}
          </button>
        </li>
      ))}
    </ol>
  );
}
