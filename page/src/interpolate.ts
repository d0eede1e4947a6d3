/**
 * Poses between the ones the robot reports.
 *
 * The robot's clock and the page's differ by an unknown constant plus the way through the network.
 * The smallest difference seen is nearest to the constant; poses are shown a little later than
 * that, so that the next one is nearly always there already.
 */

const DELAY_S = 0.075;
const KEEP_S = 1.5;
/** How fast the assumed constant may grow, so that a clock that drifts is followed. */
const DRIFT = 0.002;

export interface Timed {
  time_s: number;
  joints_rad: readonly number[];
}

/** Return the pose at time `t` between two samples. */
export function between(a: Timed, b: Timed, t: number): number[] {
  const span = b.time_s - a.time_s;
  const share = span > 0 ? Math.min(1, Math.max(0, (t - a.time_s) / span)) : 1;
  return b.joints_rad.map((value, index) => {
    const from = a.joints_rad[index] ?? value;
    return from + (value - from) * share;
  });
}

/** Return the index of the last time not after `t`; 0 where all are later. */
export function before(times: readonly number[], t: number): number {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((times[middle] as number) <= t) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

/** Return the row of a table of joints at time `t`, held at both ends. */
export function rowAt(times: readonly number[], rows: readonly number[][], t: number): number[] {
  const first = before(times, t);
  const a = { time_s: times[first] ?? 0, joints_rad: rows[first] ?? [] };
  const b = { time_s: times[first + 1] ?? a.time_s, joints_rad: rows[first + 1] ?? a.joints_rad };
  return t <= a.time_s ? [...a.joints_rad] : between(a, b, t);
}

export class PoseStream {
  private samples: Timed[] = [];
  private offset: number | null = null;
  private receivedAt = 0;

  /** Take a pose that arrived at the page's time `now`, in seconds. */
  push(sample: Timed, now: number): void {
    const last = this.samples.at(-1);
    // A clock that goes back, or leaps, is another robot's: begin anew.
    if (last && (sample.time_s < last.time_s || sample.time_s - last.time_s > KEEP_S)) this.clear();
    const seen = now - sample.time_s;
    const grown = this.offset === null ? seen : this.offset + DRIFT * (now - this.receivedAt);
    this.offset = Math.min(seen, grown);
    this.receivedAt = now;
    this.samples.push(sample);
    while (this.samples.length > 2 && sample.time_s - (this.samples[0] as Timed).time_s > KEEP_S) this.samples.shift();
  }

  /** Return the pose to show at `now`, or null before the first one. */
  at(now: number): number[] | null {
    if (this.offset === null) return null;
    const t = now - this.offset - DELAY_S;
    for (let index = this.samples.length - 1; index > 0; index -= 1) {
      const a = this.samples[index - 1] as Timed;
      if (a.time_s <= t) return between(a, this.samples[index] as Timed, t);
    }
    return [...(this.samples[0] as Timed).joints_rad];
  }

  /** Whether a pose came within the last `seconds`. */
  alive(now: number, seconds = 1): boolean {
    return this.offset !== null && now - this.receivedAt < seconds;
  }

  clear(): void {
    this.samples = [];
    this.offset = null;
  }
}
