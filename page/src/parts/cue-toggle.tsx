/** The star button that makes a motion a cue. */

import { cueName, cues, toggle } from "../cue-player";
import { type Cue, hasCue } from "../cues";
import { TEXTS } from "../texts";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./cue-toggle.module.css";

const css = bindStyles(styles);

export function CueToggle({ cue }: { cue: Cue }) {
  const on = hasCue(cues.value, cue);
  const label = on ? TEXTS.library.unstar : TEXTS.library.star;
  return (
    <button
      type="button"
      class={css("icon-button star")}
      aria-pressed={on}
      aria-label={`${TEXTS.library.star}: ${cueName(cue)}`}
      title={label}
      onClick={() => toggle(cue)}
      data-testid="star"
    >
      <Icon name="star" />
    </button>
  );
}
