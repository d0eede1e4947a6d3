/** The list of recent events: stops, losses, recoveries, saved takes. The server keeps it, so a reload loses none. */

import { useState } from "preact/hooks";
import { sentence } from "../format";
import { eventLog } from "../state/event-log";
import { TEXTS } from "../texts";
import { worded } from "../wording";
import { bindStyles } from "../css";
import styles from "./events.module.css";

const css = bindStyles(styles);
const T = TEXTS.events;
const MAX_SHOWN = 8;

/** Return the time of day of an event, by this computer's clock. */
export function clock(time_s: number): string {
  return new Date(time_s * 1000).toLocaleTimeString(document.documentElement.lang);
}

export function Events() {
  const [all, setAll] = useState(false);
  const newest = [...eventLog.events.value].reverse();
  const shown = all ? newest : newest.slice(0, MAX_SHOWN);
  return (
    <section class="card" aria-labelledby="events-title" data-testid="events">
      <h2 id="events-title">{T.title}</h2>
      {shown.length === 0 && <p class="muted">{T.none}</p>}
      <ul class={css("events")}>
        {shown.map((event) => (
          <li key={event.id} class={css(event.safety ? "event safety" : "event")} data-kind={event.kind}>
            <span class="muted numbers">{clock(event.time_s)}</span>
            <span>
              {sentence(worded(event.text))}{" "}
              {event.safety && event.acknowledged && <small class="muted">{T.read}</small>}
            </span>
          </li>
        ))}
      </ul>
      {newest.length > MAX_SHOWN && (
        <button type="button" class="link" onClick={() => setAll(!all)}>
          {all ? T.fewer : T.all(newest.length)}
        </button>
      )}
    </section>
  );
}
