/** After a STOP: who has confirmed it, which robots are ready, and its reset. */

import { sentence } from "../../format";
import { robot } from "../../state/robot";
import { showEditor } from "../../state/show-editor";
import { stage } from "../../state/stage";
import { TEXTS } from "../../texts";
import { bindStyles } from "../../css";
import styles from "./stop-box.module.css";

const css = bindStyles(styles);
const T = TEXTS.show;

export function StopBox() {
  const stop = stage.current.value?.stop;
  if (!stop) return null;
  return (
    <div class={css("stop-holds")} role="alert" data-testid="stop-holds">
      <p>
        <strong>{T.stopBy(stop.by)}</strong>{" "}
        {stop.unconfirmed.length ? T.unconfirmed(stop.unconfirmed.join(", ")) : T.confirmed(stop.confirmed_ms)}
      </p>
      <ul class={css("readiness")} aria-label={T.cueList.readiness}>
        {Object.entries(stop.obstacles).map(([name, obstacle]) => (
          <li key={name} data-testid="readiness" data-name={name} data-ready={obstacle === ""}>
            <strong>{name}</strong>: {obstacle ? sentence(obstacle) : T.lamps.ready}
          </li>
        ))}
      </ul>
      <button
        type="button"
        class="button"
        disabled={!robot.mayCommand.value || stage.working.value}
        onClick={showEditor.askToReset}
        data-testid="release"
      >
        {T.release}
      </button>
    </div>
  );
}
