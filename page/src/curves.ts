/** Which curves to draw, and where: the pure part of the charts. */

/** Return how far each column moves. */
export function ranges(rows: readonly number[][]): number[] {
  const first = rows[0] ?? [];
  const low = [...first];
  const high = [...first];
  for (const row of rows) {
    for (let column = 0; column < row.length; column += 1) {
      const value = row[column] as number;
      if (value < (low[column] as number)) low[column] = value;
      if (value > (high[column] as number)) high[column] = value;
    }
  }
  return low.map((value, column) => (high[column] as number) - value);
}

/** Return the columns that move, the one that moves most first; never none where there are any. */
export function movers(rows: readonly number[][], most: number, least = 0.02): number[] {
  const moved = ranges(rows);
  const order = moved.map((_, column) => column).sort((a, b) => (moved[b] as number) - (moved[a] as number));
  const moving = order.filter((column) => (moved[column] as number) >= least);
  return (moving.length ? moving : order.slice(0, 1)).slice(0, most);
}

/** Joints of a body and of a leg, by colour: those that are seen together have different ones. */
const PARTS = [
  "shoulder_pitch",
  "shoulder_roll",
  "shoulder_yaw",
  "elbow",
  "wrist_roll",
  "wrist_pitch",
  "wrist_yaw",
  "waist_yaw",
  "hip_pitch",
  "hip_roll",
  "hip_yaw",
  "knee",
  "ankle_pitch",
  "ankle_roll",
  "waist_roll",
  "waist_pitch",
  "F_hip",
  "F_thigh",
  "F_calf",
  "R_hip",
  "R_thigh",
  "R_calf",
];
export const COLOURS = 8;

/** Return the style of a joint's curve: the same colour left and right, the left one dashed. */
export function curveStyle(name: string): { colour: number; dashed: boolean } {
  const [, end = "", side = "", part = name] =
    /^(?:(?:([FR])(?=[LR]_))?(left|right|[LR])_)?(.+?)(?:_joint)?$/.exec(name) ?? [];
  const known = PARTS.indexOf(end ? `${end}_${part}` : part);
  const colour = known >= 0 ? known : [...part].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
  return { colour: colour % COLOURS, dashed: side.toLowerCase().startsWith("l") };
}

export interface Extent {
  low: number;
  high: number;
}

/** Return the lowest and highest value of some columns, with a margin, and never too flat. */
export function extent(rows: readonly number[][], columns: readonly number[], flattest = 0.4): Extent {
  let low = Infinity;
  let high = -Infinity;
  for (const row of rows) {
    for (const column of columns) {
      const value = row[column];
      if (value === undefined) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  if (low > high) return { low: -flattest / 2, high: flattest / 2 };
  const span = Math.max(high - low, flattest);
  const middle = (low + high) / 2;
  return { low: middle - span * 0.56, high: middle + span * 0.56 };
}

/** Return round numbers that divide a span into at most `most` parts. */
export function ticks(low: number, high: number, most: number): number[] {
  const span = high - low;
  if (!(span > 0) || most < 1) return [];
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough * 0.999) as number;
  const found: number[] = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count += 1) {
    found.push(Number((count * step).toPrecision(12)));
  }
  return found;
}

/** Return the indices to draw: all of a short row, and of a long one no more than `most`. */
export function thinned(length: number, most: number): number[] {
  if (length <= most) return Array.from({ length }, (_, index) => index);
  return Array.from({ length: most }, (_, index) => Math.round((index * (length - 1)) / (most - 1)));
}
