/** The 3D view, kept for all screens: it draws the live pose, the ghost and the countdown. */

import { useEffect, useRef, useState } from "preact/hooks";
import { effect } from "@preact/signals";
import type { Stage } from "../scene/stage";
import { api } from "../api";
import { now } from "../state/clock";
import { robot } from "../state/robot";
import { scene } from "../state/scene";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { Notices } from "./dialog";
import { Ends } from "./ends";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./view.module.css";

const css = bindStyles(styles);

function mood(): "idle" | "teaching" | "playing" | "lost" {
  if (scene.robotGroup.value) return "idle";
  if (!robot.connected.value || scene.guest.value) return "lost";
  const kind = robot.activity.value?.kind ?? "idle";
  if (kind === "teaching") return "teaching";
  return kind === "idle" ? "idle" : "playing";
}

export function View() {
  const host = useRef<HTMLDivElement>(null);
  const stage = useRef<Stage | null>(null);
  const [tooSlow, setTooSlow] = useState(false);
  const [state, setState] = useState<"loading" | "shown" | "missing">("loading");
  const visitor = scene.guest.value;
  const known = visitor?.model ?? robot.model.value;
  const wanted = ui.quality.value;

  useEffect(() => {
    if (!known || !host.current) return;
    const box = host.current;
    let over = false;
    let cleanups: (() => void)[] = [];
    void import("../scene/stage").then(({ Stage: Made, easel }) => {
      if (over) return;
      try {
        const made = easel(() => newCanvas(box), wanted === "auto" ? (tooSlow ? "low" : null) : wanted);
        ui.softwareRendering.value = made.bare;
        if (wanted === "high" && made.bare) {
          ui.quality.value = "auto"; // and so it is not remembered
          ui.notify(TEXTS.qualityRefused);
        }
        const shown = new Made(made, known, () => {
          setTooSlow(true);
          if (wanted !== "high") return;
          ui.quality.value = "low";
          ui.notify(TEXTS.qualityDropped);
        });
        stage.current = shown;
        made.canvas.dataset["quality"] = made.quality;
        made.canvas.dataset["robot"] = known.build;
        cleanups = [...follow(shown, made.canvas, () => setState("shown")), () => shown.dispose()];
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
      for (const cleanUp of cleanups) cleanUp();
    };
  }, [known, wanted, tooSlow]);

  const turnable = scene.onTurnJoint.value !== null;
  return (
    <section class={css("view")} data-testid="view" aria-label={TEXTS.stageTitle}>
      <div ref={host} class={css("host")} data-state={state} data-testid="stage" />
      {state === "loading" && <p class={css("view-note")}>{TEXTS.stageLoading}</p>}
      {state === "missing" && <p class={css("view-note")}>{TEXTS.stageMissing}</p>}
      <div class={css("view-corner")}>
        {scene.robotGroup.value && <span class="chip ghost">{TEXTS.show.cast3d}</span>}
        {!robot.connected.value && !visitor && !scene.robotGroup.value && (
          <span class="chip still" data-testid="still">
            {TEXTS.stageStill}
          </span>
        )}
        {visitor && (
          <span class="chip ghost" data-testid="guest">
            {TEXTS.stageGuest(visitor.model.title)}
          </span>
        )}
        {robot.connection.value?.simulated && !visitor && !scene.robotGroup.value && (
          <span class="chip">{TEXTS.connection.simulated}</span>
        )}
        {scene.ghost.value && <span class="chip ghost">{TEXTS.ghostLabel}</span>}
        {turnable && <span class="chip turn">{TEXTS.stageTurn[robot.limbs.value]}</span>}
      </div>
      <button
        type="button"
        class={css("icon-button view-home")}
        aria-label={TEXTS.stageHome}
        title={TEXTS.stageHome}
        onClick={() => stage.current?.home()}
      >
        <Icon name="home" />
      </button>
      {scene.countdown.value !== null && (
        <div class={css("countdown")} role="alert" data-testid="countdown">
          <span class={css("countdown-number")} key={scene.countdown.value}>
            {scene.countdown.value}
          </span>
          <span>{scene.countdownText.value || TEXTS.teach.countdown[robot.limbs.value]}</span>
          <span class={css("countdown-end")}>{TEXTS.teach.countdownEnd}</span>
        </div>
      )}
      {state === "shown" && scene.limbHandles.value && <Ends stage={stage} />}
      <Notices />
    </section>
  );
}

/** Put a new canvas into the box: a used one keeps its context, which cannot change its mind. */
function newCanvas(box: HTMLElement): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.className = css("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", TEXTS.stage);
  box.replaceChildren(canvas);
  return canvas;
}

/** Let the stage follow the page; returns what ends that. */
function follow(made: Stage, element: HTMLCanvasElement, shown: () => void): (() => void)[] {
  let frame = 0;
  const draw = (at: number): void => {
    const pose = scene.guest.peek()?.pose ?? robot.poses.at(now());
    if (pose) made.show(pose);
    made.frame(at);
    element.dataset["frames"] = String(made.frames);
    if (made.frames > 0) shown();
    frame = requestAnimationFrame(draw);
  };
  frame = requestAnimationFrame(draw);
  return [
    () => cancelAnimationFrame(frame),
    effect(() => made.theme(ui.dark.value)),
    effect(() => made.mood(mood())),
    effect(() => made.preview(scene.ghost.value)),
    effect(() => made.point(scene.highlighted.value)),
    effect(() => made.turnable(scene.onTurnJoint.value)),
    effect(() => made.gather(scene.robotGroup.value)),
    effect(() => made.perform(scene.groupPoses.value)),
  ];
}
