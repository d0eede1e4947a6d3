/** The play bar, under every screen: what moves, how far it is, and STOP. */

import { useEffect, useRef } from "preact/hooks";
import { api } from "../api";
import { motion, seconds, sentence } from "../format";
import { stop, stopReport } from "../live";
import {
  activity,
  attempt,
  can,
  connected,
  connection,
  link,
  loop,
  mayCommand,
  moving,
  showRuns,
  stageAt,
  stageNow,
  now,
  paused,
  untilReturn,
  limbs,
  speed,
  stateWords,
  status,
  statusAt,
} from "../store";
import { TEXTS } from "../texts";
import { Icon } from "./icons";

const SPEEDS = [0.25, 0.5, 0.75, 1, 1.25, 1.5, 2];
const REPORT_S = 7;

function heading(): { title: string; note: string } {
  const doing = activity.value;
  if (link.value === "closed") return { title: TEXTS.bar.unknown, note: TEXTS.link.closed };
  if (link.value === "opening") return { title: TEXTS.link.opening, note: "" };
  const run = stageNow.value?.run;
  if (run) return { title: TEXTS.show.title(run.show), note: TEXTS.show.barNote[run.state](run.section) };
  if (!connected.value) return { title: stateWords(connection.value), note: "" };
  if (untilReturn.value !== null && (!doing || doing.kind === "idle" || doing.kind === "teaching"))
    return { title: TEXTS.hold.title[limbs.value], note: TEXTS.hold.short };
  if (!doing || doing.kind === "idle") {
    return { title: TEXTS.bar.idle, note: status.value?.holding ? TEXTS.bar.holding : TEXTS.bar.idleNote };
  }
  if (doing.kind === "teaching")
    return { title: doing.name || TEXTS.bar.teaching, note: paused.value ? TEXTS.teach.paused : TEXTS.bar.teaching };
  const phase =
    doing.phase === "none"
      ? doing.kind === "performing"
        ? TEXTS.bar.performing
        : TEXTS.bar.playing
      : TEXTS.bar[doing.phase];
  // What nobody here has begun, and the way back after a teaching, has no name.
  if (!doing.name) return { title: phase, note: "" };
  const title = doing.kind === "performing" ? motion(doing.name) : doing.name;
  return { title, note: doing.round > 1 ? `${phase}, ${TEXTS.bar.round(doing.round)}` : phase };
}

/** The share done and the time gone, going on between the server's words. */
function progress(): { share: number | null; message: string } {
  const doing = activity.peek();
  const run = link.peek() === "open" ? stageNow.peek()?.run : null;
  if (run?.state === "playing" && run.elapsed_s !== null) {
    const gone = Math.max(0, run.elapsed_s + now() - stageAt.peek());
    const share = run.duration_s > 0 ? Math.min(1, gone / run.duration_s) : 1;
    return { share, message: `${seconds(share * run.duration_s)} / ${seconds(run.duration_s)}` };
  }
  if (link.peek() !== "open" || !doing || doing.kind === "idle" || (!doing.name && doing.phase === "return"))
    return { share: 0, message: "" };
  const since = Math.min(1.5, Math.max(0, now() - statusAt.peek()));
  if (doing.kind === "teaching")
    return { share: null, message: seconds(doing.elapsed_s + (paused.peek() ? 0 : since)) };
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
      track.current?.classList.toggle("endless", share === null);
      track.current?.setAttribute("aria-valuenow", String(Math.round((share ?? 0) * 100)));
      if (words.current && words.current.textContent !== text) words.current.textContent = text;
    };
    const timer = setInterval(draw, 100);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="bar-progress">
      <div
        class="track"
        ref={track}
        role="progressbar"
        aria-label={TEXTS.bar.progress}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <div class="done" ref={fill} />
      </div>
      <span class="numbers" ref={words} />
    </div>
  );
}

function Tempo() {
  const plays = activity.value?.kind === "playing" || activity.value?.kind === "performing";
  const paced = can("tempo") || can("stream");
  const tempo = paced && !plays;
  const why = paced ? TEXTS.bar.takesOnly : TEXTS.bar.noTempo;
  const note = connected.value && !can("tempo") ? why : plays ? TEXTS.bar.nextTime : undefined;
  return (
    <div class="bar-tempo" title={note}>
      <label class="inline">
        <span>{TEXTS.bar.speed}</span>
        <select
          value={String(speed.value)}
          aria-label={TEXTS.bar.speed}
          disabled={!tempo}
          onChange={(event) => (speed.value = Number(event.currentTarget.value))}
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
        aria-pressed={loop.value}
        disabled={!tempo}
        onClick={() => (loop.value = !loop.value)}
        aria-label={TEXTS.bar.loop}
        title={note ?? (loop.value ? TEXTS.bar.loopOn : TEXTS.bar.loopOff)}
      >
        <Icon name="loop" />
        <span>{TEXTS.bar.loop}</span>
      </button>
      {plays && paced && <small class="tempo-note">{TEXTS.bar.nextTime}</small>}
    </div>
  );
}

/** What the last stop did, for a while. */
function Report() {
  const said = stopReport.value;
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => {
      if (stopReport.peek() === said) stopReport.value = null;
    }, REPORT_S * 1000);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <div class="stop-report" role="alert" data-testid="stop-report">
      {said && (
        <p class={said.good ? "said" : "said failed"}>
          <strong>{sentence(said.message)}</strong> <span>{TEXTS.stop.noteLong}</span>
        </p>
      )}
    </div>
  );
}

export function Bar() {
  const { title, note } = heading();
  const doing = activity.value;
  const pausable = doing?.kind === "playing" && can("pause-play");
  return (
    <footer class={moving.value || showRuns.value ? "bar moving" : "bar"} aria-label={TEXTS.bar.label}>
      <Report />
      <div
        class="bar-what"
        data-testid="activity"
        data-kind={doing?.kind ?? "idle"}
        data-phase={doing?.phase ?? "none"}
      >
        <span class={`pulse ${showRuns.value ? "playing" : (doing?.kind ?? "idle")}`} aria-hidden="true" />
        <div>
          <p class="bar-title">{title}</p>
          <p class="bar-note">{note}</p>
        </div>
      </div>
      <Progress />
      <Tempo />
      {pausable && (
        <button
          type="button"
          class="icon-button"
          aria-label={TEXTS.bar.pause}
          disabled={!mayCommand.value}
          onClick={() => attempt(() => api.pause(true))}
        >
          <Icon name="pause" />
        </button>
      )}
      <div class="stop-box">
        <button
          type="button"
          class="stop"
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
          <span class="stop-word">{TEXTS.stop.label}</span>
          <span class="hidden"> {TEXTS.stop.aria}</span>
          <span class="stop-keys" aria-hidden="true">
            {TEXTS.stop.keys}
          </span>
        </button>
        <p class="stop-note">{TEXTS.stop.note}</p>
      </div>
    </footer>
  );
}
