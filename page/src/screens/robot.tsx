/** Screen 1: the robot, how it is, and which one. */

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { degrees, group, GROUPS, joint as jointName, sentence } from "../format";
import { Events } from "../parts/events";
import { Findings } from "../parts/findings";
import { Icon } from "../parts/icons";
import { now } from "../state/clock";
import { connection } from "../state/connection";
import { robot } from "../state/robot";
import { scene } from "../state/scene";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import type { Found, Joint, KnownRobots } from "../types";
import * as wording from "../wording";
import { bindStyles } from "../css";
import styles from "./robot.module.css";

const css = bindStyles(styles);
const T = TEXTS.connection;
const EMBEDDED = "sim://g1";

/** Ask whether the robot lies or hangs, and connect to its motors; the server checks it too, if it can. */
export function askForMotors(): void {
  const url = robot.connection.peek()?.url;
  const { toMotorsQuestion, toMotorsDanger, toMotorsConfirm } = TEXTS.levels;
  if (!url) return;
  ui.question.value = {
    title: toMotorsQuestion,
    message: toMotorsDanger,
    confirm: toMotorsConfirm,
    danger: true,
    then: () => ui.attempt(() => api.connect(url, "", "teach")),
  };
}

/** A robot with levels: which one is connected, and the way to the other. */
export function Levels() {
  const there = robot.connection.value;
  const words = TEXTS.levels;
  if (!there?.url || there.state === "connecting") return null;
  const back = (): void => void ui.attempt(() => api.connect(there.url as string, "", "look"));
  if (robot.canElsewhere("teach")) {
    return (
      <div class="stack" data-testid="levels">
        {there.state === "connected" && <p class="muted">{words.toMotorsWords}</p>}
        <div class="row wrap">
          <button
            type="button"
            class="button"
            disabled={!robot.mayCommand.value}
            onClick={askForMotors}
            data-testid="to-motors"
          >
            {words.toMotors}
          </button>
          {robot.canElsewhere("walk") && (
            <button
              type="button"
              class="button"
              disabled={!robot.mayCommand.value}
              onClick={back}
              data-testid="to-walking"
            >
              {words.toWalking}
            </button>
          )}
        </div>
      </div>
    );
  }
  if (!robot.canElsewhere("walk")) return null;
  return (
    <div class="stack" data-testid="levels">
      <p class="muted">{words.toWalkingWords}</p>
      <div class="row wrap">
        <button type="button" class="button" disabled={!robot.mayCommand.value} onClick={back} data-testid="to-walking">
          {words.toWalking}
        </button>
      </div>
    </div>
  );
}

/** The robots that the server can simulate itself; requested when the list is opened. */
function Simulated({ onChoose, free }: { onChoose: (url: string) => void; free: boolean }) {
  const [known, setKnown] = useState<KnownRobots | null>(null);
  useEffect(() => {
    api.robots().then(setKnown, ui.report);
  }, []);
  return (
    <label class="field">
      <span>{T.simulate}</span>
      <select
        disabled={!free}
        value=""
        data-testid="simulate"
        onChange={(event) => event.currentTarget.value && onChoose(event.currentTarget.value)}
      >
        <option value="">–</option>
        {[...(known?.simulated ?? []), ...(known?.led ?? [])].map(({ url, title }) => (
          <option key={url} value={url}>
            {title} ({url})
          </option>
        ))}
      </select>
      <small class="muted">{T.simulateNote}</small>
    </label>
  );
}

/** Where connecting has failed, on a wire that has stages. */
function Stages({ failed }: { failed: string }) {
  const stages = Object.entries(T.stages);
  const at = stages.findIndex(([stage]) => stage === failed);
  if (at < 0) return <p class="muted">{failed}</p>;
  return (
    <ol class={css("stages")} aria-label={T.stagesLabel} data-testid="stages">
      {stages.map(([stage, words], index) => {
        const [how, result] =
          index < at
            ? (["done", T.stageDone] as const)
            : index === at
              ? (["failed", T.stageFailed] as const)
              : (["open", T.stageOpen] as const);
        return (
          <li key={stage} class={css(how)}>
            <Icon name={how === "done" ? "check" : how === "failed" ? "close" : "more"} />
            <span>{words}</span>
            <span class="hidden">, {result}</span>
          </li>
        );
      })}
    </ol>
  );
}

function Connection() {
  const there = robot.connection.value;
  const [url, setUrl] = useState("");
  const [key, setKey] = useState("");
  const [found, setFound] = useState<Found[] | null>(null);
  const [discovering, setDiscovering] = useState(false);
  const free = robot.mayCommand.value;
  const connect = (to: string, secret = ""): void => void ui.attempt(() => api.connect(to, secret));
  const discover = async (): Promise<void> => {
    setDiscovering(true);
    try {
      setFound((await api.discover()).robots);
    } catch (error) {
      ui.report(error);
    }
    setDiscovering(false);
  };
  const state = there?.state ?? "off";
  const lost = state === "lost";
  return (
    <section class="card" aria-labelledby="connection-title">
      <h2 id="connection-title">{T.title}</h2>
      <div class={css("connection")} data-testid="connection" data-state={state}>
        <p class="big" role={lost ? "alert" : undefined} data-testid={lost ? "lost" : undefined}>
          <span class={`dot ${connection.stale.value ? "lost" : state}`} aria-hidden="true" />
          {lost ? `${robot.describeState(there)}, ${T.again}` : robot.describeState(there)}
          {there?.simulated && <span class="chip">{T.simulated}</span>}
        </p>
        {there?.url && <p class="mono">{there.url}</p>}
        {state === "connected" && robot.status.value?.title && (
          <p class="muted" data-testid="title">
            {sentence(robot.status.value.title)}
          </p>
        )}
        {there?.message && state !== "connected" && <p>{sentence(wording.message(there))}</p>}
        {there?.stage && state !== "connected" && <Stages failed={there.stage} />}
        {there?.remedy && <p class="remedy">{sentence(wording.remedy(there))}</p>}
        <Levels />
      </div>
      <details class="more">
        <summary>{T.change}</summary>
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            connect(url.trim(), key.trim());
          }}
        >
          <div class="row wrap">
            <button type="button" class="button" disabled={!free} onClick={() => connect(EMBEDDED)}>
              {T.useSimulated}
            </button>
            <button type="button" class="button" disabled={discovering} onClick={discover}>
              {discovering ? T.discovering : T.discover}
            </button>
          </div>
          <Simulated onChoose={connect} free={free} />
          {found && <p class="muted">{T.found(found.length)}</p>}
          {found?.map((robot) => (
            <button type="button" key={robot.url} class="button wide" onClick={() => connect(robot.url, key.trim())}>
              {robot.serial || robot.address} <span class="mono">{robot.url}</span>
            </button>
          ))}
          <label class="field">
            <span>{T.address}</span>
            <input
              type="text"
              value={url}
              placeholder={T.addressHint}
              autoComplete="off"
              spellcheck={false}
              required
              onInput={(event) => setUrl(event.currentTarget.value)}
            />
          </label>
          <label class="field">
            <span>{T.key}</span>
            <input
              type="password"
              value={key}
              placeholder={T.keyHint}
              autoComplete="off"
              onInput={(event) => setKey(event.currentTarget.value)}
            />
          </label>
          <div class="row">
            <button type="submit" class="button primary" disabled={!free}>
              {T.connect}
            </button>
            <button
              type="button"
              class="button"
              disabled={!free || state === "off"}
              onClick={() => ui.attempt(() => api.disconnect())}
            >
              {T.disconnect}
            </button>
          </div>
        </form>
      </details>
    </section>
  );
}

function Health() {
  const status = robot.status.value;
  const words = TEXTS.health;
  const heats = status?.temperatures_c ?? [];
  const heat = heats.length ? Math.max(...heats) : null;
  const warmest = robot.model.value?.joints.find((joint) => heat !== null && joint.index === heats.indexOf(heat));
  const damp = (): void => {
    ui.question.value = {
      title: words.dampQuestion,
      message: words.dampWords,
      confirm: words.damp,
      danger: true,
      then: () => ui.attempt(() => api.damp()),
    };
  };
  return (
    <section class="card" aria-labelledby="health-title">
      <h2 id="health-title">{words.title}</h2>
      <dl class="facts">
        <div>
          <dt>{words.mode}</dt>
          <dd data-testid="mode">
            {status?.mode ? (
              <>
                {status.mode.name}{" "}
                <span class={status.mode.balanced ? "chip good" : "chip warn"}>
                  {status.mode.balanced ? words.balanced : words.notBalanced}
                </span>
              </>
            ) : (
              words.unknown
            )}
          </dd>
        </div>
        <div>
          <dt>{words.battery}</dt>
          <dd>{status?.battery_percent == null ? words.unknown : `${Math.round(status.battery_percent)} %`}</dd>
        </div>
        <div>
          <dt>{words.heat}</dt>
          <dd>
            {heat === null ? (
              words.unknown
            ) : (
              <>
                {Math.round(heat)} °C {warmest && <span class="muted small">{jointName(warmest.name)}</span>}
              </>
            )}
          </dd>
        </div>
        <div>
          <dt>{words.faults}</dt>
          <dd>
            {status?.faults.length ? status.faults.join("; ") : robot.connected.value ? words.none : words.unknown}
          </dd>
        </div>
      </dl>
      {(robot.can("mode") || !robot.connected.value) && (
        <div class="row wrap">
          <button
            type="button"
            class="button"
            disabled={!robot.ready.value}
            onClick={() => ui.attempt(() => api.mode("stand"))}
          >
            {words.stand}
          </button>
          {robot.can("lie") && (
            <button
              type="button"
              class="button"
              disabled={!robot.ready.value}
              onClick={() => ui.attempt(() => api.mode("lie"))}
            >
              {words.lie}
            </button>
          )}
          <button type="button" class="button" disabled={!robot.ready.value} onClick={damp}>
            {words.damp}
          </button>
        </div>
      )}
    </section>
  );
}

/** One joint's angle between its limits; drawn by hand, ten times a second. */
function Row({ joint }: { joint: Joint }) {
  const mark = useRef<HTMLElement>(null);
  const text = useRef<HTMLTableCellElement>(null);
  useEffect(() => {
    const draw = (): void => {
      const angle = robot.poses.at(now())?.[joint.index];
      mark.current?.classList.toggle(css("unknown"), angle === undefined);
      if (angle === undefined) {
        if (text.current) text.current.textContent = TEXTS.joints.unknown;
        return;
      }
      const share = (angle - joint.lower_rad) / (joint.upper_rad - joint.lower_rad);
      mark.current?.style.setProperty("--share", String(Math.min(1, Math.max(0, share))));
      mark.current?.classList.toggle(css("near"), share < 0.04 || share > 0.96);
      const words = degrees(angle);
      if (text.current && text.current.textContent !== words) text.current.textContent = words;
    };
    const timer = setInterval(draw, 100);
    draw();
    return () => clearInterval(timer);
  }, [joint]);
  return (
    <tr
      onPointerEnter={() => (scene.highlighted.value = joint.name)}
      onPointerLeave={() => (scene.highlighted.value = null)}
    >
      <th scope="row">{jointName(joint.name)}</th>
      <td class={css("angle")} ref={text} />
      <td class={css("limits")}>
        <span>{degrees(joint.lower_rad)}</span>
        <i class={css("gauge")} ref={mark} aria-hidden="true" />
        <span>{degrees(joint.upper_rad)}</span>
      </td>
    </tr>
  );
}

function Joints() {
  const known = robot.model.value;
  if (!known) return null;
  const groups = GROUPS.filter((name) => known.joints.some((joint) => group(joint) === name));
  return (
    <section class="card" aria-labelledby="joints-title">
      <h2 id="joints-title">{TEXTS.joints.title}</h2>
      {groups.map((name) => (
        <details key={name} class="more" open={name === "right_arm" || name === "front_right" || groups.length === 1}>
          <summary>{TEXTS.joints.groups[name]}</summary>
          <table class={css("joints")}>
            <thead class="hidden">
              <tr>
                <th scope="col">{TEXTS.joints.name}</th>
                <th scope="col">{TEXTS.joints.angle}</th>
                <th scope="col">{TEXTS.joints.limits}</th>
              </tr>
            </thead>
            <tbody>
              {known.joints
                .filter((joint) => group(joint) === name)
                .map((joint) => (
                  <Row key={joint.name} joint={joint} />
                ))}
            </tbody>
          </table>
        </details>
      ))}
    </section>
  );
}

/** A robot whose protection has tripped does nothing more until the operator has inspected it. */
export function Anew() {
  const there = robot.status.value;
  const url = there?.connection.url;
  if (!robot.connected.value || !url || !there.faults.length || !there.elsewhere.length) return null;
  const level = robot.can("teach") ? "teach" : "look"; // the same as now
  return (
    <button
      type="button"
      class="button"
      disabled={!robot.mayCommand.value}
      onClick={() => ui.attempt(() => api.connect(url, "", level))}
      data-testid="anew"
    >
      {TEXTS.levels.lookedAt}
    </button>
  );
}

export function RobotScreen() {
  return (
    <>
      <Connection />
      <section class="card" aria-labelledby="preflight-title">
        <h2 id="preflight-title">{TEXTS.preflight.title}</h2>
        {robot.connected.value ? (
          <Findings
            findings={robot.status.value?.findings ?? []}
            fine={robot.can("teach") ? TEXTS.preflight.fine : TEXTS.preflight.fineToLook}
          />
        ) : (
          <p class="muted">{TEXTS.preflight.unknown}</p>
        )}
        <Anew />
      </section>
      <Health />
      <Events />
      <Joints />
    </>
  );
}
