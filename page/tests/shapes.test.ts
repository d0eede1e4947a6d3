import { Vector3 } from "three";
import { describe, expect, it } from "vitest";
import { Figure } from "../src/scene/figure";
import type { Materials } from "../src/scene/parts";
import { block, limb, rounded, shell } from "../src/scene/shapes";
import { lengths, size } from "../src/scene/tree";
import { LinkGeometry } from "../src/scene/link-geometry";
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
    const rings = [
      { at: [0, 0, 0], x: 0.1, y: 0.1 },
      { at: [0, 0, -1], x: 0.1, y: 0.1 },
    ] as const;
    expect(
      volume(shell({ rings: rings.map((ring) => ({ ...ring, at: [...ring.at] as [number, number, number] })) })),
    ).toBeGreaterThan(0);
  });
  it.each([
    [0.4, 0.2, 0.1],
    [0.1, 0.4, 0.2],
    [0.2, 0.1, 0.4],
  ] as const)("around a block of %s, %s, %s is nearly that block", (...half) => {
    const made = volume(block([1, 2, 3], [...half]));
    expect(made).toBeGreaterThan(0.85 * 8 * 0.008);
    expect(made).toBeLessThan(8 * 0.008);
  });
  it("of a ball is nearly that ball", () => {
    expect(volume(rounded([0, 1, 0], 0.1))).toBeCloseTo((4 / 3) * Math.PI * 0.001, 3);
  });
});

describe("a figure", () => {
  const joint = (
    index: number,
    name: string,
    parent: string,
    link: string,
    origin: [number, number, number],
    axis: [number, number, number],
  ): Joint => ({
    index,
    name,
    parent,
    link,
    origin,
    axis,
    rpy: [0, 0, 0],
    lower_rad: -2,
    upper_rad: 2,
    taught: true,
    part: "leg",
  });
  const sole = (side: string) => ({ link: `${side}_ankle_roll_link`, at: [0, 0, -0.035] as [number, number, number] });
  const model: RobotModel = {
    build: "g1-legs",
    family: "g1",
    title: "legs",
    limbs: "legs",
    base: "pelvis",
    fixed: [],
    sticks: [],
    shapes: [],
    head: null,
    model: false,
    ends: [],
    floor: [sole("left"), sole("right")],
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
    const figure = new Figure(model, new LinkGeometry(model), worn);
    figure.pose([0.5, 0, 0]);
    figure.root.updateMatrixWorld(true);
    expect(place(figure, "right_ankle_roll_link").z).toBeCloseTo(0.035, 6);
    expect(place(figure, "left_ankle_roll_link").z).toBeGreaterThan(0.05);
  });
  it("turns about a joint's axis by the right hand", () => {
    const figure = new Figure(model, new LinkGeometry(model), worn);
    figure.pose([Math.PI / 2, 0, 0]);
    figure.root.updateMatrixWorld(true);
    // A leg that hangs down and turns by a quarter about y points backward.
    expect(place(figure, "left_ankle_roll_link").x).toBeCloseTo(-0.6, 6);
    expect(figure.hinge("left_hip_pitch_link")?.axis.y).toBeCloseTo(1, 6);
  });
  it("shows as a ghost only what is elsewhere", () => {
    const geometry = new LinkGeometry(model);
    const [robot, ghost] = [new Figure(model, geometry, worn), new Figure(model, geometry, worn)];
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

  it("of a build without a joint has what hangs on that joint's link all the same", () => {
    const [hip, ...others] = model.joints;
    const { parent, link, origin, rpy } = hip as Joint;
    const stiff = { ...model, joints: others, fixed: [{ parent, link, origin, rpy }] };
    const figure = new Figure(stiff, new LinkGeometry(stiff), worn);
    figure.pose([0, 0.3, 0.3]);
    expect(place(figure, "left_ankle_roll_link").z).toBeCloseTo(0.035, 2);
  });
});

describe("a robot that nobody has drawn", () => {
  const leg = (
    index: number,
    name: string,
    parent: string,
    origin: [number, number, number],
    axis: [number, number, number],
  ): Joint => ({
    index,
    name: `${name}_joint`,
    parent,
    link: name,
    origin,
    axis,
    rpy: [0, 0, 0],
    lower_rad: -2,
    upper_rad: 2,
    taught: true,
    part: "leg",
  });
  const corners = [
    [0.2, -0.05],
    [0.2, 0.05],
    [-0.2, -0.05],
    [-0.2, 0.05],
  ] as const;
  const foot = (index: number) => ({ link: `leg${index}`, at: [0, 0, -0.3] as [number, number, number] });
  const model: RobotModel = {
    build: "table",
    family: "table",
    title: "a table",
    limbs: "legs",
    base: "top",
    fixed: [],
    shapes: [],
    model: false,
    joints: corners.map(([x, y], index) => leg(index, `leg${index}`, "top", [x, y, 0], [0, 1, 0])),
    rest_rad: [0, 0, 0, 0],
    sticks: corners.map((_, index) => ({
      side: "",
      link: `leg${index}`,
      start: { link: `leg${index}`, at: [0, 0, 0] as [number, number, number] },
      end: foot(index),
    })),
    head: { link: "top", at: [0.25, 0, 0], radius: 0.04 },
    ends: [],
    floor: corners.map((_, index) => foot(index)),
  };
  const material = new MeshBasicMaterial();
  const worn: Materials = { shell: material, core: material, visor: material, light: material };

  it("is as large as its links and sticks", () => {
    expect(size(model)).toBeCloseTo(0.49, 2);
    expect(lengths(model)).toEqual([0.3, 0.3, 0.3, 0.3]);
  });
  it("wears a trunk, motors, legs and feet", () => {
    const geometry = new LinkGeometry(model);
    expect(geometry.parts("top").map(({ stuff }) => stuff)).toEqual(["shell", "core", "visor", "light"]);
    expect(geometry.parts("leg0").map(({ stuff }) => stuff)).toEqual(["core", "core"]);
    expect(geometry.spans).toHaveLength(4);
  });
  it("stands on its feet, and a stick follows both of its ends", () => {
    const figure = new Figure(model, new LinkGeometry(model), worn);
    figure.pose([0, 0, 0, Math.PI / 2]);
    expect(figure.where(foot(0))?.z).toBeGreaterThan(0);
    expect(figure.where(foot(0))?.z).toBeLessThan(0.03);
    const stick = figure.root.children.find(({ userData }) => userData["link"] === "leg3");
    const tip = stick?.localToWorld(new Vector3(0, 0, 0.3)) as Vector3;
    expect(tip.distanceTo(figure.where(foot(3)) as Vector3)).toBeLessThan(1e-6);
  });
});
