/** What robots are drawn with. */

import type { BufferGeometry, Material } from "three";
import type { Place } from "../types";

/** What a part is made of. */
export type Stuff = "shell" | "core" | "visor" | "light";
export type Materials = Record<Stuff, Material>;

/** A part of a link, in the link's frame. */
export interface Part {
  stuff: Stuff;
  geometry: BufferGeometry;
}

/** A part of a link from a model file, in its own units. */
export interface RealPart extends Part {
  scale: number;
}

/** A part between two places that may move against each other: it extends from 0 along z by the given length. */
export interface Span extends Part {
  link: string;
  start: Place;
  end: Place;
  length: number;
}
