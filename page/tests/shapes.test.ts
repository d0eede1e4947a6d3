import { Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { Figure, type Materials, Wardrobe } from "../src/scene/figure";
import { limb, shell } from "../src/scene/shapes";
import { MeshBasicMaterial } from "three";
import type { Joint, RobotModel } from "../src/types";

/** The volume a closed skin holds; below 0 where its faces look inward. */
function volume(geometry: ReturnType<typeof shell>): number {
  const at = geometry.getAttribute("position");
  const index = geometry.getIndex()?.array ?? [];
  let sum = 0;
  for (let face = 0; face < index.length; face += 3) {
    const [a, b, c] = [0, 1, 2].map((corner) => new Vector3().fromBufferAttribute(at, index[face + corner] as number));
    sum += (a as Vector3).dot((b as Vector3).clone().cross(c as Vector3)) / 6;
  }
  return sum;
}

describe("a shell", () => {
  it.each(["x", "y", "z"] as const)("along %s is closed and looks outward", (along) => {
    const to: [number, number, number] = [along === "x" ? 1 : 0, along === "y" ? 1 : 0, along === "z" ? 1 : 0];
    const made = volume(limb(along, [0, 0, 0], to, 0.1, 0.1, 1));
    const capsule = Math.PI * 0.01 + (4 / 3) * Math.PI * 0.001;
    expect(made).toBeGreaterThan(capsule * 0.9);
    expect(made).toBeLessThan(capsule * 1.02);
  });
  it("that grows downward looks outward too", () => {
    const rings = [{ at: [0, 0, 0], x: 0.1, y: 0.1 }, { at: [0, 0, -1], x: 0.1, y: 0.1 }] as const;
    expect(volume(shell({ rings: rings.map((ring) => ({ ...ring, at: [...ring.at] as [number, number, number] })) }))).toBeGreaterThan(0);
  });
});

describe("a figure", () => {
  const joint = (index: number, name: string, parent: string, link: string, origin: [number, number, number], axis: [number, number, number]): Joint =>
    ({ index, name, parent, link, origin, axis, rpy: [0, 0, 0], lower_rad: -2, upper_rad: 2, taught: true });
  const model: RobotModel = {
    joints: [
      joint(0, "left_hip_pitch_joint", "pelvis", "left_hip_pitch_link", [0, 0.1, -0.1], [0, 1, 0]),
      joint(1, "left_ankle_roll_joint", "left_hip_pitch_link", "left_ankle_roll_link", [0, 0, -0.6], [1, 0, 0]),
      joint(2, "right_ankle_roll_joint", "pelvis", "right_ankle_roll_link", [0, -0.1, -0.7], [1, 0, 0]),
    ],
    rest_rad: [0, 0, 0],
  };
  const material = new MeshBasicMaterial();
  const worn: Materials = { shell: material, core: material, visor: material, light: material };
  const place = (figure: Figure, link: string) => figure.links.get(link)?.getWorldPosition(new Vector3()) as Vector3;

  it("stands with its lower sole on the ground", () => {
    const figure = new Figure(model, new Wardrobe(), worn);
    figure.pose([0.5, 0, 0]);
    figure.root.updateMatrixWorld(true);
    expect(place(figure, "right_ankle_roll_link").z).toBeCloseTo(0.035, 6);
    expect(place(figure, "left_ankle_roll_link").z).toBeGreaterThan(0.05);
  });
  it("turns about a joint's axis by the right hand", () => {
    const figure = new Figure(model, new Wardrobe(), worn);
    figure.pose([Math.PI / 2, 0, 0]);
    figure.root.updateMatrixWorld(true);
    // A leg that hangs down and turns by a quarter about y points backward.
    expect(place(figure, "left_ankle_roll_link").x).toBeCloseTo(-0.6, 6);
    expect(figure.hinge("left_hip_pitch_link")?.axis.y).toBeCloseTo(1, 6);
  });
  it("shows as a ghost only what is elsewhere", () => {
    const wardrobe = new Wardrobe();
    const [robot, ghost] = [new Figure(model, wardrobe, worn), new Figure(model, wardrobe, worn)];
    robot.pose([0, 0, 0]);
    ghost.pose([0.4, 0, 0]);
    for (const figure of [robot, ghost]) figure.root.updateMatrixWorld(true);
    ghost.differFrom(robot);
    const seen = new Set<string>();
    ghost.root.traverse((part) => {
      if (part.userData["link"] && part.visible) seen.add(part.userData["link"] as string);
    });
    expect(seen).toEqual(new Set(["left_hip_pitch_link", "left_ankle_roll_link"]));
  });
});
