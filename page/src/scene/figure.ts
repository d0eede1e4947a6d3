/** A robot on the joints the server tells of, in one pose. */

import { Euler, Group, type Material, Mesh, Object3D, Vector3 } from "three";
import type { Joint, Mount, Place, RobotModel } from "../types";
import type { Materials, Part, RealPart, Span, Stuff } from "./parts";
import type { LinkGeometry } from "./link-geometry";

const UP = new Vector3(0, 0, 1);

export class Figure {
  readonly root = new Group();
  readonly links = new Map<string, Group>();
  private readonly hinges: { joint: Joint; mount: Object3D; turn: Group; axis: Vector3 }[] = [];
  private readonly spans: { mesh: Mesh; span: Span }[] = [];
  private readonly floor: Place[];
  private readonly sole: number;
  private worn: { mesh: Mesh; stuff: Stuff; link: string }[] = [];

  constructor(model: RobotModel, geometry: LinkGeometry, materials: Materials) {
    this.floor = model.floor;
    this.sole = geometry.sole;
    this.links.set(model.base, this.dress(model.base, geometry.parts(model.base), materials));
    this.root.add(this.links.get(model.base) as Group);
    // A link may hang on one that comes later in the lists: they are gone through until all hang.
    let left: (Joint | Mount)[] = [...model.joints, ...model.fixed];
    for (let before = Infinity; left.length < before; ) {
      before = left.length;
      left = left.filter((mount) => !this.hang(mount, geometry, materials));
    }
    for (const span of geometry.spans) {
      const mesh = new Mesh(span.geometry, materials[span.stuff]);
      this.put(mesh, span.stuff, span.link, this.root);
      this.spans.push({ mesh, span });
    }
  }

  /** Hang a link on the one that carries it; returns whether that is there already. */
  private hang(mount: Joint | Mount, geometry: LinkGeometry, materials: Materials): boolean {
    const parent = this.links.get(mount.parent);
    if (!parent) return false;
    const place = new Object3D();
    place.position.fromArray(mount.origin);
    // Roll, pitch and yaw are about fixed axes: the same as turning by yaw first, about one's own.
    place.setRotationFromEuler(new Euler(...mount.rpy, "ZYX"));
    const turn = this.dress(mount.link, geometry.parts(mount.link), materials);
    place.add(turn);
    parent.add(place);
    this.links.set(mount.link, turn);
    if ("axis" in mount) this.hinges.push({ joint: mount, mount: place, turn, axis: new Vector3(...mount.axis) });
    return true;
  }

  private dress(link: string, parts: readonly Part[], materials: Materials): Group {
    const group = new Group();
    for (const { stuff, geometry } of parts) this.put(new Mesh(geometry, materials[stuff]), stuff, link, group);
    return group;
  }

  private put(mesh: Mesh, stuff: Stuff, link: string, group: Group): void {
    mesh.castShadow = true;
    mesh.receiveShadow = true;
    mesh.userData["link"] = link;
    group.add(mesh);
    this.worn.push({ mesh, stuff, link });
  }

  /** Where a place on a link is in the world; null where there is no such link. */
  where({ link, at }: Place): Vector3 | null {
    return this.links.get(link)?.localToWorld(new Vector3(...at)) ?? null;
  }

  /** Put the joints at these angles, and the lowest of what it stands on onto the ground. */
  pose(angles: readonly number[]): void {
    for (const { joint, turn, axis } of this.hinges) {
      turn.setRotationFromAxisAngle(axis, angles[joint.index] ?? 0);
    }
    this.root.position.z = 0;
    this.root.updateMatrixWorld(true);
    for (const { mesh, span } of this.spans) this.stretch(mesh, span);
    const heights = this.floor.map((place) => this.where(place)?.z ?? 0);
    this.root.position.z = this.sole - Math.min(...(heights.length ? heights : [0]));
    this.root.updateMatrixWorld(true);
  }

  private stretch(mesh: Mesh, { start, end, length }: Span): void {
    const [from, to] = [this.where(start), this.where(end)];
    if (!from || !to) return;
    // It hangs on the root, which may stand beside the origin.
    this.root.worldToLocal(from);
    const along = this.root.worldToLocal(to).clone().sub(from);
    mesh.position.copy(from);
    mesh.scale.z = along.length() / length;
    mesh.quaternion.setFromUnitVectors(UP, along.normalize());
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
