/**
 * Inverse kinematics: which angles bring the end of a limb to a place. Damped least squares on the joints
 * of the limb, each within its limits; the others stay. The pure part of dragging a hand.
 */

import { Matrix4, Quaternion, Euler, Vector3 } from "three";
import type { LimbEnd, RobotModel } from "../types";

const ROUNDS = 60;
const DAMPING_M = 0.03;
const NEAR_M = 5e-4;
/** At most so far in one round: beyond, a hand that is dragged fast would swing through the body. */
const ROUND_M = 0.05;
const ROUND_RAD = 0.15;
const UNIT = new Vector3(1, 1, 1);

interface Hinge {
  /** From its parent's frame to its own, at angle 0. */
  mount: Matrix4;
  axis: Vector3;
  /** Its column in a pose; -1 for one that does not move. */
  index: number;
  lower: number;
  upper: number;
  moves: boolean;
}

/** Return the hinges from the base to a link, with those of the limb marked. */
function chain(model: RobotModel, end: LimbEnd): Hinge[] {
  const mounts = new Map([...model.fixed, ...model.joints].map((mount) => [mount.link, mount]));
  const found: Hinge[] = [];
  for (let mount = mounts.get(end.link); mount; mount = mounts.get(mount.parent)) {
    const joint = model.joints.find(({ link }) => link === mount?.link);
    found.unshift({
      mount: new Matrix4().compose(
        new Vector3(...mount.origin),
        new Quaternion().setFromEuler(new Euler(...mount.rpy, "ZYX")),
        UNIT,
      ),
      axis: joint ? new Vector3(...joint.axis).normalize() : new Vector3(0, 0, 1),
      index: joint?.index ?? -1,
      lower: joint?.lower_rad ?? 0,
      upper: joint?.upper_rad ?? 0,
      moves: joint !== undefined && end.joints.includes(joint.name),
    });
    if (found.length > mounts.size) break; // a tree that bites its tail
  }
  return found;
}

interface Stance {
  tip: Vector3;
  origins: Vector3[];
  axes: Vector3[];
}

function stand(hinges: readonly Hinge[], pose: readonly number[], at: Vector3): Stance {
  const frame = new Matrix4();
  const stance: Stance = { tip: new Vector3(), origins: [], axes: [] };
  for (const { mount, axis, index } of hinges) {
    frame.multiply(mount);
    stance.origins.push(new Vector3().setFromMatrixPosition(frame));
    stance.axes.push(axis.clone().transformDirection(frame));
    const angle = index < 0 ? 0 : (pose[index] ?? 0);
    frame.multiply(new Matrix4().makeRotationAxis(axis, angle));
  }
  stance.tip.copy(at).applyMatrix4(frame);
  return stance;
}

/** Return where the end of a limb is in the frame of the base. */
export function endOf(model: RobotModel, end: LimbEnd, pose: readonly number[]): Vector3 {
  return stand(chain(model, end), pose, new Vector3(...end.at)).tip;
}

/**
 * Return the pose with the end of a limb as near to a target as its joints allow, in the frame of the base.
 * It begins from `pose`, and changes no other joint.
 */
export function reached(model: RobotModel, end: LimbEnd, pose: readonly number[], target: Vector3): number[] {
  const hinges = chain(model, end);
  const at = new Vector3(...end.at);
  const found = [...pose];
  let best = [...found];
  let nearest = Infinity;
  for (let round = 0; round < ROUNDS; round += 1) {
    const { tip, origins, axes } = stand(hinges, found, at);
    const miss = target.clone().sub(tip);
    const far = miss.length();
    if (far < nearest - 1e-6) {
      nearest = far;
      best = [...found];
    }
    if (far < NEAR_M) break;
    miss.clampLength(0, ROUND_M);
    // A joint at its limit that would go on beyond it takes no part in this round.
    const moving = hinges.flatMap((hinge, place) => {
      if (!hinge.moves) return [];
      const arm = tip.clone().sub(origins[place] as Vector3);
      const column = new Vector3().crossVectors(axes[place] as Vector3, arm);
      const angle = found[hinge.index] ?? 0;
      const outwards = column.dot(miss);
      const stuck = (outwards > 0 && angle >= hinge.upper - 1e-6) || (outwards < 0 && angle <= hinge.lower + 1e-6);
      return stuck ? [] : [{ hinge, column }];
    });
    const pull = solved(
      moving.map(({ column }) => column),
      miss,
    );
    for (const { hinge, column } of moving) {
      const by = Math.min(ROUND_RAD, Math.max(-ROUND_RAD, column.dot(pull)));
      const angle = found[hinge.index] ?? 0;
      // One that begins outside of its limits, as a joint at its stop may, is not thrown inside.
      found[hinge.index] = Math.min(Math.max(hinge.upper, angle), Math.max(Math.min(hinge.lower, angle), angle + by));
    }
  }
  return best;
}

/** Return the solution of (J J' + damping) x = miss, for the columns of J. */
function solved(columns: readonly Vector3[], miss: Vector3): Vector3 {
  const rows = new Array<number>(9).fill(0);
  for (const column of columns) {
    const values = column.toArray();
    for (let i = 0; i < 3; i += 1)
      for (let k = 0; k < 3; k += 1)
        rows[3 * i + k] = (rows[3 * i + k] as number) + (values[i] as number) * (values[k] as number);
  }
  const [a, b, c, d, e, f, g, h, i] = rows as [number, number, number, number, number, number, number, number, number];
  const damped = new Matrix4().set(
    a + DAMPING_M ** 2,
    b,
    c,
    0,
    d,
    e + DAMPING_M ** 2,
    f,
    0,
    g,
    h,
    i + DAMPING_M ** 2,
    0,
    0,
    0,
    0,
    1,
  );
  return miss.clone().applyMatrix4(damped.invert());
}
