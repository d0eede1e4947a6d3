/** What each link of a robot wears: shapes drawn for its family, else such as its joints and figure tell. */

import type { BufferGeometry } from "three";
import type { Joint, RobotModel, Solid, Stick, Vector } from "../types";
import { g1Parts } from "./g1";
import type { Part, Span } from "./parts";
import { type Along, block, egg, limb, rounded, shell } from "./shapes";
import { lengths, size } from "./tree";

/** Shapes of our own, by family. */
const DRAWN: Record<string, (link: string) => Part[]> = { g1: g1Parts };

const AXES: Along[] = ["x", "y", "z"];

/** The axis that a vector is nearest to. */
function nearest(vector: Vector): Along {
  const sizes = vector.map(Math.abs);
  return AXES[sizes.indexOf(Math.max(...sizes))] as Along;
}

/** The geometry of every link, made once and worn by the robot and its ghost. */
export class LinkGeometry {
  /** Between two links. */
  readonly spans: Span[] = [];
  /** How far the soles are below what stands on the floor. */
  readonly sole: number = 0;
  private readonly made = new Map<string, Part[]>();
  private readonly drawn: ((link: string) => Part[]) | undefined;

  constructor(model: RobotModel) {
    this.drawn = DRAWN[model.family];
    if (this.drawn) return;
    const thick = 0.045 * size(model);
    this.block(model, thick);
    for (const joint of model.joints) this.hub(joint, thick);
    for (const solid of model.shapes) this.add(solid.link, "shell", solidOf(solid));
    if (!model.shapes.length) {
      this.sole = 0.75 * thick;
      const long = lengths(model);
      for (const [index, stick] of model.sticks.entries()) this.stick(model, stick, long[index] as number, thick);
    }
    if (model.head) this.head(model.head.link, model.head.at, model.head.radius);
  }

  private add(link: string, stuff: Part["stuff"], geometry: BufferGeometry): void {
    this.made.set(link, [...(this.made.get(link) ?? []), { stuff, geometry }]);
  }

  /** The trunk: a block around what is mounted on it, where that lies apart in two directions. */
  private block(model: RobotModel, thick: number): void {
    const mounts = model.joints.filter(({ parent }) => parent === model.base).map(({ origin }) => origin);
    if (mounts.length < 3) return;
    const low = AXES.map((_, axis) => Math.min(...mounts.map((at) => at[axis] as number)));
    const high = AXES.map((_, axis) => Math.max(...mounts.map((at) => at[axis] as number)));
    const half = low.map((value, axis) => ((high[axis] as number) - value) / 2);
    if (half.filter((each) => each > 0.03).length < 2) return;
    const middle = low.map((value, axis) => value + (half[axis] as number)) as Vector;
    const padded = half.map((each) => Math.max(each + 1.1 * thick, 2 * thick)) as Vector;
    this.add(model.base, "shell", block(middle, padded));
    const slim = padded.map((each, axis) => (axis === 2 ? 0.35 * each : each + 0.12 * thick)) as Vector;
    this.add(model.base, "core", block(middle, slim));
  }

  /** A motor: a drum about the joint's axis. */
  private hub({ axis, link }: Joint, thick: number): void {
    const half = 0.95 * thick;
    const along = nearest(axis);
    const end = AXES.map((each) => (each === along ? half : 0)) as Vector;
    const start = end.map((each) => -each) as Vector;
    this.add(link, "core", limb(along, start, end, 1.2 * thick, 1.2 * thick, 0.25));
  }

  private stick(model: RobotModel, stick: Stick, length: number, thick: number): void {
    // What is drawn of the trunk is its block.
    const both = [stick.start.link, stick.end.link];
    if (length < 1e-3 || (this.made.get(model.base)?.length && both.every((link) => link === model.base))) return;
    const last =
      !model.joints.some(({ parent }) => parent === stick.end.link) && stick.end.at.some((each) => each !== 0);
    const radius = Math.min(0.16 * length, thick);
    const tip = last ? 0.7 * radius : 0.85 * radius;
    const geometry = limb("z", [0, 0, 0], [0, 0, length], radius, tip, 0.6);
    this.spans.push({ ...stick, stuff: "shell", geometry, length });
    if (last) this.add(stick.end.link, "core", rounded(stick.end.at, 0.75 * thick));
  }

  /** A head with a dark face and a band of light, which tells what goes on. */
  private head(link: string, at: Vector, radius: number): void {
    this.add(link, "visor", shell({ rings: egg(at, [radius, radius, radius]), deep: 0.2, sides: 32 }));
    const ring = { x: 1.02 * radius, y: 1.02 * radius };
    const band = [-0.08, 0.08].map((up) => ({ at: [at[0], at[1], at[2] + up * radius] as Vector, ...ring }));
    this.add(link, "light", shell({ rings: band, deep: 0.02, shade: 1, sides: 32 }));
  }

  parts(link: string): Part[] {
    const known = this.made.get(link) ?? this.drawn?.(link) ?? [];
    this.made.set(link, known);
    return known;
  }

  dispose(): void {
    for (const parts of [...this.made.values(), this.spans]) for (const { geometry } of parts) geometry.dispose();
    this.made.clear();
  }
}

function solidOf({ start, end, radius }: Solid): BufferGeometry {
  if (radius === 0) return block(start, end);
  const along = nearest(end.map((each, axis) => each - (start[axis] as number)) as Vector);
  return limb(along, start, end, radius, radius, 1);
}
