/** The marks of the take. */

import { hundredths } from "../../format";
import { Icon } from "../../parts/icons";
import { editor } from "../../state/editor";
import { TEXTS } from "../../texts";
import { bindStyles } from "../../css";
import styles from "./marks-card.module.css";

const css = bindStyles(styles);
const T = TEXTS.edit;

/** The marks of the take: go to one, rename or remove it. */
export function Marks() {
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
      <ul class={css("marks")}>
        {made.marks.map((mark, index) => (
          <li key={index} class="row" data-testid="mark-row" data-label={mark.label}>
            <button type="button" class="link numbers" onClick={() => show(mark.time_s)}>
              {hundredths(mark.time_s)}
            </button>
            <span class={css("mark-label")}>{mark.label}</span>
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
