/** The time line of the take, with undo, preview, play and save above it. */

import { useEffect, useMemo } from "preact/hooks";
import { freeName, hundredths } from "../../format";
import { focusOf } from "../../keys";
import { Icon } from "../../parts/icons";
import { TimeLine, zoomKey } from "../../parts/timeline";
import { keeps } from "../../state/drafts";
import { editor } from "../../state/editor";
import { library } from "../../state/library";
import { robot } from "../../state/robot";
import { ui } from "../../state/ui";
import { TEXTS } from "../../texts";
import { saveAs } from "./save";
import { bindStyles } from "../../css";
import styles from "./dock.module.css";

const css = bindStyles(styles);
const T = TEXTS.edit;

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
        <div class={css("dock-title")}>
          <h1>{take}</h1>
          <span class="muted numbers" data-testid="moment">
            {hundredths(editor.playhead.value)} / {hundredths(made.duration_s)}
          </span>
          {editor.unsaved.value && (
            <span class="chip warn" data-testid="unsaved" title={keeps.value ? T.draft.kept : undefined}>
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
