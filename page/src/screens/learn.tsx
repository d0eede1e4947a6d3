/** A motion learned from several takes: how they vary, where its hands are led, and saving it as a take. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { freeName, hundredths } from "../format";
import { Chart } from "../parts/chart";
import { Findings } from "../parts/findings";
import { Icon } from "../parts/icons";
import { LEAST_S } from "../keyframes";
import { handOf } from "../pose";
import { type Edge, learning, type Target } from "../state/learn";
import { library } from "../state/library";
import { robot } from "../state/robot";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { bindStyles } from "../css";
import styles from "./learn.module.css";

const css = bindStyles(styles);
const T = TEXTS.library.learn;
const SHORTEST_S = 0.5;
const LONGEST_S = 600;

const handName = (hand: "left" | "right"): string => TEXTS.edit.ends[`${hand}_arm`];

function askToSave(takes: readonly string[]): void {
  const names = library.takes.peek().map(({ name }) => name);
  ui.question.value = {
    title: T.saveTitle,
    message: "",
    confirm: TEXTS.edit.save,
    field: { label: TEXTS.library.newName, value: freeName(T.name(takes[0] ?? ""), names) },
    then: learning.save,
  };
}

const EDGES: readonly Edge[] = ["start", "end"];

/** The hands that are led elsewhere, and the ends that are not as learned. */
function Targets({ duration_s }: { duration_s: number }) {
  const describe = ({ hand, share }: Target): string => T.target(handName(hand), hundredths(share * duration_s));
  return (
    <div class="row wrap" role="group" aria-label={T.targets} data-testid="targets">
      {learning.targets.value.map((target) => (
        <button
          type="button"
          key={`${target.hand} ${target.share}`}
          class="chip"
          aria-label={T.removeTarget(describe(target))}
          onClick={() => learning.removeTarget(target)}
        >
          {describe(target)} ×
        </button>
      ))}
      {EDGES.filter((edge) => learning.edges[edge].value).map((edge) => (
        <button
          type="button"
          key={edge}
          class="chip"
          aria-label={T.removeTarget(T.edges[edge])}
          onClick={() => learning.resetEdge(edge)}
        >
          {T.edges[edge]} ×
        </button>
      ))}
    </div>
  );
}

function Against() {
  const made = learning.adapted.value;
  const wanted_s = learning.duration_s.value ?? learning.band.value?.duration_s ?? 0;
  return (
    <div class="findings" role="status" data-testid="against" data-checked={made?.findings != null}>
      {learning.refusal.value && <p class="bad-words">{learning.refusal.value}</p>}
      {made?.far.map(({ hand, time_s, std }) => (
        <p key={`${hand} ${time_s}`} class="finding warning" data-testid="far">
          <Icon name="warn" />
          <span>{T.far(handName(hand), hundredths(time_s), std.toFixed(1))}</span>
        </p>
      ))}
      {made && made.duration_s > wanted_s + LEAST_S && <p class="muted">{T.slower(hundredths(made.duration_s))}</p>}
      {made?.findings ? (
        <Findings findings={made.findings} fine={T.fine} limit={3} />
      ) : (
        !learning.refusal.value && <p class="muted">{TEXTS.edit.checking}</p>
      )}
    </div>
  );
}

function Duration({ seconds }: { seconds: number }) {
  // What is being typed stays while the motion is worked out.
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <label class="inline">
      <span>{T.duration} (s)</span>
      <input
        type="number"
        min={SHORTEST_S}
        max={LONGEST_S}
        step={0.1}
        value={typed ?? seconds.toFixed(2)}
        data-testid="learned-duration"
        onInput={(event) => setTyped(event.currentTarget.value)}
        onChange={(event) => {
          const wanted_s = Number(event.currentTarget.value);
          setTyped(null);
          if (wanted_s >= SHORTEST_S && wanted_s <= LONGEST_S) learning.setDuration(wanted_s);
        }}
      />
    </label>
  );
}

export function Learned() {
  const title = useRef<HTMLHeadingElement>(null);
  // The button that had the focus is gone.
  useEffect(() => title.current?.focus({ preventScroll: true }), []);
  const band = learning.shownBand.value;
  const shown = learning.shown.value;
  const view = useMemo(() => ({ from: 0, to: shown?.duration_s ?? 1 }), [shown?.duration_s]);
  if (!band || !shown) return null;
  const { takes } = band;
  const isOwn = robot.connected.value && robot.model.value?.family === band.family;
  const hands = learning.owner.value?.ends.filter(({ limb }) => handOf(limb)).length ?? 0;
  return (
    <section class="card" aria-labelledby="learned-title" data-testid="learned">
      <div class="row spread">
        <h2 id="learned-title" tabIndex={-1} ref={title}>
          {T.title(takes.length)}
        </h2>
        <button type="button" class="button quiet" onClick={learning.close} data-testid="learned-close">
          {T.close}
        </button>
      </div>
      <p class="muted">{takes.join(" · ")}</p>
      <p class="muted">{hands ? T.help : T.noHands}</p>
      <label class={css("moment")}>
        <span>{T.moment}</span>
        <input
          type="range"
          min={0}
          max={shown.duration_s}
          step={0.01}
          value={learning.playhead.value}
          aria-valuetext={hundredths(learning.playhead.value)}
          data-testid="learned-moment"
          onInput={(event) => learning.seek(Number(event.currentTarget.value))}
        />
        <output>{hundredths(learning.playhead.value)}</output>
      </label>
      <Duration seconds={learning.duration_s.value ?? band.duration_s} />
      {isOwn && (
        <label class="check">
          <input
            type="checkbox"
            checked={learning.beginsAtRobot.value}
            onChange={(event) => learning.beginAtRobot(event.currentTarget.checked)}
          />{" "}
          <span>{T.beginAtRobot}</span>
        </label>
      )}
      {hands === 2 && (
        <label class="check">
          <input
            type="checkbox"
            checked={learning.bothHands.value}
            onChange={(event) => (learning.bothHands.value = event.currentTarget.checked)}
            data-testid="both-hands"
          />{" "}
          <span>{T.bothHands}</span>
        </label>
      )}
      <Targets duration_s={shown.duration_s} />
      <Against />
      <div class="row end">
        <button
          type="button"
          class="button"
          aria-pressed={learning.previewing.value}
          onClick={() => (learning.previewing.value ? learning.stopPreview() : learning.preview())}
          data-testid="learned-preview"
        >
          <Icon name={learning.previewing.value ? "pause" : "play"} />
          {learning.previewing.value ? TEXTS.edit.stopPreview : TEXTS.edit.preview}
        </button>
        <button
          type="button"
          class="button primary"
          disabled={!robot.mayCommand.value || !learning.adapted.value}
          onClick={() => askToSave(takes)}
          data-testid="learned-save"
        >
          {T.save}
        </button>
      </div>
      <Chart
        curves={band}
        spread={band.spread_rad}
        proposed={learning.adapted.value}
        label={T.band}
        view={view}
        moment={learning.playhead.value}
      />
      <p class="muted small">{T.shade}</p>
    </section>
  );
}
