/** Screen 4: a take on a time line, tools, checks, and a preview before anything moves. */

import { useEffect, useMemo } from "preact/hooks";
import { ApiError } from "../api";
import { dropDraft, drafts, isUnsaved } from "../drafts";
import { freeName, hundredths, joint as jointName, partly, picture, seconds, sentence } from "../format";
import { focusOf } from "../keys";
import { Icon } from "../parts/icons";
import { PlayTip } from "../parts/play-tip";
import { TimeLine, zoomKey } from "../parts/timeline";
import { Tools } from "../parts/tools";
import { attempt, can, go, limbs, loadTakes, pointed, question, ready, stranger, takes, takesKnown } from "../store";
import { TEXTS } from "../texts";
import type { Finding } from "../types";
import { folded, remedy } from "../wording";
import {
  askForMark,
  askToDropElsewhere,
  askToRename,
  askToRevert,
  chooseVersion,
  deleted,
  describe,
  edited,
  elsewhere,
  following,
  history,
  newerVersion,
  opened,
  play,
  playhead,
  preview,
  previewing,
  proposal,
  redoStep,
  removeMark,
  reveal,
  save,
  seek,
  stopPreview,
  strange,
  takeElsewhere,
  undoStep,
  unsaved,
  versions,
  whose,
  working,
} from "./editing";

const T = TEXTS.edit;
const MAX_FINDINGS = 6;

/** Edits of takes that were deleted: they can still be opened and saved as new takes. */
function Orphans() {
  const names = new Set(takes.value.map(({ name }) => name));
  const left = Object.values(drafts.value).filter(({ take, steps }) => steps.length && !names.has(take));
  if (!takesKnown.value || !left.length) return null;
  const askToDrop = ({ take, tab, steps }: (typeof left)[number]): void => {
    question.value = {
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
            <button type="button" class="item-main pick" onClick={() => go("edit", each.take)}>
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
  useEffect(() => void loadTakes(), []);
  const usable = takes.value.filter((take) => !take.problem);
  return (
    <section class="card" aria-labelledby="choose-title">
      <h2 id="choose-title">{T.choose}</h2>
      <p class="muted">{usable.length ? T.chooseWords : T.none}</p>
      <ul class="list">
        {usable.map((take) => (
          <li key={take.name} class="item">
            <button type="button" class="item-main pick" onClick={() => go("edit", take.name)}>
              <img class="thumb" src={picture(take.thumbnail)} alt="" width={112} height={34} />
              <span class="item-words">
                <span class="item-name">{take.name}</span>{" "}
                {isUnsaved(take.name) && <span class="chip warn">{T.draft.unsaved}</span>}{" "}
                <span class="muted">
                  {[seconds(take.duration_s), stranger(take) && take.title].filter(Boolean).join(" · ")}
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
    stopPreview();
    seek(mark.time_s ?? 0);
    reveal(mark.time_s ?? 0);
  };
  return (
    <li
      class={`finding ${mark.severity}`}
      onPointerEnter={() => (pointed.value = mark.joint)}
      onPointerLeave={() => (pointed.value = null)}
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
  const made = edited.value;
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
      {strange.value && (
        <p class="bad-words" data-testid="foreign">
          {strange.value}
        </p>
      )}
      {whose.value === null && <p class="bad-words">{T.unknown}</p>}
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
  const made = edited.value;
  if (!made) return null;
  const show = (time: number): void => {
    stopPreview();
    seek(time);
    reveal(time);
  };
  return (
    <section class="card" aria-labelledby="marks-title" data-testid="marks">
      <div class="row spread wrap">
        <h2 id="marks-title">{T.marks.title}</h2>
        <button type="button" class="button" disabled={working.value} onClick={askForMark}>
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
              disabled={working.value}
              aria-label={T.marks.renameOne(mark.label)}
              onClick={() => askToRename(mark)}
            >
              {T.marks.rename}
            </button>
            <button
              type="button"
              class="icon-button small"
              data-edit="remove_mark"
              disabled={working.value}
              aria-label={T.marks.removeOne(mark.label)}
              title={T.marks.removeOne(mark.label)}
              onClick={() => removeMark(mark)}
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
  const other = elsewhere.value;
  if (!other) return null;
  const busy = history.value.steps.length > 0;
  return (
    <div data-testid="elsewhere">
      <p>{T.draft.other(other.steps.length)}</p>
      {busy && <p class="muted">{T.draft.otherFirst}</p>}
      <div class="row wrap">
        <button type="button" class="button" disabled={busy || working.value} onClick={takeElsewhere}>
          {T.draft.otherTake}
        </button>
        <button type="button" class="button quiet" onClick={askToDropElsewhere}>
          {T.draft.revert}
        </button>
      </div>
    </div>
  );
}

function Steps() {
  const { steps } = history.value;
  return (
    <section class="card" aria-labelledby="steps-title">
      <div class="row spread wrap">
        <h2 id="steps-title">{T.steps}</h2>
        {unsaved.value && (
          <button
            type="button"
            class="button quiet"
            disabled={working.value}
            onClick={askToRevert}
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
            <li key={index}>{describe(each)}</li>
          ))}
        </ol>
      )}
      <Elsewhere />
    </section>
  );
}

export function EditScreen() {
  if (!opened.value || !edited.value) {
    return working.value ? (
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
      {can("stream") && <PlayTip />}
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
      if (question.peek() === null && !focusOf(document.activeElement, false).typing && zoomKey(event)) {
        event.preventDefault();
        return;
      }
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
      if (event.target instanceof HTMLInputElement && event.target.type === "text") return;
      event.preventDefault();
      if (event.shiftKey) redoStep();
      else undoStep();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** Save under a name; one that exists gets a new version, if that is wanted. Nothing replaces what is not known. */
async function saveAs(name: string): Promise<void> {
  await loadTakes();
  const known = takes.value.find((each) => each.name === name);
  try {
    if (!known) return await save(name, 0);
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== "name-taken") throw error;
    return saveAs(name); // it was made by another page at this moment
  }
  const newer = name === opened.value ? newerVersion() : null;
  question.value = {
    title: T.versionTitle(name),
    message: `${newer ? `${T.versionNewer(newer)} ` : ""}${T.versionWords}`,
    confirm: T.versionConfirm,
    then: () => attempt(() => saveVersion(name, known.versions.at(-1) ?? known.version)),
  };
}

async function saveVersion(name: string, over: number): Promise<void> {
  try {
    await save(name, over);
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== "changed-take") throw error;
    await saveAs(name); // another page has saved a version since: the person decides again
  }
}

/** Which version of the take is edited, where there are several. */
function Version({ now }: { now: number }) {
  const choose = (select: HTMLSelectElement): void => {
    chooseVersion(Number(select.value));
    select.value = String(now); // until it is there
  };
  if (versions.value.length < 2) return null;
  return (
    <select
      value={String(now)}
      disabled={working.value}
      aria-label={T.versions}
      data-testid="version"
      onChange={(event) => choose(event.currentTarget)}
    >
      {versions.value.map((each) => (
        <option key={each} value={String(each)}>
          {T.version(each)}
        </option>
      ))}
    </select>
  );
}

export function EditDock({ inert }: { inert: boolean }) {
  useKeys();
  const made = edited.value;
  const take = opened.value;
  const findings = useMemo(() => made?.findings.filter(({ severity }) => severity !== "note") ?? [], [made]);
  if (!made || !take) return null;
  const { steps, undone } = history.value;
  const ask = (): void => {
    question.value = {
      title: T.saveTitle,
      message: "",
      confirm: T.save,
      field: {
        label: TEXTS.library.newName,
        value: freeName(
          take,
          takes.value.map((each) => each.name),
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
      aria-busy={working.value}
    >
      <div class="dock-head">
        <div class="dock-title">
          <h1>{take}</h1>
          <span class="muted numbers" data-testid="moment">
            {hundredths(playhead.value)} / {hundredths(made.duration_s)}
          </span>
          {unsaved.value && (
            <span class="chip warn" data-testid="unsaved" title={T.draft.kept}>
              {T.draft.unsaved}
            </span>
          )}
          {deleted.value && (
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
            disabled={working.value || !steps.length}
            onClick={undoStep}
          >
            <Icon name="undo" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label={T.redo}
            title={T.redo}
            disabled={working.value || !undone.length}
            onClick={redoStep}
          >
            <Icon name="redo" />
          </button>
          <button
            type="button"
            class="button"
            disabled={following.value}
            onClick={() => (previewing.value ? stopPreview() : preview())}
            data-testid="preview"
            aria-pressed={previewing.value}
          >
            <Icon name={previewing.value ? "pause" : "play"} />
            {previewing.value ? T.stopPreview : T.preview}
          </button>
          {can("stream") && (
            <button
              type="button"
              class="button"
              disabled={!ready.value || working.value || !made.ok || strange.value !== "" || proposal.value !== null}
              title={
                strange.value || (made.ok ? TEXTS.library.playTip[limbs.value] : made.checked ? T.cannot : T.checking)
              }
              data-testid="edit-play"
              onClick={play}
            >
              {T.play}
            </button>
          )}
          <button
            type="button"
            class="button primary"
            disabled={working.value || proposal.value !== null}
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
