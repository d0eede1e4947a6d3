/** Screen 3: what can be played: on the robot, from the factory, and on this computer. */

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { fineDegrees, freeName, motion, picture, seconds, sentence } from "../format";
import { Icon } from "../parts/icons";
import { PlayTip } from "../parts/play-tip";
import { CueToggle } from "../parts/cue-toggle";
import { UnsavedTakes } from "../parts/unsaved";
import { Trash } from "../parts/trash";
import { askToAdd } from "../parts/upload";
import { LEAST_TAKES, learning } from "../state/learn";
import { library } from "../state/library";
import { playback } from "../state/playback";
import { robot } from "../state/robot";
import { type Screen, ui } from "../state/ui";
import { TEXTS } from "../texts";
import type { Take } from "../types";
import { Learned } from "./learn";
import { bindStyles } from "../css";
import styles from "./library.module.css";

const css = bindStyles(styles);
const T = TEXTS.library;
/** So many takes are shown at first, and more when asked for: a thousand rows would hold up the page. */
const ROWS = 60;

function renameAsk(old: string, rename: (name: string) => Promise<unknown>): void {
  ui.question.value = {
    title: T.renameTitle,
    message: "",
    confirm: T.rename,
    field: { label: T.newName, value: old },
    then: async (name) => {
      await rename(name);
      ui.notify(T.renamed(name), "good");
      await Promise.all([robot.loadActions(), library.load()]);
    },
  };
}

/** Ask for a name, and put a take on the robot. */
function storeAsk(take: string): void {
  ui.question.value = {
    title: T.store,
    message: T.storeWords,
    confirm: T.store,
    field: {
      label: T.storeName,
      value: freeName(
        take,
        (robot.actions.peek()?.taught ?? []).map((each) => each.name),
      ),
    },
    then: async (name) => {
      const { keyframes, max_error_rad } = await api.storeTake(take, name);
      ui.notify(T.stored(name, keyframes, fineDegrees(max_error_rad)), "good");
      await robot.loadActions();
    },
  };
}

/** Ask, delete, and leave the focus on the list's title: what had it is gone, and beside it is Play. */
function deleteAsk(name: string, message: string, title: string, remove: () => Promise<unknown>): void {
  ui.question.value = {
    title: T.deleteQuestion(name),
    message,
    confirm: T.remove,
    danger: true,
    then: () =>
      ui.attempt(remove).then((well) => {
        if (well) {
          ui.notify(T.deleted(name), "good");
          document.getElementById(title)?.focus({ preventScroll: true });
        }
        void robot.loadActions();
        void library.load();
      }),
  };
}

/** A list with nothing in it, and the screen that changes that. */
function Empty({ message, to, label }: { message: string; to: Screen; label: string }) {
  return (
    <div class="row wrap spread">
      <p class="muted">{message}</p>
      <a class="button" href={`#/${to}`}>
        <Icon name={to} />
        {label}
      </a>
    </div>
  );
}

function Taught({ wanted }: { wanted: (text: string) => boolean }) {
  const listed = robot.actions.value;
  // While the robot is lost, or if its list could not be read, there is only the last one, or none.
  const known = listed?.now === true && listed.free_places !== null;
  const shown = listed?.taught.filter((action) => wanted(action.name)) ?? [];
  const how = robot.can("tempo") ? { speed: playback.speed.value, loop: playback.loop.value } : {};
  if (robot.connected.value && !robot.can("list")) {
    return (
      <section class="card" aria-labelledby="taught-title">
        <h2 id="taught-title" tabIndex={-1}>
          {T.robot}
        </h2>
        <p class="muted" data-testid="no-actions">
          {T.ownTakes}
        </p>
      </section>
    );
  }
  return (
    <section class="card" aria-labelledby="taught-title">
      <div class="row spread">
        <h2 id="taught-title" tabIndex={-1}>
          {T.robot}
        </h2>
        {listed && <span class="muted">{known ? T.places(listed.taught.length) : T.lastKnown}</span>}
      </div>
      {listed && known && (
        <div class={css("places")} aria-hidden="true">
          {Array.from({ length: 15 }, (_, place) => (
            <i key={place} class={css(place < listed.taught.length ? "used" : "")} />
          ))}
        </div>
      )}
      {robot.connected.value && known && listed?.taught.length === 0 && (
        <Empty message={T.noTaught} to="teach" label={T.teach} />
      )}
      {!robot.connected.value && !listed && <Empty message={T.noRobot} to="robot" label={T.connect} />}
      {listed && listed.taught.length > 0 && shown.length === 0 && <p class="muted">{T.noMatch}</p>}
      <ul class="list">
        {shown.map(({ name, duration_s }) => (
          <li key={name} class="item" data-testid="action" data-name={name}>
            <div class="item-main wraps">
              <div class="item-words">
                <p class="item-name">{name}</p>
                <p class="muted">{seconds(duration_s)}</p>
              </div>
              <button
                type="button"
                class="button primary"
                disabled={!robot.ready.value}
                onClick={() => ui.attempt(() => api.play(name, how))}
                aria-label={`${T.play} ${name}`}
                title={T.playTip[robot.limbs.value]}
              >
                <Icon name="play" />
                <span class="wide-only">{T.play}</span>
              </button>
              <CueToggle cue={{ kind: "action", name }} />
              {robot.can("rename") && (
                <button
                  type="button"
                  class="button quiet"
                  disabled={!robot.ready.value}
                  onClick={() => renameAsk(name, (text) => api.renameAction(name, text))}
                  aria-label={`${T.rename} ${name}`}
                >
                  {T.rename}
                </button>
              )}
              {robot.can("delete") && (
                <button
                  type="button"
                  class="button quiet"
                  disabled={!robot.ready.value}
                  onClick={() => deleteAsk(name, T.deleteAction, "taught-title", () => api.deleteAction(name))}
                  aria-label={`${T.remove} ${name}`}
                >
                  {T.remove}
                </button>
              )}
            </div>
          </li>
        ))}
      </ul>
      {robot.connected.value && shown.length > 0 && !robot.can("delete") && <p class="muted">{T.noRename}</p>}
    </section>
  );
}

function Presets({ wanted }: { wanted: (text: string) => boolean }) {
  const presets = robot.actions.value?.presets.filter((preset) => wanted(preset.name)) ?? [];
  if (!robot.can("presets") || !presets.length) return null;
  return (
    <section class="card" aria-labelledby="presets-title">
      <h2 id="presets-title">{T.presets}</h2>
      <div class="row wrap">
        {presets.map(({ id, name }) => (
          <div key={id} class={css("row preset")}>
            <button
              type="button"
              class="button"
              disabled={!robot.ready.value}
              onClick={() => ui.attempt(() => api.perform(id))}
              aria-label={`${T.perform} ${motion(name)}`}
            >
              <Icon name="play" />
              <span>{motion(name)}</span>
            </button>
            <CueToggle cue={{ kind: "preset", name }} />
          </div>
        ))}
      </div>
    </section>
  );
}

function Tags({ take }: { take: Take }) {
  const [text, setText] = useState("");
  const change = (add: string[], remove: string[]): Promise<unknown> =>
    ui.attempt(() => api.tagTake(take.name, add, remove)).then(library.load);
  return (
    <form
      class="row wrap"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim()) void change([text.trim()], []);
        setText("");
      }}
    >
      <span class="muted">{T.tags}</span>
      {take.tags.map((tag) => (
        <button
          type="button"
          key={tag}
          class="chip"
          onClick={() => change([], [tag])}
          aria-label={`${T.remove} ${tag}`}
        >
          {tag} ×
        </button>
      ))}
      <input
        class="small-input"
        type="text"
        aria-label={T.addTag}
        placeholder={T.addTag}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}

function TakeRow({ take }: { take: Take }) {
  const [open, setOpen] = useState(false);
  const strange = robot.explainForeign(take);
  const facts = [
    seconds(take.duration_s),
    take.version > 1 ? T.version(take.version) : "",
    strange && take.title,
    take.source,
    ...take.tags,
  ].filter(Boolean);
  return (
    <li class="item" data-testid="take" data-name={take.name}>
      <div class="item-main wraps">
        {learning.chosen.value && (
          <input
            type="checkbox"
            class={css("choose")}
            checked={learning.chosen.value.includes(take.name)}
            disabled={take.problem !== "" || learning.working.value}
            aria-label={T.learn.choose(take.name)}
            onChange={(event) => learning.choose(take.name, event.currentTarget.checked)}
          />
        )}
        {take.thumbnail ? (
          <img class="thumb" src={picture(take.thumbnail)} alt="" width={112} height={34} loading="lazy" />
        ) : (
          <span class="thumb" />
        )}
        <div class="item-words">
          <p class="item-name">{take.name}</p>
          {take.problem ? <p class="bad-words">{sentence(take.problem)}</p> : <p class="muted">{facts.join(" · ")}</p>}
          {!take.problem && strange && (
            <p class="muted small" data-testid="foreign">
              {strange}
            </p>
          )}
        </div>
        {!take.problem && robot.can("stream") && (
          <button
            type="button"
            class="button primary"
            disabled={!robot.ready.value || strange !== ""}
            onClick={() => playback.playTake(take.name)}
            aria-label={`${T.play} ${take.name}`}
            title={strange || T.playTip[robot.limbs.value]}
          >
            <Icon name="play" />
            <span class="wide-only">{T.play}</span>
          </button>
        )}
        {!take.problem && robot.can("stream") && <CueToggle cue={{ kind: "take", name: take.name }} />}
        {!take.problem && (
          <button
            type="button"
            class="button"
            onClick={() => ui.go("edit", take.name)}
            aria-label={`${T.edit} ${take.name}`}
          >
            <Icon name="edit" />
            <span class="wide-only">{T.edit}</span>
          </button>
        )}
        <button
          type="button"
          class="icon-button"
          aria-expanded={open}
          aria-label={`${T.more}: ${take.name}`}
          title={T.more}
          onClick={() => setOpen(!open)}
        >
          <Icon name="more" />
        </button>
      </div>
      {open && (
        <div class={css("item-more")}>
          <div class="row wrap">
            <button
              type="button"
              class="button quiet"
              onClick={() => renameAsk(take.name, (text) => api.renameTake(take.name, text))}
              aria-label={`${T.rename} ${take.name}`}
            >
              {T.rename}
            </button>
            {!take.problem && robot.can("store") && strange === "" && (
              <button
                type="button"
                class="button quiet"
                disabled={!robot.ready.value}
                onClick={() => storeAsk(take.name)}
                aria-label={`${T.store}: ${take.name}`}
                data-testid="store"
              >
                {T.store}
              </button>
            )}
            <button
              type="button"
              class="button quiet"
              onClick={() => deleteAsk(take.name, T.deleteTake, "takes-title", () => api.deleteTake(take.name))}
              aria-label={`${T.remove} ${take.name}`}
            >
              {T.remove}
            </button>
            {!take.problem && (
              <>
                <span class="muted">{T.download}</span>
                {library.formats.value.map(({ name, title, loss }) => (
                  <a key={name} class="chip" href={api.takeFile(take.name, name)} title={loss} download>
                    {title}
                  </a>
                ))}
              </>
            )}
          </div>
          <Tags take={take} />
        </div>
      )}
    </li>
  );
}

/** Choose the takes to learn from: they are marked in the list below. */
function ChooseTakes() {
  const count = learning.chosen.value?.length;
  if (count === undefined) return null;
  return (
    <div class="row wrap spread" role="group" aria-label={T.learn.open} data-testid="choose-takes">
      <p class="muted">{learning.working.value ? T.learn.working : T.learn.words(LEAST_TAKES)}</p>
      <div class="row">
        <button type="button" class="button quiet" onClick={() => (learning.chosen.value = null)}>
          {TEXTS.cancel}
        </button>
        <button
          type="button"
          class="button primary"
          disabled={count < LEAST_TAKES || learning.working.value}
          onClick={learning.learn}
          data-testid="learn"
        >
          {T.learn.from(count)}
        </button>
      </div>
    </div>
  );
}

function Takes({ wanted }: { wanted: (text: string) => boolean }) {
  const picker = useRef<HTMLInputElement>(null);
  const [rows, setRows] = useState(ROWS);
  const found = library.takes.value.filter((take) => wanted(`${take.name} ${take.tags.join(" ")} ${take.source}`));
  const shown = found.slice(0, rows);
  return (
    <section class="card" aria-labelledby="takes-title">
      <div class="row spread">
        <h2 id="takes-title" tabIndex={-1}>
          {T.laptop}{" "}
          {library.takes.value.length > 0 && (
            <span class="muted">{T.count(found.length, library.takes.value.length)}</span>
          )}
        </h2>
        <div class="row">
          {library.takes.value.length >= LEAST_TAKES && (
            <button
              type="button"
              class="button"
              title={T.learn.words(LEAST_TAKES)}
              aria-pressed={learning.chosen.value !== null}
              onClick={() => (learning.chosen.value = learning.chosen.value ? null : [])}
              data-testid="learn-open"
            >
              {T.learn.open}
            </button>
          )}
          <button type="button" class="button" onClick={() => picker.current?.click()}>
            <Icon name="upload" />
            {T.upload}
          </button>
        </div>
        <input
          ref={picker}
          type="file"
          class="hidden"
          multiple
          accept={library.formats.value.map(({ ending }) => ending).join(",")}
          data-testid="upload"
          tabIndex={-1}
          aria-hidden="true"
          onChange={(event) => {
            const chosen = [...(event.currentTarget.files ?? [])];
            event.currentTarget.value = "";
            askToAdd(chosen);
          }}
        />
      </div>
      <ChooseTakes />
      {library.takes.value.length > 0 && robot.connected.value && !robot.can("stream") && (
        <p class="muted" data-testid="no-stream">
          {robot.canElsewhere("stream") ? T.streamElsewhere : T.noStream}
        </p>
      )}
      {library.takes.value.length === 0 && <Empty message={T.noTakes} to="teach" label={T.teach} />}
      {library.takes.value.length > 0 && shown.length === 0 && <p class="muted">{T.noMatch}</p>}
      <ul class="list">
        {shown.map((take) => (
          <TakeRow key={take.name} take={take} />
        ))}
      </ul>
      {found.length > shown.length && (
        <button type="button" class="button" onClick={() => setRows(rows + 4 * ROWS)} data-testid="show-more">
          {T.showMore(Math.min(4 * ROWS, found.length - shown.length))}
        </button>
      )}
      <p class={css("muted drop-note")}>
        <span class={css("drop-words")}>{T.drop} · </span>
        {T.formats}
      </p>
    </section>
  );
}

export function LibraryScreen() {
  const [search, setSearch] = useState("");
  const [over, setOver] = useState(false);
  useEffect(() => {
    void robot.loadActions();
    void library.load();
  }, []);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = (text: string): boolean => words.every((word) => text.toLowerCase().includes(word));
  const drag = (event: DragEvent): void => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    setOver(event.type === "dragover");
    if (event.type === "drop") askToAdd([...event.dataTransfer.files]);
  };
  if (learning.band.value) return <Learned />;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: files can be dropped here; a button takes them too
    <div
      class={css(over ? "library over" : "library")}
      onDragOver={drag}
      onDragLeave={() => setOver(false)}
      onDrop={drag}
      data-testid="dropzone"
    >
      <label class={css("search")}>
        <Icon name="search" />
        <span class="hidden">{T.search}</span>
        <input
          type="search"
          placeholder={T.search}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      </label>
      <PlayTip />
      <UnsavedTakes />
      <Taught wanted={wanted} />
      <Takes wanted={wanted} />
      <Presets wanted={wanted} />
      <Trash />
      {over && <div class={css("drop-here")}>{T.drop}</div>}
    </div>
  );
}
