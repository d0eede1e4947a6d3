/** The lanes of the show, with the tools above them. */

import { useEffect } from "preact/hooks";
import { hundredths } from "../../format";
import { focusOf } from "../../keys";
import { Icon } from "../../parts/icons";
import { Lanes, zoom, zoomBy } from "../../parts/lanes";
import { showEditor } from "../../state/show-editor";
import { stage } from "../../state/stage";
import { ui } from "../../state/ui";
import { TEXTS } from "../../texts";
import { bindStyles } from "../../css";
import styles from "./dock.module.css";

const css = bindStyles(styles);
const T = TEXTS.show;

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
      class={css("dock show-dock")}
      inert={inert}
      aria-label={T.lanes}
      data-testid="show-dock"
      data-checked={!showEditor.checking.value}
    >
      <div class="dock-head">
        <div class={css("section-tabs")} role="group" aria-label={T.sections}>
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
            disabled={
              ["playing", "paused"].includes(stage.current.value?.run?.state ?? "") || showEditor.span.value === 0
            }
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
