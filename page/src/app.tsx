/** The frame around the screens. */

import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { sentence } from "./format";
import { focusOf, stops } from "./keys";
import { CHOICES, chooseLanguage, languageChoice, LANGUAGES, type LanguageChoice } from "./languages";
import { silentSeconds, stop } from "./live";
import { Alerts } from "./parts/alerts";
import { Bar } from "./parts/bar";
import { Boundary } from "./parts/boundary";
import { Dialog } from "./parts/dialog";
import { ReturnBanner } from "./parts/return-banner";
import { Icon } from "./parts/icons";
import { CommandBanner, People } from "./parts/people";
import { Proposal } from "./parts/proposal";
import { StorageProblem } from "./parts/unsaved";
import { View } from "./parts/view";
import { EditDock, EditScreen } from "./screens/edit";
import { connection } from "./state/connection";
import { editor } from "./state/editor";
import { learning } from "./state/learn";
import { robot } from "./state/robot";
import { scene } from "./state/scene";
import { stage } from "./state/stage";
import { QUALITIES, SCREENS, type Screen, THEMES, ui } from "./state/ui";
import { CuesScreen } from "./screens/cues";
import { LibraryScreen } from "./screens/library";
import { RobotScreen } from "./screens/robot";
import { TeachScreen } from "./screens/teach";
import { TEXTS } from "./texts";
import * as wording from "./wording";
import { bindStyles } from "./css";
import styles from "./app.module.css";

const css = bindStyles(styles);

/** The screen for shows: large and not always needed, so it is loaded when it is opened. */
const showParts = signal<typeof import("./screens/show") | null>(null);

function ShowScreen() {
  useEffect(() => {
    void import("./screens/show").then((parts) => (showParts.value = parts));
  }, []);
  const parts = showParts.value;
  return parts ? <parts.ShowScreen /> : <p class="muted">{TEXTS.link.opening}</p>;
}

const CONTENT: Record<Screen, () => preact.JSX.Element> = {
  robot: RobotScreen,
  teach: TeachScreen,
  library: LibraryScreen,
  edit: EditScreen,
  cues: CuesScreen,
  show: ShowScreen,
};

function Nav() {
  return (
    <nav class={css("nav")} aria-label={TEXTS.nav}>
      {SCREENS.map((name) => (
        <a key={name} href={`#/${name}`} aria-current={ui.screen.value === name ? "page" : undefined}>
          <Icon name={name} />
          <span>{TEXTS.screens[name]}</span>
        </a>
      ))}
    </nav>
  );
}

function Choice<Value extends string>({
  label,
  values,
  labels,
  chosen,
  refused,
  why,
  disabled,
  onChoose,
}: {
  label: string;
  values: readonly Value[];
  labels: Record<Value, string>;
  chosen: Value;
  refused?: Value | null;
  why?: string;
  disabled?: boolean;
  onChoose: (value: Value) => void;
}) {
  return (
    <fieldset class={css("choice")}>
      <legend>{label}</legend>
      <div class={css("segments")}>
        {values.map((value) => (
          <button
            type="button"
            key={value}
            class="toggle"
            aria-pressed={chosen === value}
            disabled={disabled === true || value === refused}
            onClick={() => onChoose(value)}
          >
            {labels[value]}
          </button>
        ))}
      </div>
      {refused && <p class="muted small">{why}</p>}
    </fieldset>
  );
}

const LANGUAGE_LABELS: Record<LanguageChoice, string> = { auto: TEXTS.language.auto, ...LANGUAGES };

/** The language; the page is opened anew for it, so not while the robot moves. */
function LanguageChoices() {
  return (
    <>
      <Choice
        label={TEXTS.language.label}
        values={CHOICES}
        labels={LANGUAGE_LABELS}
        chosen={languageChoice()}
        disabled={robot.moving.value}
        onChoose={chooseLanguage}
      />
      <p class="muted small">{robot.moving.value ? TEXTS.language.moving : TEXTS.language.note}</p>
    </>
  );
}

function Settings() {
  const [open, setOpen] = useState(false);
  return (
    <div class="settings">
      <button
        type="button"
        class="icon-button"
        data-testid="settings"
        aria-label={TEXTS.settings}
        title={TEXTS.settings}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name="gear" />
      </button>
      {open && (
        <div class="popover">
          <Choice
            label={TEXTS.theme.label}
            values={THEMES}
            labels={TEXTS.theme}
            chosen={ui.theme.value}
            onChoose={(value) => (ui.theme.value = value)}
          />
          <Choice
            label={TEXTS.quality.label}
            values={QUALITIES}
            labels={TEXTS.quality}
            chosen={ui.quality.value}
            refused={ui.softwareRendering.value ? "high" : null}
            why={TEXTS.qualityRefused}
            onChoose={(value) => (ui.quality.value = value)}
          />
          <LanguageChoices />
        </div>
      )}
    </div>
  );
}

function Pill() {
  const state = connection.link.value === "open" ? (robot.connection.value?.state ?? "off") : "lost";
  const words =
    connection.link.value === "open"
      ? robot.describeState(robot.connection.value)
      : connection.link.value === "full"
        ? TEXTS.link.full
        : connection.stale.value
          ? TEXTS.link.notLive
          : TEXTS.link.opening;
  const battery = robot.status.value?.battery_percent;
  return (
    <a class={css("pill")} href="#/robot" data-testid="pill" data-state={state}>
      <span class={`dot ${state}`} aria-hidden="true" />
      <span>{words}</span>
      {battery != null && state === "connected" && <span class="muted wide-only">{Math.round(battery)} %</span>}
    </a>
  );
}

function Banner() {
  if (connection.stale.value) return null; // the overlay NotLive shows that
  const there = robot.connection.value;
  // The Robot screen tells it at length.
  if (there?.state === "lost" && ui.screen.value !== "robot") {
    const words = `${robot.describeState(there)}, ${TEXTS.connection.again}`;
    return (
      <div class="banner bad" role="alert" data-testid="lost">
        <Icon name="warn" />
        <p>
          <strong>{sentence(words)}</strong> {sentence(wording.message(there))} {sentence(wording.remedy(there))}
        </p>
      </div>
    );
  }
  return <CommandBanner />;
}

/** The overlay for a page that is not live; only the bar with STOP is above it. */
function NotLive() {
  const [, tick] = useState(0);
  const on = connection.stale.value;
  useEffect(() => {
    if (!on) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 500);
    return () => clearInterval(timer);
  }, [on]);
  if (!on) return null;
  const state = connection.link.value === "full" ? "full" : connection.link.value === "silent" ? "silent" : "closed";
  const wasSoft = (robot.status.value?.soft ?? null) !== null || robot.activity.value?.kind === "teaching";
  return (
    <div
      class={css("not-live")}
      role="alertdialog"
      aria-labelledby="not-live"
      aria-describedby="not-live-why"
      data-testid="not-live"
      data-state={state}
    >
      <div class={css("not-live-words")}>
        <h2 id="not-live">{state === "full" ? TEXTS.link.full : TEXTS.link.notLive}</h2>
        <p id="not-live-why">
          {state === "full"
            ? `${sentence(connection.refusal.value.message)} ${sentence(connection.refusal.value.remedy)}`
            : TEXTS.link[state]}{" "}
          {state !== "full" && TEXTS.link.old}
        </p>
        {wasSoft && (
          <p class="bad-words" data-testid="maybe-soft">
            <strong>{TEXTS.soft.maybe[robot.limbs.value]}.</strong> {TEXTS.soft.withoutServer[robot.limbs.value]}
          </p>
        )}
        <p>
          <strong>{state === "full" ? TEXTS.link.fullStop : TEXTS.link.remote}</strong>
        </p>
        {state !== "full" && <p class="muted">{TEXTS.link.again(Math.round(silentSeconds()))}</p>}
      </div>
    </div>
  );
}

function onKey(event: KeyboardEvent): void {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const active =
    robot.moving.peek() || stage.running.peek() || scene.countdown.peek() !== null || connection.stale.peek();
  if (!stops(event.key, focusOf(document.activeElement, active))) return;
  // Escape in a question at rest only closes it.
  const closes = event.key === "Escape" && ui.question.peek() !== null && !active;
  event.preventDefault();
  ui.question.value = null;
  if (!closes) void stop();
}

/** The whole page; a `notice` is shown above all its screens. */
export function App({ notice }: { notice?: preact.JSX.Element }) {
  useEffect(() => {
    // Before everything else on the page, so that nothing can swallow a stop.
    addEventListener("keydown", onKey, { capture: true });
    return () => removeEventListener("keydown", onKey, { capture: true });
  }, []);
  useEffect(() => scrollTo({ top: 0 }), [ui.screen.value]);
  const Content = CONTENT[ui.screen.value];
  const behind = ui.question.value !== null;
  const isEditing = ui.screen.value === "edit" && editor.opened.value !== null && editor.edited.value !== null;
  const shows = ui.screen.value === "show" ? showParts.value : null;
  const lanes = shows?.hasLanes.value ?? false;
  const docked = isEditing || lanes;
  // A learned motion is shown in the library, and needs as much of the view as a robot does.
  const layout = ui.screen.value === "library" && learning.band.value ? "learn" : ui.screen.value;
  return (
    <div class={`app on-${layout}${docked ? " docked" : ""}`}>
      <button type="button" class={css("skip")} onClick={() => document.getElementById("panel")?.focus()}>
        {TEXTS.skip}
      </button>
      <header class={css("top")} inert={behind}>
        <a class={css("brand")} href="#/robot" aria-label={`${TEXTS.brand} ${TEXTS.product}`}>
          <img src="./icon.svg" alt="" width={28} height={28} />
          <b>{TEXTS.brand}</b> <span>{TEXTS.product}</span>
        </a>
        <Nav />
        <div class={css("top-end")}>
          <Pill />
          <People />
          <Settings />
        </div>
      </header>
      <div class={css("banners")} inert={behind}>
        {notice}
        <Alerts />
        <StorageProblem />
        <Banner />
        <ReturnBanner />
        <Proposal />
      </div>
      <Boundary quiet>
        <View />
      </Boundary>
      {isEditing && (
        <Boundary quiet>
          <EditDock inert={behind} />
        </Boundary>
      )}
      {lanes && shows && (
        <Boundary quiet>
          <shows.ShowDock inert={behind} />
        </Boundary>
      )}
      <main
        class={css("panel")}
        inert={behind}
        id="panel"
        tabIndex={-1}
        aria-label={TEXTS.screens[ui.screen.value]}
        data-screen={ui.screen.value}
        key={ui.screen.value}
      >
        {/* The editor has one of its own: the name of the take. */}
        {!isEditing && <h1 class="hidden">{TEXTS.screens[ui.screen.value]}</h1>}
        <Boundary key={ui.screen.value}>
          <Content />
        </Boundary>
      </main>
      <Bar />
      <Dialog />
      <NotLive />
    </div>
  );
}
