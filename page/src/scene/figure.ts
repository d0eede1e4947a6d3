/** A humanoid of our own shapes, on the joints the server tells of. */

import { Group, Material, Mesh, type BufferGeometry, Euler, Object3D, Vector3 } from "three";
import type { Joint, RobotModel, Vector } from "../types";
import { limb, type Ring, shell } from "./shapes";

/** A part of a link as somebody else drew it, in its own units. */
export interface RealPart {
  stuff: Stuff;
  geometry: BufferGeometry;
  scale: number;
}

/** What a part is made of. */
export type Stuff = "shell" | "core" | "visor" | "light";
export type Materials = Record<Stuff, Material>;

interface Part {
  stuff: Stuff;
  geometry: BufferGeometry;
}

const part = (stuff: Stuff, geometry: BufferGeometry): Part => ({ stuff, geometry });

/** The rings of an egg with these half sizes. */
function egg(at: Vector, half: Vector): Ring[] {
  return [-75, -55, -35, -15, 0, 15, 35, 55, 75].map((angle) => {
    const turn = (angle * Math.PI) / 180;
    return { at: [at[0], at[1], at[2] + half[2] * Math.sin(turn)], x: half[0] * Math.cos(turn), y: half[1] * Math.cos(turn) };
  });
}

function middle(link: string): Part[] {
  switch (link) {
    case "pelvis":
      return [
        part("shell", shell({
          rings: [
            { at: [0.002, 0, -0.01], x: 0.052, y: 0.066, square: 2.6 },
            { at: [0.002, 0, -0.055], x: 0.064, y: 0.085, square: 2.8 },
            { at: [0, 0, -0.105], x: 0.056, y: 0.06, square: 2.6 },
            { at: [0, 0, -0.145], x: 0.038, y: 0.03, square: 2.4 },
          ],
        })),
        part("core", limb("y", [0, -0.075, -0.1027], [0, 0.075, -0.1027], 0.044, 0.044, 0.25)),
      ];
    case "waist_yaw_link":
      return [part("core", limb("z", [0, 0, -0.005], [0, 0, 0.035], 0.052, 0.052, 0.2))];
    case "torso_link":
      return [
        part("core", shell({
          rings: [
            { at: [0, 0, -0.012], x: 0.048, y: 0.06, square: 2.4 },
            { at: [0, 0, 0.05], x: 0.052, y: 0.068, square: 2.6 },
            { at: [0, 0, 0.1], x: 0.058, y: 0.078, square: 2.8 },
          ],
          deep: 0.2,
        })),
        part("shell", shell({
          rings: [
            { at: [0.002, 0, 0.072], x: 0.062, y: 0.078, square: 2.8 },
            { at: [0.005, 0, 0.125], x: 0.077, y: 0.094, square: 3 },
            { at: [0.008, 0, 0.19], x: 0.087, y: 0.108, square: 3.1 },
            { at: [0.004, 0, 0.25], x: 0.08, y: 0.11, square: 3 },
            { at: [-0.002, 0, 0.295], x: 0.062, y: 0.084, square: 2.6 },
            { at: [-0.006, 0, 0.318], x: 0.046, y: 0.054, square: 2.3 },
          ],
          deep: 0.35,
          sides: 40,
        })),
        // The pack on the back, and a light on the breast.
        part("core", shell({
          rings: [
            { at: [-0.07, 0, 0.105], x: 0.026, y: 0.06, square: 3.4 },
            { at: [-0.078, 0, 0.175], x: 0.032, y: 0.074, square: 3.4 },
            { at: [-0.07, 0, 0.25], x: 0.026, y: 0.062, square: 3.4 },
          ],
        })),
        part("core", limb("x", [0.07, 0, 0.226], [0.0895, 0, 0.226], 0.022, 0.02, 0.12)),
        part("light", limb("x", [0.086, 0, 0.226], [0.0925, 0, 0.226], 0.0115, 0.0105, 0.2)),
        part("core", limb("z", [-0.004, 0, 0.31], [0, 0, 0.36], 0.036, 0.034, 0.2)),
        part("shell", shell({
          rings: [
            { at: [0.004, 0, 0.362], x: 0.05, y: 0.046 },
            { at: [0.004, 0, 0.398], x: 0.073, y: 0.064, square: 2.2 },
            { at: [0.001, 0, 0.442], x: 0.08, y: 0.069, square: 2.2 },
            { at: [-0.004, 0, 0.482], x: 0.068, y: 0.06 },
          ],
          deep: 0.55,
          sides: 40,
        })),
        part("visor", shell({ rings: egg([0.031, 0, 0.426], [0.0625, 0.0605, 0.053]), deep: 0.2, sides: 48 })),
        part("light", shell({
          rings: [
            { at: [0.0455, 0, 0.4285], x: 0.0492, y: 0.05, square: 2.1 },
            { at: [0.0455, 0, 0.4335], x: 0.0492, y: 0.05, square: 2.1 },
          ],
          deep: 0.02,
          shade: 1,
        })),
      ];
    default:
      return [];
  }
}

/** The parts of a link of one side; `s` is 1 on the left, where y points outward, else -1. */
function sided(link: string, s: number): Part[] {
  const y = (point: Vector): Vector => [point[0], s * point[1], point[2]];
  const across = (from: number, to: number, radius: number, at: Vector = [0, 0, 0]): BufferGeometry =>
    limb("y", [at[0], at[1] + Math.min(s * from, s * to), at[2]], [at[0], at[1] + Math.max(s * from, s * to), at[2]], radius, radius, 0.22);
  switch (link) {
    case "hip_pitch_link":
      return [
        part("core", across(0.0, 0.058, 0.05)),
        part("shell", across(0.058, 0.066, 0.036)),
      ];
    case "hip_roll_link":
      return [
        part("core", limb("x", [-0.055, 0, 0], [0.055, 0, 0], 0.044, 0.044, 0.25)),
        part("shell", shell({
          rings: [
            { at: [0.004, s * 0.004, 0.012], x: 0.052, y: 0.05, square: 2.5 },
            { at: [0.016, s * 0.006, -0.045], x: 0.062, y: 0.058, square: 2.5 },
            { at: [0.025, s * 0.004, -0.118], x: 0.06, y: 0.056, square: 2.4 },
          ],
          deep: 0.4,
        })),
      ];
    case "hip_yaw_link":
      return [
        part("core", limb("z", [-0.004, 0, -0.022], [0, 0, 0.002], 0.05, 0.05, 0.2)),
        part("shell", shell({
          rings: [
            { at: [-0.006, s * 0.002, -0.024], x: 0.059, y: 0.055, square: 2.4 },
            { at: [-0.026, s * 0.002, -0.078], x: 0.055, y: 0.052, square: 2.4 },
            { at: [-0.056, s * 0.002, -0.138], x: 0.046, y: 0.046, square: 2.4 },
            { at: [-0.076, s * 0.002, -0.176], x: 0.04, y: 0.042, square: 2.3 },
          ],
          deep: 0.5,
        })),
      ];
    case "knee_link":
      return [
        part("core", limb("y", [0, -0.044, 0], [0, 0.044, 0], 0.041, 0.041, 0.22)),
        part("shell", limb("y", [0, -0.05, 0], [0, 0.05, 0], 0.026, 0.026, 0.2)),
        part("shell", shell({
          rings: [
            { at: [0.006, 0, -0.02], x: 0.042, y: 0.038, square: 2.5 },
            { at: [0.002, 0, -0.085], x: 0.05, y: 0.045, square: 2.5 },
            { at: [-0.002, 0, -0.165], x: 0.041, y: 0.039, square: 2.4 },
            { at: [0, 0, -0.25], x: 0.03, y: 0.031, square: 2.2 },
          ],
        })),
        part("core", limb("z", [0, 0, -0.3], [0, 0, -0.25], 0.023, 0.026, 0.3)),
      ];
    case "ankle_pitch_link":
      return [part("core", limb("y", [0, -0.03, 0], [0, 0.03, 0], 0.024, 0.024, 0.3))];
    case "ankle_roll_link":
      return [
        part("shell", shell({
          rings: [
            { at: [0, -0.008, -0.044], x: 0.026, y: 0.017, square: 2.6 },
            { at: [0, -0.001, -0.005], x: 0.034, y: 0.026, square: 2.6 },
            { at: [0, -0.01, 0.06], x: 0.036, y: 0.017, square: 2.6 },
            { at: [0, -0.017, 0.115], x: 0.029, y: 0.01, square: 2.4 },
          ],
          along: "x",
        })),
        part("core", shell({
          rings: [
            { at: [0, -0.027, -0.05], x: 0.029, y: 0.008, square: 3 },
            { at: [0, -0.027, 0.03], x: 0.036, y: 0.008, square: 3 },
            { at: [0, -0.027, 0.122], x: 0.029, y: 0.008, square: 2.6 },
          ],
          along: "x",
          deep: 0.9,
        })),
      ];
    case "shoulder_pitch_link":
      return [part("core", across(-0.012, 0.05, 0.041))];
    case "shoulder_roll_link":
      return [
        part("shell", shell({
          rings: [
            { at: [0, s * 0.002, 0.016], x: 0.043, y: 0.042, square: 2.2 },
            { at: [0, s * 0.005, -0.022], x: 0.047, y: 0.045, square: 2.2 },
            { at: [0, s * 0.006, -0.09], x: 0.038, y: 0.037, square: 2.2 },
          ],
          deep: 0.75,
        })),
      ];
    case "shoulder_yaw_link":
      return [
        part("core", limb("z", [0, 0, -0.018], [0, 0, 0.008], 0.034, 0.034, 0.2)),
        part("shell", shell({
          rings: [
            { at: [0, 0, -0.014], x: 0.038, y: 0.037, square: 2.3 },
            { at: [0.006, 0, -0.045], x: 0.037, y: 0.036, square: 2.3 },
            { at: [0.014, 0, -0.074], x: 0.032, y: 0.031, square: 2.3 },
          ],
        })),
      ];
    case "elbow_link":
      return [
        part("core", limb("y", [0, -0.034, 0], [0, 0.034, 0], 0.033, 0.033, 0.22)),
        part("shell", limb("y", [0, -0.039, 0], [0, 0.039, 0], 0.02, 0.02, 0.2)),
        part("shell", shell({
          rings: [
            { at: [0, -0.006, 0.018], x: 0.033, y: 0.033, square: 2.3 },
            { at: [0, -0.009, 0.055], x: 0.036, y: 0.035, square: 2.3 },
            { at: [0, -0.01, 0.094], x: 0.031, y: 0.031, square: 2.2 },
          ],
          along: "x",
        })),
      ];
    case "wrist_roll_link":
      return [part("core", limb("x", [-0.002, 0, 0], [0.034, 0, 0], 0.027, 0.027, 0.2))];
    case "wrist_pitch_link":
      return [
        part("shell", limb("x", [0.004, 0, 0], [0.036, 0, 0], 0.029, 0.027, 0.4)),
        part("core", limb("y", [0, -0.026, 0], [0, 0.026, 0], 0.02, 0.02, 0.25)),
      ];
    case "wrist_yaw_link":
      return hand(y);
    default:
      return [];
  }
}

/** A hand with four fingers a little bent and a thumb; `y` puts a point on its side. */
function hand(y: (point: Vector) => Vector): Part[] {
  const finger = (points: Vector[], radius: number): Part[] =>
    points.slice(1).map((to, index) => part("core", limb("x", y(points[index] as Vector), y(to), radius, radius * 0.88, 0.9)));
  const fingers = [-0.027, -0.009, 0.009, 0.027].flatMap((z, index) => {
    const reach = [0.058, 0.066, 0.064, 0.052][index] as number;
    return finger([[0.092, 0, z], [0.092 + reach * 0.55, -0.006, z * 1.05], [0.092 + reach, -0.022, z * 1.05]], 0.0088);
  });
  return [
    part("core", limb("x", [-0.002, 0, 0], [0.022, 0, 0], 0.023, 0.023, 0.3)),
    part("core", shell({
      rings: [
        { at: [0, 0, 0.03], x: 0.015, y: 0.026, square: 2.8 },
        { at: [0, 0, 0.066], x: 0.017, y: 0.037, square: 3 },
        { at: [0, 0, 0.094], x: 0.014, y: 0.036, square: 3 },
      ],
      along: "x",
    })),
    ...fingers,
    ...finger([[0.046, -0.008, 0.03], [0.07, -0.022, 0.048], [0.094, -0.034, 0.05]], 0.0098),
  ];
}

function partsOf(link: string): Part[] {
  const [side, ...rest] = link.split("_");
  if (side === "left") return sided(rest.join("_"), 1);
  if (side === "right") return sided(rest.join("_"), -1);
  return middle(link);
}

/** A face behind the opening of the real head, with the light that tells what goes on. */
export function face(): RealPart[] {
  const strip = { x: 0.03, y: 0.04, square: 2.4 };
  return [
    { stuff: "visor", geometry: shell({ rings: egg([0.02, 0, 0.388], [0.031, 0.037, 0.037]), deep: 0.2 }), scale: 1 },
    {
      stuff: "light",
      geometry: shell({ rings: [{ at: [0.03, 0, 0.4265], ...strip }, { at: [0.03, 0, 0.4325], ...strip }], deep: 0.02, shade: 1 }),
      scale: 1,
    },
  ];
}

/** The geometry of every link, made once and worn by the robot and its ghost. */
export class Wardrobe {
  private readonly made = new Map<string, Part[]>();

  parts(link: string): Part[] {
    const known = this.made.get(link) ?? partsOf(link);
    this.made.set(link, known);
    return known;
  }

  dispose(): void {
    for (const parts of this.made.values()) for (const { geometry } of parts) geometry.dispose();
    this.made.clear();
  }
}

const SOLE_M = -0.035;

export class Figure {
  readonly root = new Group();
  readonly links = new Map<string, Group>();
  private readonly hinges: { joint: Joint; mount: Object3D; turn: Group; axis: Vector3 }[] = [];
  private worn: { mesh: Mesh; stuff: Stuff; link: string }[] = [];

  constructor(model: RobotModel, wardrobe: Wardrobe, materials: Materials) {
    this.links.set("pelvis", this.dress("pelvis", wardrobe, materials));
    this.root.add(this.links.get("pelvis") as Group);
    for (const joint of model.joints) {
      const mount = new Object3D();
      mount.position.fromArray(joint.origin);
      // Roll, pitch and yaw are about fixed axes: the same as turning by yaw first, about one's own.
      mount.setRotationFromEuler(new Euler(...joint.rpy, "ZYX"));
      const turn = this.dress(joint.link, wardrobe, materials);
      mount.add(turn);
      this.links.get(joint.parent)?.add(mount);
      this.links.set(joint.link, turn);
      this.hinges.push({ joint, mount, turn, axis: new Vector3(...joint.axis) });
    }
  }

  private dress(link: string, wardrobe: Wardrobe, materials: Materials): Group {
    const group = new Group();
    for (const { stuff, geometry } of wardrobe.parts(link)) {
      this.put(new Mesh(geometry, materials[stuff]), stuff, link, group);
    }
    return group;
  }

  private put(mesh: Mesh, stuff: Stuff, link: string, group: Group): void {
    mesh.castShadow = true;
    mesh.receiveShadow = true;
    mesh.userData["link"] = link;
    group.add(mesh);
    this.worn.push({ mesh, stuff, link });
  }

  /** Put the joints at these angles, and the lower sole on the ground. */
  pose(angles: readonly number[]): void {
    for (const { joint, turn, axis } of this.hinges) {
      turn.setRotationFromAxisAngle(axis, angles[joint.index] ?? 0);
    }
    this.root.position.z = 0;
    this.root.updateMatrixWorld(true);
    const soles = ["left_ankle_roll_link", "right_ankle_roll_link"].map((link) => {
      const foot = this.links.get(link);
      return foot ? foot.localToWorld(new Vector3(0.03, 0, SOLE_M)).z : 0;
    });
    this.root.position.z = -Math.min(...soles);
  }

  /** Show only the links that are elsewhere than those of another figure. */
  differFrom(other: Figure): void {
    const elsewhere = new Set<string>();
    for (const [link, group] of this.links) {
      const [here, there] = [group.matrixWorld.elements, other.links.get(link)?.matrixWorld.elements];
      if (!there || here.some((value, index) => Math.abs(value - (there[index] as number)) > 0.02)) elsewhere.add(link);
    }
    for (const { mesh, link } of this.worn) mesh.visible = elsewhere.has(link);
  }

  /** Wear `material` on one link, and what it should everywhere else. */
  light(link: string | null, material: Material, materials: Materials): void {
    for (const worn of this.worn) worn.mesh.material = worn.link === link ? material : materials[worn.stuff];
  }

  /** Return the joint that moves a link, with its place and axis in the world. */
  hinge(link: string): { joint: Joint; origin: Vector3; axis: Vector3 } | null {
    const found = this.hinges.find(({ joint }) => joint.link === link);
    if (!found) return null;
    const origin = found.mount.getWorldPosition(new Vector3());
    const axis = found.axis.clone().transformDirection(found.mount.matrixWorld);
    return { joint: found.joint, origin, axis };
  }

  /** Wear real shapes on a link instead of our own. */
  wear(link: string, parts: readonly RealPart[], materials: Materials): void {
    const group = this.links.get(link);
    if (!group) return;
    for (const worn of this.worn) if (worn.link === link) worn.mesh.removeFromParent();
    this.worn = this.worn.filter((worn) => worn.link !== link);
    for (const { stuff, geometry, scale } of parts) {
      const mesh = new Mesh(geometry, materials[stuff]);
      mesh.scale.setScalar(scale);
      this.put(mesh, stuff, link, group);
    }
  }
}
