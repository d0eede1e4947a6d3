/** Several robots side by side: the cast of a show, each with the name of its role. */

import { CanvasTexture, Group, LinearFilter, Sprite, SpriteMaterial, SRGBColorSpace } from "three";
import type { RobotModel } from "../types";
import { Figure } from "./figure";
import type { Materials } from "./parts";
import { extents } from "./tree";
import { LinkGeometry } from "./link-geometry";

/** Who is shown: what each is called, and which robot it is. */
export interface Member {
  name: string;
  model: RobotModel;
}

/** So far from one robot to the next, in metres: their arms do not meet. */
const APART_M = 1.25;

/** A name on a small plate. */
function plate(name: string): Sprite {
  const canvas = document.createElement("canvas");
  canvas.width = 512;
  canvas.height = 96;
  const draw = canvas.getContext("2d") as CanvasRenderingContext2D;
  draw.font = "600 52px system-ui, sans-serif";
  draw.textAlign = "center";
  draw.textBaseline = "middle";
  const wide = Math.min(500, draw.measureText(name).width + 48);
  draw.fillStyle = "rgba(10, 16, 24, 0.72)";
  draw.beginPath();
  draw.roundRect(256 - wide / 2, 8, wide, 80, 40);
  draw.fill();
  draw.fillStyle = "#ffffff";
  draw.fillText(name, 256, 50, 470);
  const texture = new CanvasTexture(canvas);
  texture.colorSpace = SRGBColorSpace;
  texture.minFilter = LinearFilter;
  const made = new Sprite(new SpriteMaterial({ map: texture, depthTest: false, toneMapped: false }));
  made.scale.set(0.96, 0.18, 1);
  return made;
}

export class RobotGroup {
  readonly root = new Group();
  /** How wide and how tall all of them are together, in metres. */
  readonly wide_m: number;
  readonly tall_m: number;
  private readonly figures: Figure[] = [];
  private readonly geometries = new Map<RobotModel, LinkGeometry>();
  private readonly plates: Sprite[] = [];

  constructor(members: readonly Member[], materials: Materials) {
    let tall = 0.1;
    members.forEach(({ name, model }, index) => {
      const geometry = this.geometries.get(model) ?? new LinkGeometry(model);
      this.geometries.set(model, geometry);
      const figure = new Figure(model, geometry, materials);
      const { low, high } = extents(model);
      const height = high.z - low.z;
      tall = Math.max(tall, height);
      const across = (index - (members.length - 1) / 2) * APART_M;
      figure.root.position.y = across;
      figure.pose(model.rest_rad);
      const label = plate(name);
      label.position.set(0, across, height + 0.22);
      this.figures.push(figure);
      this.plates.push(label);
      this.root.add(figure.root, label);
    });
    this.tall_m = 1.5 * tall;
    this.wide_m = members.length * APART_M;
  }

  pose(poses: readonly (readonly number[])[]): void {
    this.figures.forEach((figure, index) => {
      const pose = poses[index];
      if (pose) figure.pose(pose);
    });
  }

  dispose(): void {
    for (const geometry of this.geometries.values()) geometry.dispose();
    for (const { material } of this.plates) {
      material.map?.dispose();
      material.dispose();
    }
  }
}
