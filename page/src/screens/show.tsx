/** Screen 6: a show of several robots on lanes, its check and preview, and GO. On a phone GO alone. */

import "../show.css";
import { computed, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { hundredths, picture, seconds, sentence } from "../format";
import { focusOf } from "../keys";
import { Icon } from "../parts/icons";
import { carried, Lanes, placeAt, zoom, zoomBy } from "../parts/lanes";
import {
  type Clip,
  clipsOf,
  CUE_KINDS,
  cueKind,
  cuesOf,
  hexOf,
  lightOf,
  type Section,
  type ShowCue,
  type ShowFinding,
} from "../show-document";
import { now } from "../state/clock";
import { library } from "../state/library";
import { robot } from "../state/robot";
import { showEditor } from "../state/show-editor";
import { stage } from "../state/stage";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import type { StageRobot, Take } from "../types";
import { message, remedy } from "../wording";

const T = TEXTS.show;
const MAX_FINDINGS = 6;
const HOWS = ["show", "rehearsal", "lights"] as const;
const TRIGGERS = ["go", "after", "at", "osc", "heard"] as const;

const small = matchMedia("(max-width: 640px), (max-height: 500px) and (max-width: 950px)");
const phone = signal(small.matches);
small.addEventListener("change", (event) => (phone.value = event.matches));
/** Whether the lanes are shown: there is a show, and room to edit it. */
export const hasLanes = computed(() => showEditor.draft.value !== null && !phone.value);

// ---- GO and the robots --------------------------------------------------------------------------

function RobotRow({ robot }: { robot: StageRobot }) {
  const role = Object.entries(showEditor.cast.value).find(([, name]) => name === robot.name)?.[0];
  const state = !robot.reachable ? "lost" : robot.ready ? "connected" : "connecting";
  const words = !robot.reachable
    ? T.lamp.lost
    : robot.moving
      ? T.lamp.moves
      : robot.ready
        ? T.lamp.ready
        : T.lamp.waits;
  return (
    <li class="robot-row" data-testid="stage-robot" data-name={robot.name} data-state={state}>
      <span class={`dot ${state}`} aria-hidden="true" />
      <span class="robot-name">
        {robot.name}
        {role && <span class="muted"> · {role}</span>}
      </span>
      <span class="muted">{words}</span>
      <span class="numbers muted">{robot.clock_bound_ms === null ? "" : `±${robot.clock_bound_ms.toFixed(1)} ms`}</span>
      {(robot.fault || robot.faults.length > 0) && (
        <span class="bad-words robot-fault">{[robot.fault, ...robot.faults].filter(Boolean).join("; ")}</span>
      )}
    </li>
  );
}

/** What the show does, or waits for. */
function RunWords() {
  const run = stage.current.value?.run;
  const [, tick] = useState(0);
  const counts = run?.elapsed_s != null && run.elapsed_s < 0;
  useEffect(() => {
    if (!counts) return undefined;
    const timer = setInterval(() => tick((count) => count + 1), 200);
    return () => clearInterval(timer);
  }, [counts]);
  if (!run) return null;
  const left = run.elapsed_s === null ? null : -(run.elapsed_s + now() - stage.receivedAt.value);
  const words =
    run.state === "checking"
      ? T.run.checking
      : run.state === "waiting"
        ? T.run.waiting(run.section, T.waits[run.waits ?? "go"](run.detail))
        : left !== null && left > 0
          ? T.run.soon(run.section, Math.ceil(left))
          : left !== null
            ? T.run.playing(run.section)
            : T.run.starting(run.section);
  return (
    <p class="run-words" role="status" data-testid="run" data-state={run.state} data-section={run.section}>
      {words}
    </p>
  );
}

function Last() {
  const current = stage.current.value;
  const last = current?.last;
  if (!last || current?.run) return null;
  const complete = !last.ended && last.sections.every((each) => each.incomplete.length === 0);
  return (
    <div class="last" data-testid="last-show">
      {last.unconfirmed.length > 0 && <p class="bad-words">{T.unconfirmed(last.unconfirmed.join(", "))}</p>}
      <p class={complete ? "good-words" : "muted"}>
        {last.ended
          ? T.endedEarly(sentence(last.ended))
          : complete
            ? T.endedWell(last.show)
            : T.endedIncomplete(last.show)}
        {last.lost.length > 0 && ` ${T.lost(last.lost.join(", "))}`}
      </p>
      <ul>
        {last.sections.map((each, index) => (
          <li key={index} class="muted small numbers">
            {T.sectionReport(each.name, each.skew_ms.max)}
            {each.late.length > 0 && ` ${T.late(each.late.join(", "))}`}
            {each.lost.length > 0 && ` ${T.lost(each.lost.join(", "))}`}
            {each.incomplete
              .filter((name) => !each.lost.includes(name))
              .map((name) => ` ${T.incomplete(name, each.faults[name] ?? "")}`)}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Why GO cannot be pressed; empty where it can. */
function against(): string {
  const current = stage.current.value;
  if (!current?.there) return T.noStage;
  if (!robot.mayCommand.value) return T.watching;
  if (current.stop) return T.stopHolds;
  if (current.run) return current.run.state === "waiting" ? "" : T.run.busy;
  if (!showEditor.file.value.name || showEditor.unsaved.value) return T.saveFirst;
  if (showEditor.checked.value && !showEditor.checked.value.ok) return T.cannot;
  const uncast = showEditor.roles.value.filter((role) => !showEditor.cast.value[role]);
  return uncast.length ? T.uncast(uncast.join(", ")) : "";
}

function GoCard() {
  const current = stage.current.value;
  const why = against();
  const run = current?.run;
  return (
    <section class="card go-card" aria-labelledby="go-title" data-testid="go-card">
      <div class="row spread wrap">
        <h2 id="go-title">{T.stage}</h2>
        {current?.there && !run && (
          <label class="inline">
            <span class="hidden">{T.how}</span>
            <select
              value={showEditor.how.value}
              aria-label={T.how}
              data-testid="how"
              onChange={(event) => (showEditor.how.value = event.currentTarget.value as (typeof HOWS)[number])}
            >
              {HOWS.map((each) => (
                <option key={each} value={each}>
                  {T.hows[each]}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      {current?.there ? (
        <>
          <ul class="robots" aria-label={T.robots}>
            {current.robots.map((robot) => (
              <RobotRow key={robot.name} robot={robot} />
            ))}
          </ul>
          {current.robots.length === 0 && <p class="muted">{T.noRobots}</p>}
          {current.stop && (
            <div class="stop-holds" role="alert" data-testid="stop-holds">
              <p>
                <strong>{T.stopBy(current.stop.by)}</strong>{" "}
                {current.stop.unconfirmed.length
                  ? T.unconfirmed(current.stop.unconfirmed.join(", "))
                  : T.confirmed(current.stop.confirmed_ms)}
              </p>
              <button
                type="button"
                class="button"
                disabled={!robot.mayCommand.value}
                onClick={showEditor.release}
                data-testid="release"
              >
                {T.release}
              </button>
            </div>
          )}
          <RunWords />
          <button
            type="button"
            class="button primary go"
            disabled={why !== "" || showEditor.working.value}
            onClick={() => void showEditor.go()}
            data-testid="go"
          >
            {run?.state === "waiting" ? T.goNext(run.section) : T.go}
          </button>
          {why && !current.stop && why !== T.run.busy && (
            <p class="muted small" data-testid="go-why">
              {why}
            </p>
          )}
          <Last />
        </>
      ) : (
        <div data-testid="no-stage">
          <p>{T.noStage}</p>
          <p class="muted small">{T.howStage}</p>
          <p>
            <code class="mono">rote web --stage-robots 2</code>
          </p>
          <p>
            <code class="mono">rote web --stage DIR</code>
          </p>
        </div>
      )}
    </section>
  );
}

// ---- the file -----------------------------------------------------------------------------------

function FileCard() {
  const told = showEditor.shelf.value;
  const name = showEditor.file.value.name;
  const casts = Object.keys(told?.casts ?? {});
  const choose = (select: HTMLSelectElement): void => {
    const wanted = select.value;
    select.value = name ?? "";
    showEditor.leaving(() => void showEditor.open(wanted));
  };
  return (
    <section class="card" aria-labelledby="file-title" data-testid="show-file" data-name={name ?? ""}>
      <div class="row spread wrap">
        <h2 id="file-title">{T.file}</h2>
        {showEditor.unsaved.value && !phone.value && (
          <span class="chip warn" data-testid="show-unsaved">
            {TEXTS.edit.draft.unsaved}
          </span>
        )}
      </div>
      {told && told.shows.length === 0 && !showEditor.draft.value && <p class="muted">{T.none}</p>}
      <div class="row wrap">
        {told && told.shows.length > 0 && (
          <select
            value={name ?? ""}
            aria-label={T.choose}
            data-testid="choose-show"
            onChange={(event) => choose(event.currentTarget)}
          >
            {!name && <option value="">{showEditor.draft.value ? T.unnamed : T.choose}</option>}
            {told.shows.map((each) => (
              <option key={each.name} value={each.name} disabled={each.problem !== ""}>
                {each.problem ? T.broken(each.name) : each.name}
              </option>
            ))}
          </select>
        )}
        {!phone.value && (
          <>
            <button
              type="button"
              class="button"
              onClick={() => showEditor.leaving(showEditor.makeNew)}
              data-testid="new-show"
            >
              {T.new}
            </button>
            {showEditor.draft.value && (
              <button
                type="button"
                class="button primary"
                disabled={!robot.mayCommand.value || (!showEditor.unsaved.value && name !== null)}
                onClick={() => showEditor.askToSave()}
                data-testid="save-show"
              >
                {T.save}
              </button>
            )}
          </>
        )}
      </div>
      {showEditor.draft.value && !phone.value && (
        <details class="more">
          <summary>{T.more}</summary>
          <div class="stack">
            <label class="field">
              <span>{T.titleLabel}</span>
              <input
                type="text"
                maxLength={200}
                value={showEditor.draft.value.title ?? ""}
                onChange={(event) => {
                  const title = event.currentTarget.value;
                  showEditor.change((show) => ({ ...show, title }));
                }}
              />
            </label>
            <div class="row wrap">
              <button
                type="button"
                class="button"
                disabled={!robot.mayCommand.value}
                onClick={() => showEditor.askToSave(true)}
              >
                {T.saveAs}
              </button>
              <button
                type="button"
                class="button"
                disabled={!name || !robot.mayCommand.value}
                onClick={showEditor.askToRename}
              >
                {T.rename}
              </button>
              <button
                type="button"
                class="button"
                disabled={!name || !robot.mayCommand.value}
                onClick={showEditor.askToDelete}
                data-testid="delete-show"
              >
                {T.delete}
              </button>
            </div>
            {showEditor.file.value.path && <p class="mono">{showEditor.file.value.path}</p>}
          </div>
        </details>
      )}
      {showEditor.draft.value && casts.length > 0 && (
        <label class="inline">
          <span>{T.castOf}</span>
          <select
            value=""
            data-testid="choose-cast"
            onChange={(event) => {
              const chosen = told?.casts[event.currentTarget.value];
              event.currentTarget.value = "";
              if (chosen) showEditor.takeCast(chosen);
            }}
          >
            <option value="">{T.castChoose}</option>
            {casts.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
      )}
    </section>
  );
}

// ---- roles --------------------------------------------------------------------------------------

function RolesCard() {
  const robots = stage.current.value?.robots.map(({ name }) => name) ?? [];
  return (
    <section class="card" aria-labelledby="roles-title" data-testid="roles">
      <div class="row spread wrap">
        <h2 id="roles-title">{T.roles}</h2>
        <button type="button" class="button" onClick={showEditor.addRole} data-testid="add-role">
          {T.addRole}
        </button>
      </div>
      <ul class="list">
        {showEditor.roles.value.map((role) => {
          const own = showEditor.cast.value[role] ?? "";
          const names = own && !robots.includes(own) ? [own, ...robots] : robots;
          return (
            <li key={role} class="item">
              <div class="item-main">
                <span class="item-words item-name">{role}</span>
                {names.length > 0 && (
                  <select
                    value={own}
                    aria-label={T.playedBy(role)}
                    data-testid="cast"
                    data-name={role}
                    onChange={(event) => showEditor.castRole(role, event.currentTarget.value)}
                  >
                    <option value="">{T.nobody}</option>
                    {names.map((name) => (
                      <option key={name} value={name}>
                        {name}
                      </option>
                    ))}
                  </select>
                )}
                <button
                  type="button"
                  class="button quiet"
                  aria-label={T.renameRole(role)}
                  onClick={() => showEditor.askToRenameRole(role)}
                >
                  {T.rename}
                </button>
                <button
                  type="button"
                  class="icon-button small"
                  aria-label={T.removeRole(role)}
                  title={T.removeRole(role)}
                  disabled={showEditor.roles.value.length < 2}
                  onClick={() => showEditor.removeRole(role)}
                >
                  <Icon name="close" />
                </button>
              </div>
            </li>
          );
        })}
      </ul>
    </section>
  );
}

// ---- the library --------------------------------------------------------------------------------

/** Carry a take to a lane by pointer or finger. */
function carry(take: Take) {
  return (event: PointerEvent): void => {
    if (event.button !== 0 || (event.target as Element).closest("button")) return;
    const ends = new AbortController();
    const { signal: over } = ends;
    const first = { x: event.clientX, y: event.clientY };
    addEventListener(
      "pointermove",
      (next) => {
        if (!carried.peek() && Math.hypot(next.clientX - first.x, next.clientY - first.y) < 6) return;
        next.preventDefault();
        carried.value = { take: take.name, x: next.clientX, y: next.clientY };
      },
      { signal: over },
    );
    const drop = (next: PointerEvent): void => {
      ends.abort();
      const place = carried.peek() && next.type === "pointerup" ? placeAt(next.clientX, next.clientY) : null;
      carried.value = null;
      if (place) showEditor.addClip(take.name, place.role, place.at_s);
    };
    addEventListener("pointerup", drop, { signal: over });
    addEventListener("pointercancel", drop, { signal: over });
  };
}

function Carried() {
  const what = carried.value;
  return (
    <div
      class="carried"
      hidden={!what}
      aria-hidden="true"
      ref={(element) => {
        element?.style.setProperty("--x", `${what?.x ?? 0}px`);
        element?.style.setProperty("--y", `${what?.y ?? 0}px`);
      }}
    >
      {what?.take}
    </div>
  );
}

function LibraryCard() {
  const [search, setSearch] = useState("");
  const [action, setAction] = useState("");
  const usable = library.takes.value.filter(
    ({ problem: wrong, name }) => !wrong && name.toLowerCase().includes(search.trim().toLowerCase()),
  );
  const shown = usable.slice(0, 60);
  return (
    <section class="card" aria-labelledby="show-library-title" data-testid="show-library">
      <h2 id="show-library-title">{TEXTS.screens.library}</h2>
      <p class="muted small">{library.takes.value.length ? T.libraryWords(showEditor.lane.value) : T.noTakes}</p>
      {library.takes.value.length > 8 && (
        <label class="field">
          <span class="hidden">{T.search}</span>
          <input
            type="search"
            placeholder={T.search}
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
        </label>
      )}
      <ul class="list short">
        {shown.map((take) => (
          <li key={take.name} class="item carry" onPointerDown={carry(take)} data-testid="carry" data-name={take.name}>
            <div class="item-main">
              <img class="thumb" src={picture(take.thumbnail)} alt="" width={88} height={28} draggable={false} />
              <span class="item-words">
                <span class="item-name">{take.name}</span> <span class="muted">{seconds(take.duration_s)}</span>
              </span>
              <button
                type="button"
                class="button"
                aria-label={T.addTo(take.name, showEditor.lane.value)}
                onClick={() => showEditor.addClip(take.name, showEditor.lane.peek())}
                data-testid="add-take"
              >
                {T.add}
              </button>
            </div>
          </li>
        ))}
      </ul>
      <details class="more">
        <summary>{T.actions}</summary>
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            if (action.trim()) showEditor.addAction(action.trim(), showEditor.lane.peek());
            setAction("");
          }}
        >
          <label class="field grow">
            <span>{T.actionName}</span>
            <input type="text" value={action} onInput={(event) => setAction(event.currentTarget.value)} />
          </label>
          <button type="submit" class="button">
            {T.add}
          </button>
        </form>
      </details>
    </section>
  );
}

// ---- what is chosen -----------------------------------------------------------------------------

function NumberField({
  label,
  value,
  low = 0,
  high,
  step = 0.05,
  empty = "",
  onSet,
}: {
  label: string;
  value: number | null | undefined;
  low?: number;
  high?: number;
  step?: number;
  empty?: string;
  onSet: (value: number | null) => void;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type="number"
        min={low}
        max={high}
        step={step}
        placeholder={empty}
        value={value ?? ""}
        onChange={(event) => {
          const text = event.currentTarget.value;
          const read = Number(text);
          if (text === "") onSet(null);
          else if (Number.isFinite(read)) onSet(Math.min(high ?? Infinity, Math.max(low, read)));
        }}
      />
    </label>
  );
}

function RoleField({ value, onSet, none }: { value: string; onSet: (role: string) => void; none?: string }) {
  return (
    <label class="field">
      <span>{T.role}</span>
      <select value={value} onChange={(event) => onSet(event.currentTarget.value)}>
        {none && <option value="">{none}</option>}
        {showEditor.roles.value.map((role) => (
          <option key={role} value={role}>
            {role}
          </option>
        ))}
      </select>
    </label>
  );
}

function ClipFields({ clip, index }: { clip: Clip; index: number }) {
  const set = (by: Partial<Clip>): void => showEditor.changeClip(index, by);
  return (
    <div class="fields">
      <RoleField value={clip.role} onSet={(role) => set({ role })} />
      <NumberField label={T.at} value={clip.at_s ?? 0} high={3600} onSet={(at_s) => set({ at_s: at_s ?? 0 })} />
      <NumberField
        label={T.speed}
        value={clip.speed ?? 1}
        low={0.1}
        high={4}
        onSet={(speed) => set({ speed: speed === 1 ? null : speed })}
      />
      {!clip.action && (
        <>
          <NumberField
            label={T.from}
            value={clip.from_s}
            empty="0"
            onSet={(from_s) => set({ from_s: from_s || null })}
          />
          <NumberField label={T.to} value={clip.to_s} empty={T.toEnd} onSet={(to_s) => set({ to_s })} />
          <NumberField
            label={T.loop}
            value={clip.loop ?? 1}
            low={1}
            high={1000}
            step={1}
            onSet={(loop) => set({ loop: loop && loop > 1 ? Math.round(loop) : null })}
          />
          <NumberField label={T.blend} value={clip.blend_s ?? 0.5} high={60} onSet={(blend_s) => set({ blend_s })} />
          <label class="inline check">
            <input
              type="checkbox"
              checked={clip.mirror ?? false}
              onChange={(event) => set({ mirror: event.currentTarget.checked || null })}
            />
            <span>{T.mirror}</span>
          </label>
        </>
      )}
    </div>
  );
}

function CueFields({ cue, index }: { cue: ShowCue; index: number }) {
  const set = (by: Partial<ShowCue>): void => showEditor.changeCue(index, by);
  const kind = cueKind(cue);
  const text = (field: "say" | "osc" | "to", label: string) => (
    <label class="field wide">
      <span>{label}</span>
      <input
        type="text"
        maxLength={500}
        value={cue[field] ?? ""}
        onChange={(event) => {
          const words = event.currentTarget.value.trim();
          if (words) set({ [field]: words });
        }}
      />
    </label>
  );
  return (
    <div class="fields">
      <NumberField label={T.at} value={cue.at_s ?? 0} high={3600} onSet={(at_s) => set({ at_s: at_s ?? 0 })} />
      {kind !== "osc" && (
        <RoleField
          value={cue.role ?? ""}
          {...(kind === "sound" ? { none: T.laptop } : {})}
          onSet={(role) => set({ role: role || null })}
        />
      )}
      {kind === "sound" && (
        <label class="field wide">
          <span>{T.cueKinds.sound}</span>
          <select value={cue.sound ?? ""} onChange={(event) => set({ sound: event.currentTarget.value })}>
            {[...new Set([cue.sound ?? "", ...(showEditor.shelf.value?.sounds ?? []).map(({ name }) => name)])].map(
              (name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ),
            )}
          </select>
        </label>
      )}
      {kind === "say" && (
        <>
          {text("say", T.words)}
          <label class="field">
            <span>{T.language}</span>
            <select
              value={cue.language ?? "en"}
              onChange={(event) => set({ language: event.currentTarget.value as "en" | "zh" })}
            >
              <option value="en">{T.languages.en}</option>
              <option value="zh">{T.languages.zh}</option>
            </select>
          </label>
        </>
      )}
      {kind === "light" && (
        <label class="field">
          <span>{T.colour}</span>
          <input
            type="color"
            value={hexOf(cue.light ?? [0, 0, 0])}
            onChange={(event) => set({ light: lightOf(event.currentTarget.value) })}
          />
        </label>
      )}
      {kind === "osc" && (
        <>
          {text("osc", T.address)}
          {text("to", T.receiver)}
          <label class="field wide">
            <span>{T.args}</span>
            <input
              type="text"
              value={(cue.args ?? []).join(" ")}
              onChange={(event) => {
                const parts = event.currentTarget.value.split(/\s+/).filter(Boolean).slice(0, 16);
                set({
                  args: parts.length
                    ? parts.map((each) => (Number.isFinite(Number(each)) ? Number(each) : each))
                    : null,
                });
              }}
            />
          </label>
        </>
      )}
    </div>
  );
}

function PickedCard() {
  const what = showEditor.picked.value;
  const here = showEditor.section.value;
  if (!what || !here) return null;
  const clip = what.kind === "clip" ? clipsOf(here)[what.index] : undefined;
  const cue = what.kind === "cue" ? cuesOf(here)[what.index] : undefined;
  if (!clip && !cue) return null;
  const title = clip ? (clip.take ?? clip.action ?? "") : T.cueKinds[cueKind(cue as ShowCue)];
  return (
    <section class="card" aria-labelledby="picked-title" data-testid="picked">
      <div class="row spread wrap">
        <h2 id="picked-title">{title}</h2>
        <div class="row">
          {clip?.take && (
            <a class="button quiet" href={`#/edit/${encodeURIComponent(clip.take)}`}>
              {T.editTake}
            </a>
          )}
          <button type="button" class="button" onClick={showEditor.removePicked} data-testid="remove-picked">
            {T.remove}
          </button>
        </div>
      </div>
      {clip ? <ClipFields clip={clip} index={what.index} /> : <CueFields cue={cue as ShowCue} index={what.index} />}
    </section>
  );
}

// ---- the section --------------------------------------------------------------------------------

const NEEDS = { at: "time", osc: "address", heard: "word" } as const;
const FIRST = { at: "20:00:00", osc: "/scene/2", heard: "hello" } as const;

function SectionCard() {
  const here = showEditor.section.value;
  if (!here) return null;
  const trigger = here.start ?? { on: "go" as const };
  const need = trigger.on in NEEDS ? NEEDS[trigger.on as keyof typeof NEEDS] : null;
  const index = showEditor.sections.value.indexOf(here);
  const set = (by: Partial<Section>): void => showEditor.changeSection((each) => ({ ...each, ...by }));
  const begin = (on: (typeof TRIGGERS)[number]): void => {
    if (on === "after") set({ start: { on, seconds: 1 } });
    else if (on === "go") set({ start: { on } });
    else set({ start: { on, [NEEDS[on]]: FIRST[on] } });
  };
  return (
    <section class="card" aria-labelledby="section-title" data-testid="section">
      <div class="row spread wrap">
        <h2 id="section-title">{T.section}</h2>
        <div class="row">
          <button
            type="button"
            class="icon-button"
            aria-label={T.earlier}
            title={T.earlier}
            disabled={index <= 0}
            onClick={() => showEditor.moveSection(-1)}
          >
            <Icon name="up" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label={T.later}
            title={T.later}
            disabled={index >= showEditor.sections.value.length - 1}
            onClick={() => showEditor.moveSection(1)}
          >
            <Icon name="down" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label={T.removeSection}
            title={T.removeSection}
            disabled={showEditor.sections.value.length < 2}
            onClick={showEditor.removeSection}
          >
            <Icon name="trash" />
          </button>
        </div>
      </div>
      <div class="fields">
        <label class="field wide">
          <span>{T.name}</span>
          <input
            type="text"
            maxLength={100}
            value={here.name}
            onChange={(event) => {
              const name = event.currentTarget.value.trim();
              const taken = showEditor.sections.peek().some((each) => each !== here && each.name === name);
              if (name && !taken) set({ name });
              else event.currentTarget.value = here.name;
            }}
          />
        </label>
        <label class="field">
          <span>{T.begins}</span>
          <select
            value={trigger.on}
            data-testid="trigger"
            onChange={(event) => begin(event.currentTarget.value as (typeof TRIGGERS)[number])}
          >
            {TRIGGERS.map((on) => (
              <option key={on} value={on}>
                {T.triggers[on]}
              </option>
            ))}
          </select>
        </label>
        {trigger.on === "after" && (
          <NumberField
            label={T.seconds}
            value={trigger.seconds ?? 0}
            high={3600}
            step={0.5}
            onSet={(value) => set({ start: { on: "after", seconds: value ?? 0 } })}
          />
        )}
        {need && (
          <label class="field">
            <span>{T.needs[need]}</span>
            <input
              type="text"
              value={trigger[need] ?? ""}
              onChange={(event) => {
                const words = event.currentTarget.value.trim();
                if (words) set({ start: { on: trigger.on, [need]: words } });
              }}
            />
          </label>
        )}
        <NumberField
          label={T.loop}
          value={here.loop ?? 1}
          low={1}
          high={1000}
          step={1}
          onSet={(value) => set({ loop: Math.round(value ?? 1) })}
        />
        <label class="field">
          <span>{T.onLoss}</span>
          <select
            value={here.on_loss ?? "stop-all"}
            onChange={(event) => set({ on_loss: event.currentTarget.value as "stop-all" | "go-on" })}
          >
            <option value="stop-all">{T.losses.stop}</option>
            <option value="go-on">{T.losses.goOn}</option>
          </select>
        </label>
      </div>
    </section>
  );
}

// ---- the check ----------------------------------------------------------------------------------

function FindingRow({ finding }: { finding: ShowFinding }) {
  const show = (): void => {
    const index = showEditor.sections.peek().findIndex(({ name }) => name === finding.section);
    if (index >= 0) showEditor.sectionIndex.value = index;
    showEditor.seek(finding.time_s ?? 0);
  };
  const where = [finding.section, finding.role].filter(Boolean).join(", ");
  return (
    <li class={`finding ${finding.severity}`} data-testid="show-finding">
      <Icon name={finding.severity === "note" ? "info" : "warn"} />
      <div>
        <p>
          {where && <strong>{where}: </strong>}
          {sentence(message(finding))}{" "}
          {finding.section && finding.time_s !== null && (
            <button type="button" class="link" onClick={show}>
              {TEXTS.edit.at(hundredths(finding.time_s))}
            </button>
          )}
        </p>
        {finding.remedy && <p class="remedy">{sentence(remedy(finding))}</p>}
      </div>
    </li>
  );
}

function CheckCard() {
  const told = showEditor.checked.value;
  const found = told?.findings.filter(({ severity }) => severity !== "note") ?? [];
  const notes = told?.findings.filter(({ severity }) => severity === "note") ?? [];
  const state = showEditor.checking.value ? "checking" : showEditor.problem.value || !told?.ok ? "bad" : "ok";
  return (
    <section class="card" aria-labelledby="show-check-title" data-testid="show-check" data-state={state}>
      <div class="row spread">
        <h2 id="show-check-title">{TEXTS.edit.findings}</h2>
        {told && !told.ok && <span class="chip bad">{T.cannot}</span>}
      </div>
      {showEditor.checking.value && (
        <p class="muted" role="status">
          {TEXTS.edit.checking}
        </p>
      )}
      {showEditor.problem.value && <p class="bad-words">{showEditor.problem.value}</p>}
      {told && !showEditor.checking.value && found.length === 0 && (
        <p class="fine">
          <Icon name="check" />
          <span>{T.fine}</span>
        </p>
      )}
      <ul class="findings">
        {found.slice(0, MAX_FINDINGS).map((each, index) => (
          <FindingRow key={index} finding={each} />
        ))}
      </ul>
      {found.length + notes.length > Math.min(found.length, MAX_FINDINGS) && (
        <details class="more">
          <summary>
            {TEXTS.edit.moreFindings(found.length + notes.length - Math.min(found.length, MAX_FINDINGS))}
          </summary>
          <ul class="findings">
            {[...found.slice(MAX_FINDINGS), ...notes].map((each, index) => (
              <FindingRow key={index} finding={each} />
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

// ---- sounds -------------------------------------------------------------------------------------

function CuesCard() {
  const upload = (input: HTMLInputElement): void => {
    const files = [...(input.files ?? [])];
    input.value = "";
    void showEditor.addSounds(files);
  };
  return (
    <section class="card" aria-labelledby="show-cues-title">
      <h2 id="show-cues-title">{T.cuesTitle}</h2>
      <p class="muted small">{T.cuesWords(hundredths(showEditor.playhead.value))}</p>
      <div class="row wrap">
        {CUE_KINDS.map((kind) => (
          <button
            key={kind}
            type="button"
            class="button"
            onClick={() => showEditor.addCue(kind)}
            data-testid={`add-cue-${kind}`}
          >
            {T.cueKinds[kind]}
          </button>
        ))}
      </div>
      <label class="button as-label">
        <span>{T.addSound}</span>
        <input
          class="hidden"
          type="file"
          accept=".wav,audio/wav"
          multiple
          disabled={!robot.mayCommand.value}
          onChange={(event) => upload(event.currentTarget)}
          data-testid="add-sound"
        />
      </label>
    </section>
  );
}

// ---- the screen ---------------------------------------------------------------------------------

export function ShowScreen() {
  useEffect(() => {
    void library.load();
    void showEditor.start();
    return () => {
      showEditor.stopPreview();
      carried.value = null;
    };
  }, []);
  if (phone.value)
    return (
      <>
        <GoCard />
        <FileCard />
        <p class="muted small">{T.phone}</p>
      </>
    );
  return (
    <>
      <Carried />
      <FileCard />
      <GoCard />
      {showEditor.draft.value && (
        <>
          <PickedCard />
          <LibraryCard />
          <CheckCard />
          <CuesCard />
          <SectionCard />
          <RolesCard />
        </>
      )}
    </>
  );
}

/** Ctrl+Z and its friends, while no text is being typed. */
function useKeys(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (ui.question.peek() !== null || focusOf(document.activeElement, false).typing) return;
      if (!(event.ctrlKey || event.metaKey)) return;
      const key = event.key.toLowerCase();
      if (key === "z") (event.shiftKey ? showEditor.redo : showEditor.undo)();
      else if (key === "s") showEditor.askToSave();
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

export function ShowDock({ inert }: { inert: boolean }) {
  useKeys();
  return (
    <section
      class="dock show-dock"
      inert={inert}
      aria-label={T.lanes}
      data-testid="show-dock"
      data-checked={!showEditor.checking.value}
    >
      <div class="dock-head">
        <div class="section-tabs" role="group" aria-label={T.sections}>
          {showEditor.sections.value.map((each, index) => (
            <button
              key={index}
              type="button"
              class="toggle"
              aria-pressed={each === showEditor.section.value}
              data-testid="section-tab"
              data-name={each.name}
              onClick={() => {
                showEditor.sectionIndex.value = index;
                showEditor.picked.value = null;
                showEditor.seek(0);
              }}
            >
              {each.name}
            </button>
          ))}
          <button
            type="button"
            class="button quiet"
            aria-label={T.addSection}
            title={T.addSection}
            onClick={showEditor.addSection}
            data-testid="add-section"
          >
            +
          </button>
        </div>
        <div class="row">
          <span class="muted numbers" data-testid="show-moment">
            {hundredths(showEditor.playhead.value)}
          </span>
          <button
            type="button"
            class="icon-button"
            aria-label={TEXTS.edit.zoom.in}
            title={TEXTS.edit.zoom.in}
            onClick={() => zoomBy(1.6)}
          >
            <Icon name="zoomIn" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label={TEXTS.edit.zoom.out}
            title={TEXTS.edit.zoom.out}
            disabled={zoom.value <= 1}
            onClick={() => zoomBy(1 / 1.6)}
          >
            <Icon name="zoomOut" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label={TEXTS.edit.undo}
            title={TEXTS.edit.undo}
            disabled={!showEditor.canUndo.value}
            onClick={showEditor.undo}
          >
            <Icon name="undo" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label={TEXTS.edit.redo}
            title={TEXTS.edit.redo}
            disabled={!showEditor.canRedo.value}
            onClick={showEditor.redo}
          >
            <Icon name="redo" />
          </button>
          <button
            type="button"
            class="button"
            aria-pressed={showEditor.previewing.value}
            disabled={stage.current.value?.run?.state === "playing" || showEditor.span.value === 0}
            onClick={() => (showEditor.previewing.value ? showEditor.stopPreview() : showEditor.preview())}
            data-testid="show-preview"
          >
            <Icon name={showEditor.previewing.value ? "pause" : "play"} />
            {showEditor.previewing.value ? TEXTS.edit.stopPreview : TEXTS.edit.preview}
          </button>
        </div>
      </div>
      <Lanes />
    </section>
  );
}
