/** The 3D view, kept for all screens: it draws the live pose, the ghost and the countdown. */

import { useEffect, useRef, useState } from "preact/hooks";
import { effect } from "@preact/signals";
import type { Viewport3D } from "../scene/viewport3d";
import { chooseRenderer, type Renderer } from "../scene/renderer";
import { api } from "../api";
import { now } from "../state/clock";
import { robot } from "../state/robot";
import { scene } from "../state/scene";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { Notices } from "./dialog";
import { LimbHandles } from "./limb-handles";
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
  const viewport = useRef<Viewport3D | null>(null);
  const [tooSlow, setTooSlow] = useState(false);
  const [state, setState] = useState<"loading" | "shown" | "missing">("loading");
  const guest = scene.guest.value;
  const known = guest?.model ?? robot.model.value;
  const requested = ui.quality.value;

  useEffect(() => {
    if (!known || !host.current) return;
    const box = host.current;
    let over = false;
    let cleanups: (() => void)[] = [];
    let made: Renderer;
    try {
      made = chooseRenderer(() => newCanvas(box), requested === "auto" ? (tooSlow ? "low" : null) : requested);
    } catch {
      setState("missing"); // and the code that would draw is not loaded
      return;
    }
    void import("../scene/viewport3d").then(({ Viewport3D }) => {
      if (over) {
        made.gl.getExtension("WEBGL_lose_context")?.loseContext();
        return;
      }
      try {
        ui.softwareRendering.value = made.software;
        if (requested === "high" && made.software) {
          ui.quality.value = "auto"; // and so it is not remembered
          ui.notify(TEXTS.qualityRefused);
        }
        const shown = new Viewport3D(made, known, () => {
          setTooSlow(true);
          if (requested !== "high") return;
          ui.quality.value = "low";
          ui.notify(TEXTS.qualityDropped);
        });
        viewport.current = shown;
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
      viewport.current = null;
      for (const cleanUp of cleanups) cleanUp();
    };
  }, [known, requested, tooSlow]);

  const turnable = scene.onTurnJoint.value !== null;
  return (
    <section class={css("view")} data-testid="view" aria-label={TEXTS.viewportTitle}>
      <div ref={host} class={css("host")} data-state={state} data-testid="stage" />
      {state === "loading" && <p class={css("view-note")}>{TEXTS.viewportLoading}</p>}
      {state === "missing" && <p class={css("view-note")}>{TEXTS.viewportMissing}</p>}
      <div class={css("view-corner")}>
        {scene.robotGroup.value && <span class="chip ghost">{TEXTS.show.cast3d}</span>}
        {!robot.connected.value && !guest && !scene.robotGroup.value && (
          <span class="chip still" data-testid="still">
            {TEXTS.viewportStill}
          </span>
        )}
        {guest && (
          <span class="chip ghost" data-testid="guest">
            {TEXTS.viewportGuest(guest.model.title)}
          </span>
        )}
        {robot.connection.value?.simulated && !guest && !scene.robotGroup.value && (
          <span class="chip">{TEXTS.connection.simulated}</span>
        )}
        {scene.ghost.value && <span class="chip ghost">{TEXTS.ghostLabel}</span>}
        {turnable && <span class="chip turn">{TEXTS.viewportTurn[robot.limbs.value]}</span>}
      </div>
      <button
        type="button"
        class={css("icon-button view-home")}
        aria-label={TEXTS.viewportHome}
        title={TEXTS.viewportHome}
        onClick={() => viewport.current?.home()}
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
      {state === "shown" && scene.limbHandles.value && <LimbHandles viewport={viewport} />}
      <Notices />
    </section>
  );
}

/** Put a new canvas into the box: a used one keeps its context, which cannot change its mind. */
function newCanvas(box: HTMLElement): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.className = css("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", TEXTS.viewport);
  box.replaceChildren(canvas);
  return canvas;
}

/** Let the view follow the stores; return the functions that end it. */
function follow(made: Viewport3D, element: HTMLCanvasElement, shown: () => void): (() => void)[] {
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
