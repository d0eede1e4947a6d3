/** The links of a robot at rest: where they are, and how large it is. The pure part of drawing one. */

import { Matrix4, Quaternion, Euler, Vector3 } from "three";
import type { Place, RobotModel } from "../types";

/** Return the place of every link when the joints are at rest. */
export function links(model: RobotModel): Map<string, Matrix4> {
  const found = new Map([[model.base, new Matrix4()]]);
  const turned = new Map(
    model.joints.map((joint) => [
      joint.link,
      new Quaternion().setFromAxisAngle(new Vector3(...joint.axis), model.rest_rad[joint.index] ?? 0),
    ]),
  );
  let left = [...model.joints, ...model.fixed];
  for (let before = Infinity; left.length < before; ) {
    before = left.length;
    left = left.filter(({ parent, link, origin, rpy }) => {
      const above = found.get(parent);
      if (!above) return true;
      const turn = new Quaternion()
        .setFromEuler(new Euler(...rpy, "ZYX"))
        .multiply(turned.get(link) ?? new Quaternion());
      found.set(
        link,
        above.clone().multiply(new Matrix4().compose(new Vector3(...origin), turn, new Vector3(1, 1, 1))),
      );
      return false;
    });
  }
  return found;
}

function placed(found: Map<string, Matrix4>, { link, at }: Place): Vector3 {
  return new Vector3(...at).applyMatrix4(found.get(link) ?? new Matrix4());
}

/** Return how long each stick of its figure is at rest. */
export function lengths(model: RobotModel): number[] {
  const found = links(model);
  return model.sticks.map(({ start, end }) => placed(found, start).distanceTo(placed(found, end)));
}

export interface Extents {
  low: Vector3;
  high: Vector3;
}

/** Return the box around the robot at rest: its links, its sticks and its head. */
export function extents(model: RobotModel): Extents {
  const found = links(model);
  const low = new Vector3(Infinity, Infinity, Infinity);
  const high = new Vector3(-Infinity, -Infinity, -Infinity);
  const note = (point: Vector3, around = 0): void => {
    low.min(point.clone().subScalar(around));
    high.max(point.clone().addScalar(around));
  };
  for (const matrix of found.values()) note(new Vector3().applyMatrix4(matrix));
  for (const place of [...model.sticks.flatMap(({ start, end }) => [start, end]), ...model.floor])
    note(placed(found, place));
  if (model.head) note(placed(found, model.head), model.head.radius);
  return { low, high };
}

/** Return the longest side of that box, in metres. */
export function size(model: RobotModel): number {
  const { low, high } = extents(model);
  return Math.max(0.1, ...high.sub(low).toArray());
}
