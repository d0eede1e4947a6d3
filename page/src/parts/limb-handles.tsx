/** Handles on the hands and feet of the ghost, for mouse, finger and keys. Dragging one makes a keyframe or a proposal. */

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Lead, Viewport3D } from "../scene/viewport3d";
import { scene } from "../state/scene";
import { TEXTS } from "../texts";
import type { LimbEnd, Vector } from "../types";
import { bindStyles } from "../css";
import styles from "./limb-handles.module.css";

const css = bindStyles(styles);
const T = TEXTS.edit;
const STEP_M = 0.02;
/** Time after the last key until the handle counts as released. */
const RELEASE_MS = 800;
const STEPS: Record<string, Vector> = {
  ArrowLeft: [-STEP_M, 0, 0],
  ArrowRight: [STEP_M, 0, 0],
  ArrowUp: [0, STEP_M, 0],
  ArrowDown: [0, -STEP_M, 0],
  PageUp: [0, 0, STEP_M],
  PageDown: [0, 0, -STEP_M],
};

/** The pose of the ghost, or of the robot that is shown in its stead. */
const shownPose = (): readonly number[] | null => scene.guest.peek()?.pose ?? scene.ghost.peek();

const nameOf = (end: LimbEnd, index: number): string =>
  (T.ends as Record<string, string>)[end.limb] ?? T.end(index + 1);

export function LimbHandles({ viewport }: { viewport: RefObject<Viewport3D | null> }) {
  const handles = scene.limbHandles.value;
  const box = useRef<HTMLDivElement>(null);
  const lead = useRef<Lead | null>(null);
  const timer = useRef(0);
  const moved = useRef(false);

  useEffect(() => {
    let frame = 0;
    const put = (): void => {
      frame = requestAnimationFrame(put);
      const pose = shownPose();
      const places = pose && handles ? viewport.current?.endPlaces(handles.ends, pose) : [];
      [...(box.current?.children ?? [])].forEach((element, index) => {
        const place = places?.[index];
        const grip = element as HTMLElement;
        grip.hidden = !place?.seen;
        if (!place) return;
        grip.style.setProperty("--x", `${place.x}px`);
        grip.style.setProperty("--y", `${place.y}px`);
        const [forward, left, up] = place.at_m.map((each) => Math.round(100 * each)) as Vector;
        const words = T.endAt(forward, left, up);
        if (grip.getAttribute("aria-valuetext") === words) return;
        grip.setAttribute("aria-valuetext", words);
        grip.setAttribute("aria-valuenow", String(up));
      });
    };
    frame = requestAnimationFrame(put);
    return () => cancelAnimationFrame(frame);
  }, [handles]);
  useEffect(() => () => clearTimeout(timer.current), []);
  if (!handles) return null;

  const move = (end: LimbEnd, pose: readonly number[]): void => {
    moved.current = true;
    const joints = viewport.current?.columns(end.joints) ?? {};
    handles.onMove(Object.fromEntries(Object.entries(joints).map(([name, column]) => [name, pose[column] ?? 0])));
  };
  const release = (): void => {
    clearTimeout(timer.current);
    lead.current = null;
    if (moved.current) handles.onDone();
    moved.current = false;
  };
  const drag = (end: LimbEnd) => (event: PointerEvent) => {
    const target = event.currentTarget as HTMLElement;
    if (event.type === "pointerdown") {
      const pose = shownPose();
      if (event.button !== 0 || !pose) return;
      target.setPointerCapture(event.pointerId);
      lead.current = viewport.current?.take(end, pose, event) ?? null;
    } else if (event.type === "pointermove") {
      if (lead.current && target.hasPointerCapture(event.pointerId)) move(end, lead.current(event));
    } else release();
  };
  const press = (end: LimbEnd) => (event: KeyboardEvent) => {
    const by = STEPS[event.key];
    const pose = shownPose();
    if (event.key === "Enter") return release();
    if (!by || !pose || !viewport.current) return;
    event.preventDefault();
    move(end, viewport.current.nudge(end, pose, by.map((each) => each / (event.shiftKey ? 4 : 1)) as Vector));
    clearTimeout(timer.current);
    timer.current = window.setTimeout(release, RELEASE_MS);
  };
  return (
    <div class="ends" ref={box}>
      {handles.ends.map((end, index) => (
        <div
          key={`${end.link} ${end.limb}`}
          class={css("limb-end")}
          role="slider"
          tabIndex={0}
          hidden
          aria-label={nameOf(end, index)}
          aria-description={T.endHelp}
          aria-valuemin={-300}
          aria-valuemax={300}
          aria-valuenow={0}
          title={`${nameOf(end, index)}: ${T.endHelp}`}
          data-testid={`end-${end.limb}`}
          onPointerDown={drag(end)}
          onPointerMove={drag(end)}
          onPointerUp={drag(end)}
          onPointerCancel={drag(end)}
          onKeyDown={press(end)}
          onBlur={release}
        />
      ))}
    </div>
  );
}
