/** Decides from the arrival of messages whether what the page shows is live. */

/** Without a message for this long, the page is not live. The server sends at least every 400 ms. */
export const SILENT_MS = 1000;
/** Without a message for this long, the socket is given up and opened again. */
export const DEAD_MS = 5000;

export class Liveness {
  private receivedMs = 0;
  private since = 0;
  private suspect = false;

  /** Record that a message was received. */
  noteMessage(nowMs: number): void {
    this.receivedMs = nowMs;
    this.wait(nowMs);
  }

  /** A socket is being opened: it gets the full time to bring a message. */
  wait(nowMs: number): void {
    this.since = nowMs;
    this.suspect = false;
  }

  /**
   * Return the state at this moment; call it every 100 ms. Silence counts at the second check: after the page itself
   * was held up, the messages that wait for it are read between the two.
   */
  check(nowMs: number): "live" | "silent" | "dead" {
    const silentMs = nowMs - this.since;
    const again = this.suspect;
    this.suspect = silentMs > SILENT_MS;
    if (!this.suspect || !again) return "live";
    return silentMs > DEAD_MS ? "dead" : "silent";
  }

  /** Return the seconds since the last message. */
  silentS(nowMs: number): number {
    return Math.max(0, (nowMs - this.receivedMs) / 1000);
  }
}
