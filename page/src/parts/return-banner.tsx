/** The banner after a teaching: how long the limbs hold before they return by themselves. */

import { useEffect, useState } from "preact/hooks";
import { api } from "../api";
import { now } from "../state/clock";
import { robot } from "../state/robot";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { Icon } from "./icons";

const T = TEXTS.hold;
/** The factory action that returns arms to rest. */
const RELEASE = 99;
/** Shorter waits are not counted down. */
const MOMENT_S = 1.5;

export function ReturnBanner() {
  const [, tick] = useState(0);
  const left = robot.returnIn_s.value;
  const counts = left !== null;
  useEffect(() => {
    if (!counts) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 200);
    return () => clearInterval(timer);
  }, [counts]);
  if (left === null) return null;
  const seconds = Math.max(0, Math.ceil(left - (now() - robot.statusAt.value)));
  const takes = Math.round(robot.status.value?.return_s ?? 0);
  return (
    <div class="banner hold" role="status" data-testid="hold" data-seconds={seconds}>
      <Icon name="warn" />
      <p>
        <strong>{T.title[robot.limbs.value]}.</strong> {left > MOMENT_S ? T.later(seconds, takes) : T.soon(takes)}
      </p>
      {robot.can("presets") && left > MOMENT_S && (
        <button
          type="button"
          class="button"
          disabled={!robot.ready.value}
          onClick={() => ui.attempt(() => api.perform(RELEASE))}
          data-testid="return-now"
        >
          {T.now}
        </button>
      )}
    </div>
  );
}
