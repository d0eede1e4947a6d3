/** The robots of the stage, GO, and the report of the last run. */

import { sentence } from "../../format";
import { robot } from "../../state/robot";
import { showEditor } from "../../state/show-editor";
import { stage } from "../../state/stage";
import { TEXTS } from "../../texts";
import { bindStyles } from "../../css";
import { CueButtons, RunWords, Sections } from "./cue-list";
import { StageRobots } from "./stage-robots";
import { StopBox } from "./stop-box";
import styles from "./go-card.module.css";

const css = bindStyles(styles);
const T = TEXTS.show;

const HOWS = ["show", "rehearsal", "lights"] as const;

function Last() {
  const current = stage.current.value;
  const last = current?.last;
  if (!last || current?.run) return null;
  const complete =
    !last.ended &&
    !last.finished_early &&
    last.interruptions.length === 0 &&
    last.sections.every((each) => each.incomplete.length === 0);
  return (
    <div class="last" data-testid="last-show">
      {last.unconfirmed.length > 0 && <p class="bad-words">{T.unconfirmed(last.unconfirmed.join(", "))}</p>}
      <p class={complete ? "good-words" : "muted"}>
        {last.ended
          ? T.endedEarly(sentence(last.ended))
          : complete
            ? T.endedWell(last.show)
            : last.finished_early
              ? T.endedByOperator(last.show)
              : T.endedIncomplete(last.show)}
        {last.lost.length > 0 && ` ${T.lost(last.lost.join(", "))}`}
      </p>
      <ul>
        {last.interruptions.map((each, index) => (
          <li key={`interruption ${index}`} class="muted small">
            {sentence(each)}
          </li>
        ))}
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
  if (current.is_superseded) return T.superseded;
  if (!robot.mayCommand.value) return T.watching;
  if (current.stop) return T.stopHolds;
  if (current.run) return ["waiting", "paused"].includes(current.run.state) ? "" : T.run.busy;
  if (!showEditor.file.value.name || showEditor.unsaved.value) return T.saveFirst;
  if (showEditor.checked.value && !showEditor.checked.value.ok) return T.cannot;
  const uncast = showEditor.roles.value.filter((role) => !showEditor.cast.value[role]);
  return uncast.length ? T.uncast(uncast.join(", ")) : "";
}

function goLabel(): string {
  const run = stage.current.value?.run;
  if (run?.state === "waiting") return T.goNext(run.section);
  if (run?.state === "paused") return T.goOn;
  return !run && showEditor.firstSection.value ? T.goNext(showEditor.firstSection.value) : T.go;
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
          <StopBox />
          <RunWords />
          <button
            type="button"
            class={css("button primary go")}
            disabled={why !== "" || showEditor.working.value || stage.working.value}
            onClick={() => void showEditor.go()}
            data-testid="go"
          >
            {goLabel()}
          </button>
          <CueButtons />
          {stage.refusal.value && (
            <p class="bad-words" role="alert" data-testid="cue-refusal">
              {stage.refusal.value}
            </p>
          )}
          {why && (current.is_superseded || !current.stop) && why !== T.run.busy && (
            <p
              class={current.is_superseded ? "bad-words" : "muted small"}
              role={current.is_superseded ? "alert" : undefined}
              data-testid="go-why"
            >
              {why}
            </p>
          )}
          <StageRobots />
          <Sections />
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
