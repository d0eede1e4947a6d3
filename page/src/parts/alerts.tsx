/** What a person must know until it is over or acknowledged: above every screen. */

import { sentence } from "../format";
import { stop } from "../live";
import { connection } from "../state/connection";
import { eventLog } from "../state/event-log";
import { robot } from "../state/robot";
import { TEXTS } from "../texts";
import { worded } from "../wording";
import { clock } from "./events";
import { Icon } from "./icons";

/** Show at most this many safety notices at a time, the newest first. */
const MAX_SHOWN = 2;

/** A stop that the robot has not confirmed: until it has. */
function UnconfirmedStop() {
  const stopped = robot.status.value?.unconfirmed_stop;
  if (!stopped) return null;
  return (
    <div class="banner bad" role="alert" data-testid="unconfirmed-stop">
      <Icon name="warn" />
      <p>
        <strong>{sentence(worded(stopped.text))}</strong> <span>{TEXTS.stop.since(Math.round(stopped.since_s))}</span>
      </p>
    </div>
  );
}

/** Soft limbs, whichever client made them soft; a teaching of this server shows them itself. */
function Soft() {
  const soft = robot.status.value?.soft;
  if (!soft || soft.by === "teaching") return null;
  const T = TEXTS.soft;
  const title =
    soft.by === "damping" ? T.damping : soft.by === "unknown" ? T.maybe[robot.limbs.value] : T.title[robot.limbs.value];
  return (
    <div class="banner hold" role="alert" data-testid="soft" data-by={soft.by}>
      <Icon name="warn" />
      <p>
        <strong>{title}.</strong> {T.words[soft.by]}
      </p>
      {soft.can_hold && (
        <button type="button" class="button" onClick={() => void stop()} data-testid="hold-limbs">
          {T.hold[robot.limbs.value]}
        </button>
      )}
    </div>
  );
}

function SafetyNotices() {
  // What still goes on has a banner of its own; its notice is shown when that is over.
  const { unconfirmed_stop, storage_problem } = robot.status.value ?? {};
  const all = eventLog.safety.value.filter(
    ({ kind }) => !(unconfirmed_stop && kind === "stop-unconfirmed") && !(storage_problem && kind === "not-saved"),
  );
  const shown = all.slice(-MAX_SHOWN).reverse();
  return (
    <>
      {shown.map((event) => (
        <div key={event.id} class="banner bad" role="alert" data-testid="safety">
          <Icon name="warn" />
          <p>
            <span class="numbers">{clock(event.time_s)}</span> <strong>{sentence(worded(event.text))}</strong>
          </p>
          <button type="button" class="button" onClick={() => void eventLog.acknowledge(event)}>
            {TEXTS.events.acknowledge}
          </button>
        </div>
      ))}
      {all.length > shown.length && (
        <p class="banner bad" data-testid="safety-more">
          {TEXTS.events.more(all.length - shown.length)}
        </p>
      )}
    </>
  );
}

export function Alerts() {
  if (connection.link.value !== "open") return null;
  return (
    <>
      <UnconfirmedStop />
      <Soft />
      <SafetyNotices />
    </>
  );
}
