/** Whether drawing holds up the page: STOP waits behind every frame. */

const SLOW_FRAME_MS = 55;
const MAX_SLOW_MS = 1600;
/** A single long frame does not count: the first compiles its shaders, and a hidden page draws none for long. */
const FEWEST = 3;

export class FrameTimes {
  private frames = 0;
  private sum = 0;

  /** Take the time that a frame took; returns whether slow ones have followed each other for too long. */
  tooSlow(took_ms: number): boolean {
    if (took_ms <= SLOW_FRAME_MS) {
      this.frames = this.sum = 0;
      return false;
    }
    this.frames += 1;
    this.sum += took_ms;
    return this.frames >= FEWEST && this.sum >= MAX_SLOW_MS;
  }
}
