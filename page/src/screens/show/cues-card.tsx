/** Add cues and sounds. */

import { hundredths } from "../../format";
import { CUE_KINDS } from "../../show-document";
import { robot } from "../../state/robot";
import { showEditor } from "../../state/show-editor";
import { TEXTS } from "../../texts";
import { bindStyles } from "../../css";
import styles from "./cues-card.module.css";

const css = bindStyles(styles);
const T = TEXTS.show;

export function CuesCard() {
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
      <label class={css("button as-label")}>
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
