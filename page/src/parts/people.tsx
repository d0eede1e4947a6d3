/** Who is here, who commands, and how command passes from one to another. */

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { now } from "../state/clock";
import { connection } from "../state/connection";
import { robot } from "../state/robot";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import type { Links, Person } from "../types";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./people.module.css";

const css = bindStyles(styles);
const TICK_MS = 200;

function called(person: { name: string | null; number: number | null }): string {
  return person.name ?? TEXTS.people.browser(person.number ?? 0);
}

/** Whole seconds until command passes over, counted on between the server's words. */
function useSecondsLeft(): number {
  const next = robot.status.value?.commander.next;
  const [, setTick] = useState(0);
  useEffect(() => {
    if (!next) return undefined;
    const timer = setInterval(() => setTick((tick) => tick + 1), TICK_MS);
    return () => clearInterval(timer);
  }, [next != null]);
  return next ? Math.max(0, Math.ceil(next.in_s - (now() - robot.statusAt.peek()))) : 0;
}

function takeOver(): void {
  ui.question.value = {
    title: TEXTS.commander.question,
    message: TEXTS.commander.message,
    confirm: TEXTS.commander.take,
    then: () => ui.attempt(() => api.takeCommand()),
  };
}

/** The countdown before the command passes on; all pages show it. */
function Countdown() {
  const left = useSecondsLeft();
  const commander = robot.status.value?.commander;
  const next = commander?.next;
  if (!commander || !next) return null;
  const mine = next.number === connection.me.value?.number;
  const teacher = connection.me.value?.role === "teacher";
  const toTeacher = connection.people.value.find((each) => each.number === next.number)?.role === "teacher";
  const mayKeep = mine || teacher || (commander.you && !toTeacher);
  return (
    <>
      <p data-testid="handover" data-left={left}>
        <strong class={css("count")} aria-hidden="true">
          {left}
        </strong>
        <span role="status">{mine ? TEXTS.commander.soonYou : TEXTS.commander.soon(called(next))}</span>
      </p>
      {mayKeep && (
        <button type="button" class="button" onClick={() => ui.attempt(() => api.keepCommand())}>
          {mine ? TEXTS.commander.withdraw : TEXTS.commander.keep}
        </button>
      )}
    </>
  );
}

/** Who commands, where it is not this browser; and the countdown. Nothing where all is as usual. */
export function CommandBanner() {
  const commander = robot.status.value?.commander;
  if (!commander || (robot.mayCommand.value && !commander.next)) return null;
  const watcher = connection.me.value?.role === "watch";
  const locked = commander.locked && connection.me.value?.role !== "teacher";
  const who = commander.number === null ? TEXTS.commander.nobody : TEXTS.commander.other(called(commander));
  const why = watcher ? TEXTS.commander.watchOnly : locked ? TEXTS.commander.locked : TEXTS.commander.mayStop;
  return (
    <div class="banner" data-testid={commander.you ? "commanding" : "watching"}>
      {commander.next ? (
        <Countdown />
      ) : (
        <>
          <Icon name="info" />
          <p role="status">
            {who} {why}
          </p>
          {!watcher && !locked && (
            <button type="button" class="button" onClick={takeOver}>
              {TEXTS.commander.take}
            </button>
          )}
        </>
      )}
    </div>
  );
}

function One({ person }: { person: Person }) {
  const commander = robot.status.value?.commander;
  const commands = commander?.number === person.number;
  const mine = connection.me.value?.number === person.number;
  const mayGive = (commander?.you || connection.me.value?.role === "teacher") && !commands && person.role !== "watch";
  return (
    <li data-testid="person" data-number={person.number}>
      <span class={css(commands ? "person commands" : "person")}>
        {called(person)}
        {mine && <small> {TEXTS.people.you}</small>}
        <small class="muted">
          {commands ? TEXTS.people.commands : person.role === "command" ? "" : TEXTS.people.roles[person.role]}
        </small>
      </span>
      {mayGive && !mine && (
        <button type="button" class="button small" onClick={() => ui.attempt(() => api.giveCommand(person.number))}>
          {TEXTS.people.give}
        </button>
      )}
    </li>
  );
}

function Name() {
  const own = connection.people.value.find((each) => each.number === connection.me.value?.number)?.name ?? "";
  return (
    <label class="field">
      <span>{TEXTS.people.name}</span>
      <input
        type="text"
        data-testid="my-name"
        maxLength={40}
        autoComplete="nickname"
        placeholder={TEXTS.people.browser(connection.me.value?.number ?? 0)}
        defaultValue={own}
        onChange={(event) => void connection.setName(event.currentTarget.value)}
      />
    </label>
  );
}

function Lock() {
  const locked = robot.status.value?.commander.locked ?? false;
  return (
    <div>
      <button
        type="button"
        class="toggle"
        data-testid="lock"
        aria-pressed={locked}
        onClick={() => ui.attempt(() => api.lockCommand(!locked))}
      >
        {TEXTS.people.lock}
      </button>
      <p class="muted small">{TEXTS.people.lockNote}</p>
    </div>
  );
}

function Invite({ links }: { links: Links }) {
  const rows = [
    [TEXTS.people.commandLink, links.command],
    [TEXTS.people.watchLink, links.watch],
  ] as const;
  return (
    <>
      {rows.map(
        ([label, end]) =>
          end && (
            <label key={label} class="field">
              <span>{label}</span>
              <input
                type="text"
                readOnly
                value={`${location.origin}/${end}`}
                onFocus={(event) => event.currentTarget.select()}
              />
            </label>
          ),
      )}
    </>
  );
}

export function People() {
  const [open, setOpen] = useState(false);
  const [links, setLinks] = useState<Links | null>(null);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return undefined;
    // A press anywhere else closes it: it may lie over the banner.
    const away = (event: PointerEvent): void => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    addEventListener("pointerdown", away);
    return () => removeEventListener("pointerdown", away);
  }, [open]);
  const count = connection.people.value.length;
  const label = TEXTS.people.label(count);
  const toggle = (): void => {
    setOpen(!open);
    if (!open) void ui.attempt(async () => setLinks(await api.links()));
  };
  return (
    <div class="settings" ref={box}>
      <button
        type="button"
        class={css("icon-button people-button")}
        data-testid="people"
        aria-label={label}
        title={label}
        aria-expanded={open}
        onClick={toggle}
      >
        <Icon name="people" />
        <span aria-hidden="true">{count}</span>
      </button>
      {open && (
        <div class={css("popover people")}>
          <h2>{TEXTS.people.title}</h2>
          <ul>
            {connection.people.value.map((person) => (
              <One key={person.number} person={person} />
            ))}
          </ul>
          <Name />
          {connection.me.value?.role === "teacher" && <Lock />}
          {links && <Invite links={links} />}
        </div>
      )}
    </div>
  );
}
