/** The robots of the stage, GO, and the report of the last run. */

import { useEffect, useState } from "preact/hooks";
import { sentence } from "../../format";
import { now } from "../../state/clock";
import { robot } from "../../state/robot";
import { showEditor } from "../../state/show-editor";
import { stage } from "../../state/stage";
import { TEXTS } from "../../texts";
import type { StageRobot } from "../../types";
import { bindStyles } from "../../css";
import styles from "./go-card.module.css";

const css = bindStyles(styles);
const T = TEXTS.show;

const HOWS = ["show", "rehearsal", "lights"] as const;

function RobotRow({ robot }: { robot: StageRobot }) {
  const role = Object.entries(showEditor.cast.value).find(([, name]) => name === robot.name)?.[0];
  const state = !robot.reachable ? "lost" : robot.ready ? "connected" : "connecting";
  const words = !robot.reachable
    ? T.lamp.lost
    : robot.moving
      ? T.lamp.moves
      : robot.ready
        ? T.lamp.ready
        : T.lamp.waits;
  return (
    <li class={css("robot-row")} data-testid="stage-robot" data-name={robot.name} data-state={state}>
      <span class={`dot ${state}`} aria-hidden="true" />
      <span class={css("robot-name")}>
        {robot.name}
        {role && <span class="muted"> · {role}</span>}
      </span>
      <span class="muted">{words}</span>
      <span class="numbers muted">{robot.clock_bound_ms === null ? "" : `±${robot.clock_bound_ms.toFixed(1)} ms`}</span>
      {(robot.fault || robot.faults.length > 0) && (
        <span class={css("bad-words robot-fault")}>{[robot.fault, ...robot.faults].filter(Boolean).join("; ")}</span>
      )}
    </li>
  );
}

/** What the show does, or waits for. */
function RunWords() {
  const run = stage.current.value?.run;
  const [, tick] = useState(0);
  const counts = run?.elapsed_s != null && run.elapsed_s < 0;
  useEffect(() => {
    if (!counts) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 200);
    return () => clearInterval(timer);
  }, [counts]);
  if (!run) return null;
  const left = run.elapsed_s === null ? null : -(run.elapsed_s + now() - stage.receivedAt.value);
  const words =
    run.state === "checking"
      ? T.run.checking
      : run.state === "waiting"
        ? T.run.waiting(run.section, T.waits[run.waits ?? "go"](run.detail))
        : left !== null && left > 0
          ? T.run.soon(run.section, Math.ceil(left))
          : left !== null
            ? T.run.playing(run.section)
            : T.run.starting(run.section);
  return (
    <p class={css("run-words")} role="status" data-testid="run" data-state={run.state} data-section={run.section}>
      {words}
    </p>
  );
}

function Last() {
  const current = stage.current.value;
  const last = current?.last;
  if (!last || current?.run) return null;
  const complete = !last.ended && last.sections.every((each) => each.incomplete.length === 0);
  return (
    <div class="last" data-testid="last-show">
      {last.unconfirmed.length > 0 && <p class="bad-words">{T.unconfirmed(last.unconfirmed.join(", "))}</p>}
      <p class={complete ? "good-words" : "muted"}>
        {last.ended
          ? T.endedEarly(sentence(last.ended))
          : complete
            ? T.endedWell(last.show)
            : T.endedIncomplete(last.show)}
        {last.lost.length > 0 && ` ${T.lost(last.lost.join(", "))}`}
      </p>
      <ul>
        {last.sections.map((each, index) => (
          <li key={index} class="muted small numbers">
            {T.sectionReport(each.name, each.skew_ms.max)}
            {each.late.length > 0 && ` ${T.late(each.late.join(", "))}`}
            {each.lost.length > 0 && ` ${T.lost(each.lost.join(", "))}`}
            {each.incomplete
              .filter((name) => !each.lost.includes(name))
              .map((name) => ` ${T.incomplete(name, each.faults[name] ?? "")}`)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Why GO cannot be pressed; empty where it can. */
function against(): string {
  const current = stage.current.value;
  if (!current?.there) return T.noStage;
  if (!robot.mayCommand.value) return T.watching;
  if (current.stop) return T.stopHolds;
  if (current.run) return current.run.state === "waiting" ? "" : T.run.busy;
  if (!showEditor.file.value.name || showEditor.unsaved.value) return T.saveFirst;
  if (showEditor.checked.value && !showEditor.checked.value.ok) return T.cannot;
  const uncast = showEditor.roles.value.filter((role) => !showEditor.cast.value[role]);
  return uncast.length ? T.uncast(uncast.join(", ")) : "";
}

export function GoCard() {
  const current = stage.current.value;
  const why = against();
  const run = current?.run;
  return (
    <section class="card go-card" aria-labelledby="go-title" data-testid="go-card">
      <div class="row spread wrap">
        <h2 id="go-title">{T.stage}</h2>
        {current?.there && !run && (
          <label class="inline">
            <span class="hidden">{T.how}</span>
            <select
              value={showEditor.how.value}
              aria-label={T.how}
              data-testid="how"
              onChange={(event) => (showEditor.how.value = event.currentTarget.value as (typeof HOWS)[number])}
            >
              {HOWS.map((each) => (
                <option key={each} value={each}>
                  {T.hows[each]}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      {current?.there ? (
        <>
          <ul class={css("robots")} aria-label={T.robots}>
            {current.robots.map((robot) => (
              <RobotRow key={robot.name} robot={robot} />
            ))}
          </ul>
          {current.robots.length === 0 && <p class="muted">{T.noRobots}</p>}
          {current.stop && (
            <div class={css("stop-holds")} role="alert" data-testid="stop-holds">
              <p>
                <strong>{T.stopBy(current.stop.by)}</strong>{" "}
                {current.stop.unconfirmed.length
                  ? T.unconfirmed(current.stop.unconfirmed.join(", "))
                  : T.confirmed(current.stop.confirmed_ms)}
              </p>
              <button
                type="button"
                class="button"
                disabled={!robot.mayCommand.value}
                onClick={showEditor.release}
                data-testid="release"
              >
                {T.release}
              </button>
            </div>
          )}
          <RunWords />
          <button
            type="button"
            class={css("button primary go")}
            disabled={why !== "" || showEditor.working.value}
            onClick={() => void showEditor.go()}
            data-testid="go"
          >
            {run?.state === "waiting" ? T.goNext(run.section) : T.go}
          </button>
          {why && !current.stop && why !== T.run.busy && (
            <p class="muted small" data-testid="go-why">
              {why}
            </p>
          )}
          <Last />
        </>
      ) : (
        <div data-testid="no-stage">
          <p>{T.noStage}</p>
          <p class="muted small">{T.howStage}</p>
          <p>
            <code class="mono">rote web --stage-robots 2</code>
          </p>
          <p>
            <code class="mono">rote web --stage DIR</code>
          </p>
        </div>
      )}
    </section>
  );
}
