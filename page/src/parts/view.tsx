/** The 3D view, kept for all screens: it draws the live pose, the ghost and the countdown. */

import { useEffect, useRef, useState } from "preact/hooks";
import { effect } from "@preact/signals";
import type { Stage } from "../scene/stage";
import { api } from "../api";
import {
  activity,
  bare,
  company,
  connected,
  companyPoses,
  connection,
  countdown,
  countdownFor,
  dark,
  ends,
  ghost,
  guest,
  limbs,
  model,
  now,
  onTurn,
  pointed,
  poses,
  quality,
  say,
} from "../store";
import { TEXTS } from "../texts";
import { Notices } from "./dialog";
import { Ends } from "./ends";
import { Icon } from "./icons";

function mood(): "idle" | "teaching" | "playing" | "lost" {
  if (company.value) return "idle";
  if (!connected.value || guest.value) return "lost";
  const kind = activity.value?.kind ?? "idle";
  if (kind === "teaching") return "teaching";
  return kind === "idle" ? "idle" : "playing";
}

export function View() {
  const host = useRef<HTMLDivElement>(null);
  const stage = useRef<Stage | null>(null);
  const [tooSlow, setTooSlow] = useState(false);
  const [state, setState] = useState<"loading" | "shown" | "missing">("loading");
  const visitor = guest.value;
  const known = visitor?.model ?? model.value;
  const wanted = quality.value;

  useEffect(() => {
    if (!known || !host.current) return;
    const box = host.current;
    let over = false;
    let ends: (() => void)[] = [];
    void import("../scene/stage").then(({ Stage: Made, easel }) => {
      if (over) return;
      try {
        const made = easel(() => newCanvas(box), wanted === "auto" ? (tooSlow ? "low" : null) : wanted);
        bare.value = made.bare;
        if (wanted === "high" && made.bare) {
          quality.value = "auto"; // and so it is not remembered
          say(TEXTS.qualityRefused);
        }
        const shown = new Made(made, known, () => {
          setTooSlow(true);
          if (wanted !== "high") return;
          quality.value = "low";
          say(TEXTS.qualityDropped);
        });
        stage.current = shown;
        made.canvas.dataset["quality"] = made.quality;
        made.canvas.dataset["robot"] = known.build;
        ends = [...follow(shown, made.canvas, () => setState("shown")), () => shown.dispose()];
        // Until they are there, and where they are not, it has shapes of its own.
        if (known.model)
          void shown.wear(api.shapes(known.build)).then(
            () => (made.canvas.dataset["shapes"] = "real"),
            () => undefined,
          );
      } catch {
        setState("missing");
      }
    });
    return () => {
      over = true;
      stage.current = null;
      for (const end of ends) end();
    };
  }, [known, wanted, tooSlow]);

  const turnable = onTurn.value !== null;
  return (
    <section class="view" aria-label={TEXTS.stageTitle}>
      <div ref={host} class="host" data-state={state} data-testid="stage" />
      {state === "loading" && <p class="view-note">{TEXTS.stageLoading}</p>}
      {state === "missing" && <p class="view-note">{TEXTS.stageMissing}</p>}
      <div class="view-corner">
        {company.value && <span class="chip ghost">{TEXTS.show.cast3d}</span>}
        {!connected.value && !visitor && !company.value && (
          <span class="chip still" data-testid="still">
            {TEXTS.stageStill}
          </span>
        )}
        {visitor && (
          <span class="chip ghost" data-testid="guest">
            {TEXTS.stageGuest(visitor.model.title)}
          </span>
        )}
        {connection.value?.simulated && !visitor && !company.value && (
          <span class="chip">{TEXTS.connection.simulated}</span>
        )}
        {ghost.value && <span class="chip ghost">{TEXTS.ghostLabel}</span>}
        {turnable && <span class="chip turn">{TEXTS.stageTurn[limbs.value]}</span>}
      </div>
      <button
        type="button"
        class="icon-button view-home"
        aria-label={TEXTS.stageHome}
        title={TEXTS.stageHome}
        onClick={() => stage.current?.home()}
      >
        <Icon name="home" />
      </button>
      {countdown.value !== null && (
        <div class="countdown" role="alert" data-testid="countdown">
          <span class="countdown-number" key={countdown.value}>
            {countdown.value}
          </span>
          <span>{countdownFor.value || TEXTS.teach.countdown[limbs.value]}</span>
          <span class="countdown-end">{TEXTS.teach.countdownEnd}</span>
        </div>
      )}
      {state === "shown" && ends.value && <Ends stage={stage} />}
      <Notices />
    </section>
  );
}

/** Put a new canvas into the box: a used one keeps its context, which cannot change its mind. */
function newCanvas(box: HTMLElement): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.className = "canvas";
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", TEXTS.stage);
  box.replaceChildren(canvas);
  return canvas;
}

/** Let the stage follow the page; returns what ends that. */
function follow(made: Stage, element: HTMLCanvasElement, shown: () => void): (() => void)[] {
  let frame = 0;
  const draw = (at: number): void => {
    const pose = guest.peek()?.pose ?? poses.at(now());
    if (pose) made.show(pose);
    made.frame(at);
    element.dataset["frames"] = String(made.frames);
    if (made.frames > 0) shown();
    frame = requestAnimationFrame(draw);
  };
  frame = requestAnimationFrame(draw);
  return [
    () => cancelAnimationFrame(frame),
    effect(() => made.theme(dark.value)),
    effect(() => made.mood(mood())),
    effect(() => made.preview(ghost.value)),
    effect(() => made.point(pointed.value)),
    effect(() => made.turnable(onTurn.value)),
    effect(() => made.gather(company.value)),
    effect(() => made.perform(companyPoses.value)),
  ];
}
