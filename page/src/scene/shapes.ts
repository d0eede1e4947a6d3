/** Soft shells for a robot: rings of superellipses joined to a skin, darker where parts meet. */

import { BufferAttribute, BufferGeometry, Matrix4, Vector3 } from "three";
import type { Vector } from "../types";

/** A cross-section: its middle, its half sizes, and how square it is (2 is an ellipse). */
export interface Ring {
  at: Vector;
  x: number;
  y: number;
  square?: number;
}

/** The way a shell grows: its rings lie across this axis. */
export type Along = "x" | "y" | "z";

const DOME = [0.26, 0.6, 0.88];

// Rings are made across z; these turn z into the given axis and keep the orientation of the triangles.
const TURNS: Record<Along, Matrix4> = {
  z: new Matrix4(),
  x: new Matrix4().makeBasis(new Vector3(0, 1, 0), new Vector3(0, 0, 1), new Vector3(1, 0, 0)),
  y: new Matrix4().makeBasis(new Vector3(0, 0, 1), new Vector3(1, 0, 0), new Vector3(0, 1, 0)),
};

/** Return the rings with round ends, `deep` the depth of each dome as a share of its radius. */
function domed(rings: Ring[], deep: number): Ring[] {
  const cap = (end: Ring, inward: Ring): Ring[] => {
    const outward = Math.sign(end.at[2] - inward.at[2]) || 1;
    const radius = Math.min(end.x, end.y) * deep;
    return DOME.map((share) => {
      const out = Math.sqrt(1 - share * share) * radius * outward;
      return { ...end, at: [end.at[0], end.at[1], end.at[2] + out], x: end.x * share, y: end.y * share };
    });
  };
  const first = rings[0] as Ring;
  const last = rings.at(-1) as Ring;
  const start = cap(first, rings[1] as Ring);
  const end = cap(last, rings.at(-2) as Ring).reverse();
  return [...start, ...rings, ...end];
}

function outline(ring: Ring, sides: number): Vector[] {
  const power = 2 / (ring.square ?? 2);
  return Array.from({ length: sides }, (_, side) => {
    const angle = (2 * Math.PI * side) / sides;
    const cos = Math.cos(angle);
    const sin = Math.sin(angle);
    const x = Math.sign(cos) * Math.abs(cos) ** power * ring.x;
    const y = Math.sign(sin) * Math.abs(sin) ** power * ring.y;
    return [ring.at[0] + x, ring.at[1] + y, ring.at[2]];
  });
}

/** Return rings between the given ones, on a smooth curve through them. */
function smoothed(rings: Ring[], parts: number): Ring[] {
  const curve = (pick: (ring: Ring) => number, index: number, share: number): number => {
    const value = (offset: number): number =>
      pick(rings[Math.min(rings.length - 1, Math.max(0, index + offset))] as Ring);
    const [a, b, c, d] = [value(-1), value(0), value(1), value(2)];
    const [s, q] = [share, share * share];
    return 0.5 * (2 * b + (c - a) * s + (2 * a - 5 * b + 4 * c - d) * q + (3 * b - a - 3 * c + d) * q * s);
  };
  const found: Ring[] = [];
  for (let index = 0; index < rings.length - 1; index += 1) {
    for (let part = 0; part < parts; part += 1) {
      const of = (pick: (ring: Ring) => number): number => curve(pick, index, part / parts);
      found.push({
        at: [of((r) => r.at[0]), of((r) => r.at[1]), of((r) => r.at[2])],
        x: of((r) => r.x),
        y: of((r) => r.y),
        square: of((r) => r.square ?? 2),
      });
    }
  }
  return [...found, rings.at(-1) as Ring];
}

export interface Shell {
  rings: Ring[];
  along?: Along;
  /** Depth of the round ends as a share of their radius. */
  deep?: number;
  sides?: number;
  /** How dark the ends are, where the next part begins: 1 is not at all. */
  shade?: number;
}

/** Return the skin of a shell; rings are given with z as the way it grows. */
export function shell({ rings, along = "z", deep = 0.5, sides = 20, shade = 0.72 }: Shell): BufferGeometry {
  const all = domed(smoothed(rings, rings.length > 2 ? 3 : 2), deep);
  const points: number[] = [];
  const colours: number[] = [];
  const faces: number[] = [];
  all.forEach((ring, index) => {
    const share = index / (all.length - 1);
    const light = shade + (1 - shade) * Math.min(1, 5 * Math.min(share, 1 - share));
    for (const point of outline(ring, sides)) {
      points.push(...point);
      colours.push(light, light, light);
    }
  });
  const up = (all.at(-1) as Ring).at[2] > (all[0] as Ring).at[2];
  const face = (a: number, b: number, c: number): void => void (up ? faces.push(a, b, c) : faces.push(a, c, b));
  for (let ring = 0; ring < all.length - 1; ring += 1) {
    for (let side = 0; side < sides; side += 1) {
      const next = (side + 1) % sides;
      const [a, b] = [ring * sides + side, ring * sides + next];
      face(a, b, a + sides);
      face(b, b + sides, a + sides);
    }
  }
  for (const [index, ring] of [
    [0, all[0] as Ring],
    [all.length - 1, all.at(-1) as Ring],
  ] as const) {
    const centre = points.length / 3;
    points.push(...ring.at);
    colours.push(shade, shade, shade);
    for (let side = 0; side < sides; side += 1) {
      const [a, b] = [index * sides + side, index * sides + ((side + 1) % sides)];
      if (index === 0) face(b, a, centre);
      else face(a, b, centre);
    }
  }
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(points), 3));
  geometry.setAttribute("color", new BufferAttribute(new Float32Array(colours), 3));
  geometry.setIndex(faces);
  geometry.applyMatrix4(TURNS[along]);
  geometry.computeVertexNormals();
  return geometry;
}

/** Return a limb from `from` to `to` along an axis, its radius changing on the way. */
export function limb(along: Along, from: Vector, to: Vector, start: number, end: number, deep = 0.6): BufferGeometry {
  const [x, y, z] = ACROSS[along];
  const ring = (point: Vector, radius: number): Ring => ({
    at: [point[x] as number, point[y] as number, point[z] as number],
    x: radius,
    y: radius,
  });
  return shell({ rings: [ring(from, start), ring(to, end)], along, deep });
}

/** The rings of an egg with these half sizes. */
export function egg(at: Vector, half: Vector): Ring[] {
  return [-75, -55, -35, -15, 0, 15, 35, 55, 75].map((angle) => {
    const turn = (angle * Math.PI) / 180;
    return {
      at: [at[0], at[1], at[2] + half[2] * Math.sin(turn)],
      x: half[0] * Math.cos(turn),
      y: half[1] * Math.cos(turn),
    };
  });
}

const ACROSS: Record<Along, [number, number, number]> = { z: [0, 1, 2], x: [1, 2, 0], y: [2, 0, 1] };

/** Return a block with round edges around a middle, with these half sizes. */
export function block(middle: Vector, half: Vector): BufferGeometry {
  const along = (["x", "y", "z"] as const)[half.indexOf(Math.max(...half))] as Along;
  const [x, y, z] = ACROSS[along];
  const [mx, my, mz] = [middle[x] as number, middle[y] as number, middle[z] as number];
  const [hx, hy, hz] = [half[x] as number, half[y] as number, half[z] as number];
  const ring = (share: number, wide: number): Ring => ({
    at: [mx, my, mz + share * hz],
    x: wide * hx,
    y: wide * hy,
    square: 4.5,
  });
  return shell({
    rings: [ring(-0.94, 0.9), ring(-0.75, 1), ring(0.75, 1), ring(0.94, 0.9)],
    along,
    deep: 0.12,
    sides: 36,
  });
}

/** Return a ball. */
export function rounded(at: Vector, radius: number): BufferGeometry {
  return shell({ rings: egg(at, [radius, radius, radius]), deep: 0.2, sides: 18 });
}
