/** How motions are played from this page. */

import { signal } from "@preact/signals";
import { ApiError, api } from "../api";
import { sentence } from "../format";
import { TEXTS } from "../texts";
import type { Step } from "../types";
import { ui } from "./ui";

const speed = signal(1);
const loop = signal(false);
/** The cue that plays when the current one has ended by itself, as an index of the cues. A stop clears it. */
const upNext = signal<number | null>(null);

interface Consent {
  force?: boolean;
  mapped?: boolean;
  imported?: boolean;
  speed?: number;
}

/** Play a take of this computer. If a check only warns, or the take is of another build, the operator decides. */
function playTake(
  take: string,
  steps: readonly Step[] = [],
  version?: number,
  consent: Consent = {},
): Promise<boolean> {
  return ui.attempt(async () => {
    try {
      await api.playTake(take, steps, version, { speed: speed.value, loop: loop.value, ...consent });
    } catch (error) {
      const { title, message: describeWarning, confirm } = TEXTS.warned;
      const ask = (more: Consent, message: string): void => {
        ui.question.value = {
          title,
          message,
          confirm,
          danger: true,
          then: () => playTake(take, steps, version, { ...consent, ...more }),
        };
      };
      if (!(error instanceof ApiError)) throw error;
      if (error.kind === "warned-motion") ask({ force: true }, sentence(describeWarning(error.message)));
      else if (error.kind === "other-build") ask({ mapped: true }, sentence(error.message));
      else if (error.kind === "imported-motion")
        ask(
          { imported: true, speed: Math.min(speed.value, 0.5) },
          `${sentence(error.message)} ${TEXTS.importedMotion}`,
        );
      else throw error;
    }
  });
}

export const playback = { speed, loop, upNext, playTake };
