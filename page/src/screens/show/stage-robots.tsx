/** The robots of the stage: a lamp for each, and whether it takes part. */

import { dotOf } from "../../lamps";
import { robot as own } from "../../state/robot";
import { showEditor } from "../../state/show-editor";
import { stage } from "../../state/stage";
import { TEXTS } from "../../texts";
import type { StageRobot } from "../../types";
import { bindStyles } from "../../css";
import styles from "./stage-robots.module.css";

const css = bindStyles(styles);
const T = TEXTS.show;

function RobotRow({ robot }: { robot: StageRobot }) {
  const role = Object.entries(showEditor.cast.value).find(([, name]) => name === robot.name)?.[0];
  const inCast = stage.current.value?.run?.robots.includes(robot.name) ?? false;
  const moves = robot.lamp === "ready" && robot.moving;
  return (
    <li
      class={css("robot-row")}
      data-testid="stage-robot"
      data-name={robot.name}
      data-lamp={robot.lamp}
      data-state={!robot.reachable ? "lost" : robot.ready ? "connected" : "connecting"}
    >
      <span class={`dot ${dotOf(robot.lamp)}`} aria-hidden="true" />
      <span class={css("robot-name")}>
        {robot.name}
        {role && <span class="muted"> · {role}</span>}
      </span>
      <span class={css(dotOf(robot.lamp) === "lost" ? "bad-words lamp" : "lamp")}>
        {moves ? T.moves : T.lamps[robot.lamp]}
      </span>
      <span class={robot.clock_bound_ms !== null ? "numbers muted wide-only" : "muted"}>
        {robot.clock_bound_ms !== null
          ? `±${robot.clock_bound_ms.toFixed(1)} ms`
          : robot.reachable && !robot.ready && T.clockUnknown}
      </span>
      {(inCast || robot.muted) && (
        <button
          type="button"
          class="button quiet"
          aria-label={robot.muted ? T.cueList.unmuteRobot(robot.name) : T.cueList.muteRobot(robot.name)}
          disabled={!own.mayCommand.value || stage.working.value}
          onClick={() => void stage.control({ verb: robot.muted ? "unmute" : "mute", robot: robot.name })}
          data-testid="mute"
        >
          {robot.muted ? T.cueList.unmute : T.cueList.mute}
        </button>
      )}
      {(robot.fault || robot.faults.length > 0) && (
        <span class={css("bad-words robot-fault")}>{[robot.fault, ...robot.faults].filter(Boolean).join("; ")}</span>
      )}
    </li>
  );
}

export function StageRobots() {
  const robots = stage.current.value?.robots ?? [];
  return (
    <>
      <ul class={css("robots")} aria-label={T.robots}>
        {robots.map((robot) => (
          <RobotRow key={robot.name} robot={robot} />
        ))}
      </ul>
      {robots.length === 0 && <p class="muted">{T.noRobots}</p>}
    </>
  );
}
