/** The play bar, under every screen: what moves, how far it is, and STOP. */

import { useEffect, useRef } from "preact/hooks";
import { api } from "../api";
import { seconds, sentence } from "../format";
import { type Heading, headingOf } from "../heading";
import { stop, stopFailure, stopReport } from "../live";
import { now } from "../state/clock";
import { connection } from "../state/connection";
import { eventLog } from "../state/event-log";
import { playback } from "../state/playback";
import { robot } from "../state/robot";
import { stage } from "../state/stage";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./bar.module.css";

const css = bindStyles(styles);
const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2];
const REPORT_S = 7;

function heading(): Heading {
  if (connection.link.value === "full") return { title: TEXTS.link.full, note: "", alarm: true };
  if (connection.stale.value) return { title: TEXTS.bar.unknown, note: TEXTS.link.notLive, alarm: true };
  if (connection.link.value === "opening") return { title: TEXTS.link.opening, note: "" };
  const made = headingOf({
    status: robot.status.value,
    stage: stage.current.value,
    limbs: robot.limbs.value,
    words: robot.describeState,
  });
  const rests = robot.activity.value?.kind === "idle" && !stage.current.value?.run && !made.alarm;
  return rests && eventLog.cutShort.value ? { ...made, note: eventLog.cutShort.value } : made;
}

/** The share done and the time gone, going on between the server's words. */
function progress(): { share: number | null; message: string } {
  const doing = robot.activity.peek();
  const run = connection.link.peek() === "open" ? stage.current.peek()?.run : null;
  if ((run?.state === "playing" || run?.state === "paused") && run.elapsed_s !== null) {
    const since = run.state === "paused" ? 0 : now() - stage.receivedAt.peek();
    const gone = Math.max(0, run.elapsed_s + since);
    const share = run.duration_s > 0 ? Math.min(1, gone / run.duration_s) : 1;
    return { share, message: `${seconds(share * run.duration_s)} / ${seconds(run.duration_s)}` };
  }
  if (connection.link.peek() !== "open" || !doing || doing.kind === "idle" || (!doing.name && doing.phase === "return"))
    return { share: 0, message: "" };
  const since = Math.min(1.5, Math.max(0, now() - robot.statusAt.peek()));
  if (doing.kind === "teaching")
    return { share: null, message: seconds(doing.elapsed_s + (robot.paused.peek() ? 0 : since)) };
  if (!doing.duration_s) return { share: null, message: seconds(doing.elapsed_s + since) };
  const running = doing.phase === "playing";
  const share = Math.min(1, doing.fraction + (running ? since / doing.duration_s : 0));
  return { share, message: `${seconds(share * doing.duration_s)} / ${seconds(doing.duration_s)}` };
}

function Progress() {
  const fill = useRef<HTMLDivElement>(null);
  const words = useRef<HTMLSpanElement>(null);
  const track = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const draw = (): void => {
      const { share, message: text } = progress();
      fill.current?.style.setProperty("transform", `scaleX(${share ?? 1})`);
      track.current?.classList.toggle(css("endless"), share === null);
      track.current?.setAttribute("aria-valuenow", String(Math.round((share ?? 0) * 100)));
      if (words.current && words.current.textContent !== text) words.current.textContent = text;
    };
    const timer = setInterval(draw, 100);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class={css("bar-progress")}>
      <div
        class={css("track")}
        ref={track}
        role="progressbar"
        aria-label={TEXTS.bar.progress}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <div class={css("done")} ref={fill} />
      </div>
      <span class="numbers" ref={words} />
    </div>
  );
}

function Tempo() {
  const plays = robot.activity.value?.kind === "playing" || robot.activity.value?.kind === "performing";
  const paced = robot.can("tempo") || robot.can("stream");
  const tempo = paced && !plays;
  const why = paced ? TEXTS.bar.takesOnly : TEXTS.bar.noTempo;
  const note = robot.connected.value && !robot.can("tempo") ? why : plays ? TEXTS.bar.nextTime : undefined;
  return (
    <div class={css("bar-tempo")} title={note}>
      <label class="inline">
        <span>{TEXTS.bar.speed}</span>
        <select
          value={String(playback.speed.value)}
          aria-label={TEXTS.bar.speed}
          disabled={!tempo}
          onChange={(event) => (playback.speed.value = Number(event.currentTarget.value))}
        >
          {SPEEDS.map((each) => (
            <option key={each} value={String(each)}>
              {each} ×
            </option>
          ))}
        </select>
      </label>
      <button
        type="button"
        class="toggle"
        aria-pressed={playback.loop.value}
        disabled={!tempo}
        onClick={() => (playback.loop.value = !playback.loop.value)}
        aria-label={TEXTS.bar.loop}
        title={note ?? (playback.loop.value ? TEXTS.bar.loopOn : TEXTS.bar.loopOff)}
      >
        <Icon name="loop" />
        <span>{TEXTS.bar.loop}</span>
      </button>
      {plays && paced && <small class={css("tempo-note")}>{TEXTS.bar.nextTime}</small>}
    </div>
  );
}

/** A stop that failed: it stays until a person has dismissed it. */
function Failure({ why, confirmed }: { why: string; confirmed: string }) {
  // While the server keeps sending it, the banner says why.
  const words = confirmed || (robot.status.value?.unconfirmed_stop ? "" : why);
  return (
    <div class={css(confirmed ? "report late" : "report failed")} data-testid="stop-failed">
      <p>
        <strong>{confirmed ? TEXTS.stop.late : TEXTS.stop.failed}</strong>{" "}
        <span>{sentence(words) || TEXTS.stop.again}</span>
      </p>
      <button type="button" class="button" onClick={() => (stopFailure.value = null)}>
        {TEXTS.dismiss}
      </button>
    </div>
  );
}

/** What the last stop did: for a while if it succeeded. */
function Report() {
  const shown = stopReport.value;
  const failed = stopFailure.value;
  useEffect(() => {
    if (!shown) return undefined;
    const timer = setTimeout(() => {
      if (stopReport.peek() === shown) stopReport.value = null;
    }, REPORT_S * 1000);
    return () => clearTimeout(timer);
  }, [shown]);
  return (
    <div class={css("stop-report")} role="alert" data-testid="stop-report">
      {failed && <Failure {...failed} />}
      {shown && (
        <p class={css("report")}>
          <strong>{sentence(shown.message)}</strong> <span>{TEXTS.stop.noteLong}</span>
        </p>
      )}
    </div>
  );
}

export function Bar() {
  const { title, note, alarm } = heading();
  const doing = connection.stale.value ? null : robot.activity.value;
  const pausable = doing?.kind === "playing" && robot.can("pause-play");
  return (
    <footer class={css(robot.moving.value || stage.running.value ? "bar moving" : "bar")} aria-label={TEXTS.bar.label}>
      <Report />
      <div
        class={css(alarm ? "bar-what alarm" : "bar-what")}
        data-testid="activity"
        data-kind={doing?.kind ?? "idle"}
        data-phase={doing?.phase ?? "none"}
      >
        <span class={css(`pulse ${stage.running.value ? "playing" : (doing?.kind ?? "idle")}`)} aria-hidden="true" />
        <div>
          <p class={css("bar-title")}>{title}</p>
          <p class={css("bar-note")}>{note}</p>
        </div>
      </div>
      <Progress />
      <Tempo />
      {pausable && (
        <button
          type="button"
          class="icon-button"
          aria-label={TEXTS.bar.pause}
          disabled={!robot.mayCommand.value}
          onClick={() => ui.attempt(() => api.pause(true))}
        >
          <Icon name="pause" />
        </button>
      )}
      <div class={css("stop-box")}>
        <button
          type="button"
          class={css("stop")}
          data-testid="stop"
          onPointerDown={(event) => {
            // At the press, not the release: a finger may slide off the button.
            if (event.button === 0) void stop();
          }}
          onClick={(event) => {
            // A click with no pointer is a key or a screen reader.
            if (event.detail === 0) void stop();
          }}
        >
          <span class={css("stop-word")}>{TEXTS.stop.label}</span>
          <span class="hidden"> {TEXTS.stop.aria}</span>
          <span class={css("stop-keys")} aria-hidden="true">
            {TEXTS.stop.keys}
          </span>
        </button>
        <p class={css("stop-note")}>{TEXTS.stop.note}</p>
      </div>
    </footer>
  );
}
