/** Which part of a take the time line shows: the pure part of zooming and panning. */

export interface Span {
  from: number;
  to: number;
}

/** No closer than this, in seconds: a few samples. */
export const CLOSEST_S = 0.1;
/** If a take was sent with fewer samples than it has, a part this many times shorter is requested with more. */
export const LOOKS_CLOSER = 2;
const WHEEL = 1.0018;

const clamp = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** Return a span of the same length, or the whole, that lies within the take. */
export function within({ from, to }: Span, duration: number): Span {
  const length = clamp(to - from, Math.min(CLOSEST_S, duration), duration);
  const begin = clamp(from, 0, duration - length);
  return { from: begin, to: begin + length };
}

/** Return the span `factor` times as close; the moment `around` stays where it is seen. */
export function zoomed(view: Span, duration: number, factor: number, around: number): Span {
  const length = clamp((view.to - view.from) / factor, Math.min(CLOSEST_S, duration), duration);
  const share = view.to > view.from ? (around - view.from) / (view.to - view.from) : 0.5;
  const from = around - clamp(share, 0, 1) * length;
  return within({ from, to: from + length }, duration);
}

/** Return the span moved by some seconds. */
export function panned(view: Span, duration: number, by: number): Span {
  return within({ from: view.from + by, to: view.to + by }, duration);
}

/** Return the span moved so far that a moment is in it; the same one where it is already. */
export function showing(view: Span, duration: number, time: number): Span {
  if (time >= view.from && time <= view.to) return view;
  const length = view.to - view.from;
  return within({ from: time - length / 2, to: time + length / 2 }, duration);
}

/** Return how much closer a turn of a wheel takes it. */
export function wheelFactor(turned: number): number {
  return WHEEL ** -turned;
}

/** Return where a time is in a span: 0 at its beginning, 1 at its end. */
export function share({ from, to }: Span, time: number): number {
  return to > from ? (time - from) / (to - from) : 0;
}

/** Whether less than the whole take is shown. */
export function isPart({ from, to }: Span, duration: number): boolean {
  return to - from < duration - 1e-6;
}
