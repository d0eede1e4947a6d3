/** Screen 4: a take on a time line, tools, checks, and a preview before anything moves. */

import { useEffect, useMemo } from "preact/hooks";
import { ApiError } from "../api";
import { dropDraft, drafts, isUnsaved } from "../state/drafts";
import { freeName, hundredths, joint as jointName, partly, picture, seconds, sentence } from "../format";
import { focusOf } from "../keys";
import { Icon } from "../parts/icons";
import { PlayTip } from "../parts/play-tip";
import { TimeLine, zoomKey } from "../parts/timeline";
import { Tools } from "../parts/tools";
import { editor } from "../state/editor";
import { library } from "../state/library";
import { robot } from "../state/robot";
import { scene } from "../state/scene";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import type { Finding } from "../types";
import { folded, remedy } from "../wording";

const T = TEXTS.edit;
const MAX_FINDINGS = 6;

/** Edits of takes that were deleted: they can still be opened and saved as new takes. */
function Orphans() {
  const names = new Set(library.takes.value.map(({ name }) => name));
  const left = Object.values(drafts.value).filter(({ take, steps }) => steps.length && !names.has(take));
  if (!library.loaded.value || !left.length) return null;
  const askToDrop = ({ take, tab, steps }: (typeof left)[number]): void => {
    ui.question.value = {
      title: T.draft.revertTitle(steps.length),
      message: T.draft.otherWords,
      confirm: T.draft.revert,
      danger: true,
      then: () => dropDraft(take, tab),
    };
  };
  return (
    <section class="card" aria-labelledby="orphans-title" data-testid="orphans">
      <h2 id="orphans-title">{T.draft.orphans}</h2>
      <p class="muted">{T.draft.orphansWords}</p>
      <ul class="list">
        {left.map((each) => (
          <li key={`${each.tab} ${each.take}`} class="item">
            <button type="button" class="item-main pick" onClick={() => ui.go("edit", each.take)}>
              <span class="item-words">
                <span class="item-name">{each.take}</span> <span class="muted">{T.draft.count(each.steps.length)}</span>
              </span>
            </button>
            <button type="button" class="button quiet" onClick={() => askToDrop(each)}>
              {T.draft.revert}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Choose() {
  useEffect(() => void library.load(), []);
  const usable = library.takes.value.filter((take) => !take.problem);
  return (
    <section class="card" aria-labelledby="choose-title">
      <h2 id="choose-title">{T.choose}</h2>
      <p class="muted">{usable.length ? T.chooseWords : T.none}</p>
      <ul class="list">
        {usable.map((take) => (
          <li key={take.name} class="item">
            <button type="button" class="item-main pick" onClick={() => ui.go("edit", take.name)}>
              <img class="thumb" src={picture(take.thumbnail)} alt="" width={112} height={34} />
              <span class="item-words">
                <span class="item-name">{take.name}</span>{" "}
                {isUnsaved(take.name) && <span class="chip warn">{T.draft.unsaved}</span>}{" "}
                <span class="muted">
                  {[seconds(take.duration_s), robot.explainForeign(take) && take.title].filter(Boolean).join(" · ")}
                </span>
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function MarkRow({ mark }: { mark: Finding }) {
  const { message, names } = folded(mark);
  const show = (): void => {
    editor.stopPreview();
    editor.seek(mark.time_s ?? 0);
    editor.reveal(mark.time_s ?? 0);
  };
  return (
    <li
      class={`finding ${mark.severity}`}
      onPointerEnter={() => (scene.highlighted.value = mark.joint)}
      onPointerLeave={() => (scene.highlighted.value = null)}
    >
      <Icon name={mark.severity === "note" ? "info" : "warn"} />
      <div>
        <p>
          {sentence(message)}{" "}
          {mark.time_s !== null && (
            <button type="button" class="link" onClick={show}>
              {T.at(hundredths(mark.time_s))}
            </button>
          )}
        </p>
        {names.length > 0 && (
          <details class="more">
            <summary>{T.names}</summary>
            <p class="muted">{names.map(jointName).join(", ")}</p>
          </details>
        )}
        {mark.remedy && <p class="remedy">{sentence(remedy(mark))}</p>}
        {mark.joint && <span class="hidden">{jointName(mark.joint)}</span>}
      </div>
    </li>
  );
}

function Checks() {
  const made = editor.edited.value;
  if (!made) return null;
  const found = made.findings.filter(({ severity }) => severity !== "note");
  const notes = made.findings.filter(({ severity }) => severity === "note");
  const rows = [...found, ...notes].map((mark, index) => <MarkRow key={index} mark={mark} />);
  const more = rows.length - MAX_FINDINGS;
  return (
    <section class="card" aria-labelledby="checks-title" data-testid="checks">
      <div class="row spread">
        <h2 id="checks-title">{T.findings}</h2>
        {made.checked && !made.ok && <span class="chip bad">{T.cannot}</span>}
      </div>
      {editor.strange.value && (
        <p class="bad-words" data-testid="foreign">
          {editor.strange.value}
        </p>
      )}
      {editor.whose.value === null && <p class="bad-words">{T.unknown}</p>}
      {!made.checked && (
        <p class="muted" role="status">
          {T.checking}
        </p>
      )}
      {made.checked && found.length === 0 && (
        <p class="fine">
          <Icon name="check" />
          <span>{partly(notes) ? T.finePartly : T.fine}</span>
        </p>
      )}
      <ul class="findings">{rows.slice(0, MAX_FINDINGS)}</ul>
      {more > 0 && (
        <details class="more">
          <summary>{T.moreFindings(more)}</summary>
          <ul class="findings">{rows.slice(MAX_FINDINGS)}</ul>
        </details>
      )}
    </section>
  );
}

/** The marks of the take: go to one, rename or remove it. */
function Marks() {
  const made = editor.edited.value;
  if (!made) return null;
  const show = (time: number): void => {
    editor.stopPreview();
    editor.seek(time);
    editor.reveal(time);
  };
  return (
    <section class="card" aria-labelledby="marks-title" data-testid="marks">
      <div class="row spread wrap">
        <h2 id="marks-title">{T.marks.title}</h2>
        <button type="button" class="button" disabled={editor.working.value} onClick={editor.askForMark}>
          <Icon name="flag" />
          {T.marks.here}
        </button>
      </div>
      {made.marks.length === 0 && <p class="muted">{T.marks.none}</p>}
      <ul class="marks">
        {made.marks.map((mark, index) => (
          <li key={index} class="row" data-testid="mark-row" data-label={mark.label}>
            <button type="button" class="link numbers" onClick={() => show(mark.time_s)}>
              {hundredths(mark.time_s)}
            </button>
            <span class="mark-label">{mark.label}</span>
            <button
              type="button"
              class="button quiet"
              data-edit="change_mark"
              disabled={editor.working.value}
              aria-label={T.marks.renameOne(mark.label)}
              onClick={() => editor.askToRename(mark)}
            >
              {T.marks.rename}
            </button>
            <button
              type="button"
              class="icon-button small"
              data-edit="remove_mark"
              disabled={editor.working.value}
              aria-label={T.marks.removeOne(mark.label)}
              title={T.marks.removeOne(mark.label)}
              onClick={() => editor.removeMark(mark)}
            >
              <Icon name="close" />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Edits of another tab, which this one does not have. */
function Elsewhere() {
  const other = editor.elsewhere.value;
  if (!other) return null;
  const busy = editor.history.value.done.length > 0;
  return (
    <div data-testid="elsewhere">
      <p>{T.draft.other(other.steps.length)}</p>
      {busy && <p class="muted">{T.draft.otherFirst}</p>}
      <div class="row wrap">
        <button type="button" class="button" disabled={busy || editor.working.value} onClick={editor.takeElsewhere}>
          {T.draft.otherTake}
        </button>
        <button type="button" class="button quiet" onClick={editor.askToDropElsewhere}>
          {T.draft.revert}
        </button>
      </div>
    </div>
  );
}

function Steps() {
  const { done: steps } = editor.history.value;
  return (
    <section class="card" aria-labelledby="steps-title">
      <div class="row spread wrap">
        <h2 id="steps-title">{T.steps}</h2>
        {editor.unsaved.value && (
          <button
            type="button"
            class="button quiet"
            disabled={editor.working.value}
            onClick={editor.askToRevert}
            data-testid="revert"
          >
            {T.draft.revert}
          </button>
        )}
      </div>
      {steps.length === 0 ? (
        <p class="muted">{T.noSteps}</p>
      ) : (
        <ol class="steps" data-testid="steps">
          {steps.map((each, index) => (
            <li key={index}>{editor.describe(each)}</li>
          ))}
        </ol>
      )}
      <Elsewhere />
    </section>
  );
}

export function EditScreen() {
  if (!editor.opened.value || !editor.edited.value) {
    return editor.working.value ? (
      <section class="card">
        <p class="muted">{T.working}</p>
      </section>
    ) : (
      <>
        <Choose />
        <Orphans />
      </>
    );
  }
  return (
    <>
      {robot.can("stream") && <PlayTip />}
      <Tools />
      <Checks />
      <Marks />
      <Steps />
    </>
  );
}

/** Ctrl+Z and its friends, and those of the time line, while no text is being typed. */
function useKeys(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (ui.question.peek() === null && !focusOf(document.activeElement, false).typing && zoomKey(event)) {
        event.preventDefault();
        return;
      }
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
      if (event.target instanceof HTMLInputElement && event.target.type === "text") return;
      event.preventDefault();
      if (event.shiftKey) editor.redo();
      else editor.undo();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** Save under a name; one that exists gets a new version, if that is wanted. Nothing replaces what is not known. */
async function saveAs(name: string): Promise<void> {
  await library.load();
  const known = library.takes.value.find((each) => each.name === name);
  try {
    if (!known) return await editor.save(name, 0);
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== "name-taken") throw error;
    return saveAs(name); // it was made by another page at this moment
  }
  const newer = name === editor.opened.value ? editor.newerVersion() : null;
  ui.question.value = {
    title: T.versionTitle(name),
    message: `${newer ? `${T.versionNewer(newer)} ` : ""}${T.versionWords}`,
    confirm: T.versionConfirm,
    then: () => ui.attempt(() => saveVersion(name, known.versions.at(-1) ?? known.version)),
  };
}

async function saveVersion(name: string, over: number): Promise<void> {
  try {
    await editor.save(name, over);
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== "changed-take") throw error;
    await saveAs(name); // another page has saved a version since: the person decides again
  }
}

/** Which version of the take is edited, where there are several. */
function Version({ now }: { now: number }) {
  const choose = (select: HTMLSelectElement): void => {
    editor.chooseVersion(Number(select.value));
    select.value = String(now); // until it is there
  };
  if (editor.versions.value.length < 2) return null;
  return (
    <select
      value={String(now)}
      disabled={editor.working.value}
      aria-label={T.versions}
      data-testid="version"
      onChange={(event) => choose(event.currentTarget)}
    >
      {editor.versions.value.map((each) => (
        <option key={each} value={String(each)}>
          {T.version(each)}
        </option>
      ))}
    </select>
  );
}

export function EditDock({ inert }: { inert: boolean }) {
  useKeys();
  const made = editor.edited.value;
  const take = editor.opened.value;
  const findings = useMemo(() => made?.findings.filter(({ severity }) => severity !== "note") ?? [], [made]);
  if (!made || !take) return null;
  const { done: steps, undone } = editor.history.value;
  const ask = (): void => {
    ui.question.value = {
      title: T.saveTitle,
      message: "",
      confirm: T.save,
      field: {
        label: TEXTS.library.newName,
        value: freeName(
          take,
          library.takes.value.map((each) => each.name),
        ),
      },
      then: saveAs,
    };
  };
  return (
    <section
      class="dock"
      inert={inert}
      aria-label={T.timeline}
      data-testid="dock"
      data-duration={made.duration_s.toFixed(3)}
      data-steps={steps.length}
      data-checked={made.checked}
      aria-busy={editor.working.value}
    >
      <div class="dock-head">
        <div class="dock-title">
          <h1>{take}</h1>
          <span class="muted numbers" data-testid="moment">
            {hundredths(editor.playhead.value)} / {hundredths(made.duration_s)}
          </span>
          {editor.unsaved.value && (
            <span class="chip warn" data-testid="unsaved" title={T.draft.kept}>
              {T.draft.unsaved}
            </span>
          )}
          {editor.deleted.value && (
            <span class="chip bad" data-testid="deleted" title={T.draft.deletedWords}>
              {T.draft.deleted}
            </span>
          )}
          <Version now={made.version} />
        </div>
        <div class="row">
          <button
            type="button"
            class="icon-button"
            aria-label={T.undo}
            title={T.undo}
            disabled={editor.working.value || !steps.length}
            onClick={editor.undo}
          >
            <Icon name="undo" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label={T.redo}
            title={T.redo}
            disabled={editor.working.value || !undone.length}
            onClick={editor.redo}
          >
            <Icon name="redo" />
          </button>
          <button
            type="button"
            class="button"
            disabled={editor.following.value}
            onClick={() => (editor.previewing.value ? editor.stopPreview() : editor.preview())}
            data-testid="preview"
            aria-pressed={editor.previewing.value}
          >
            <Icon name={editor.previewing.value ? "pause" : "play"} />
            {editor.previewing.value ? T.stopPreview : T.preview}
          </button>
          {robot.can("stream") && (
            <button
              type="button"
              class="button"
              disabled={
                !robot.ready.value ||
                editor.working.value ||
                !made.ok ||
                editor.strange.value !== "" ||
                editor.proposal.value !== null
              }
              title={
                editor.strange.value ||
                (made.ok ? TEXTS.library.playTip[robot.limbs.value] : made.checked ? T.cannot : T.checking)
              }
              data-testid="edit-play"
              onClick={editor.play}
            >
              {T.play}
            </button>
          )}
          <button
            type="button"
            class="button primary"
            disabled={editor.working.value || editor.proposal.value !== null}
            onClick={ask}
            data-testid="save-as"
          >
            {T.save}
          </button>
        </div>
      </div>
      <TimeLine made={made} findings={findings} />
    </section>
  );
}
