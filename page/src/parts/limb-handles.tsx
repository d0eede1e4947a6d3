/**
 * Handles on the hands and feet of the ghost, for mouse, finger and keys, and the lines of the paths they follow. The
 * screen that shows them decides what dragging one does.
 */

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Lead, Viewport3D } from "../scene/viewport3d";
import { bendShare } from "../pose";
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
  const lines = useRef<SVGSVGElement>(null);
  /** Where the ends go along the line, and by how much one of them, or all, are dragged away from where they were. */
  const paths = useRef<Vector[][]>([]);
  const bend = useRef<{ end: number; from: Vector[]; by: Vector } | null>(null);

  useEffect(() => {
    let frame = 0;
    let known: Viewport3D | null = null;
    const drawLines = (): void => {
      const line = handles?.line;
      const view = viewport.current;
      if (!line || !view) return;
      if (known !== view) paths.current = handles.ends.map((end) => view.pathOf(end, line.poses));
      known = view;
      paths.current.forEach((path, index) => {
        const isBent = line.moment && bend.current && (handles.together || bend.current.end === index);
        const by = isBent ? (bend.current?.by ?? null) : null;
        const [at_s, duration_s] = [line.moment?.() ?? 0, line.times_s.at(-1) ?? 0];
        const bent = path.map((place, row) => {
          const share = by ? bendShare(line.times_s[row] as number, at_s, duration_s) : 0;
          return by ? (place.map((each, axis) => each + share * (by[axis] as number)) as Vector) : place;
        });
        const points = view
          .project(bent)
          .map(({ x, y }) => `${x.toFixed(1)},${y.toFixed(1)}`)
          .join(" ");
        for (const each of lines.current?.children[index]?.children ?? [])
          if (each.getAttribute("points") !== points) each.setAttribute("points", points);
      });
    };
    const put = (): void => {
      frame = requestAnimationFrame(put);
      drawLines();
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
    const view = viewport.current;
    if (!view) return;
    const at_m = view.pathOf(end, [pose])[0] as Vector;
    const from =
      bend.current?.from ?? handles.ends.map((each) => view.pathOf(each, [shownPose() ?? pose])[0] as Vector);
    const dragged = handles.ends.indexOf(end);
    const by = at_m.map((each, axis) => each - (from[dragged]?.[axis] ?? 0)) as Vector;
    bend.current = { end: dragged, from, by };
    moved.current = true;
    const others = handles.together ? handles.ends.filter((each) => each !== end) : [];
    const whole = others.reduce<readonly number[]>((now, other) => {
      const start = from[handles.ends.indexOf(other)] as Vector;
      return view.reach(other, now, start.map((each, axis) => each + (by[axis] as number)) as Vector);
    }, pose);
    const joints = Object.entries(view.columns([end, ...others].flatMap((each) => each.joints)));
    const angles = Object.fromEntries(joints.map(([name, column]) => [name, whole[column] ?? 0]));
    handles.onMove(angles, end, (model, of, which = end) => view.locate(model, which, of));
  };
  const release = (): void => {
    clearTimeout(timer.current);
    lead.current = null;
    bend.current = null;
    if (moved.current) handles.onDone();
    moved.current = false;
  };
  /** Show the moment at which a line was grabbed: its hand is there then. */
  const grabLine = (end: LimbEnd, event: PointerEvent): void => {
    const path = paths.current[handles.ends.indexOf(end)] ?? [];
    const { left = 0, top = 0 } = lines.current?.getBoundingClientRect() ?? {};
    const far = (viewport.current?.project(path) ?? []).map(({ x, y }) =>
      Math.hypot(x + left - event.clientX, y + top - event.clientY),
    );
    handles.line?.onGrab(handles.line.times_s[far.indexOf(Math.min(...far))] ?? 0);
  };
  const drag = (end: LimbEnd) => (event: PointerEvent) => {
    const target = event.currentTarget as HTMLElement | SVGElement;
    if (event.type === "pointerdown") {
      if (event.button !== 0) return;
      if (target instanceof SVGElement) grabLine(end, event);
      const pose = shownPose();
      if (!pose) return;
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
    <>
      {handles.line && (
        <svg class={css("lines")} ref={lines} aria-hidden="true" data-testid="hand-paths">
          {handles.ends.map((end) => (
            <g
              key={`${end.link} ${end.limb}`}
              data-testid={`path-${end.limb}`}
              onPointerDown={drag(end)}
              onPointerMove={drag(end)}
              onPointerUp={drag(end)}
              onPointerCancel={drag(end)}
            >
              <polyline class={css("grip")} />
              <polyline class={css("line")} />
            </g>
          ))}
        </svg>
      )}
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
    </>
  );
}
