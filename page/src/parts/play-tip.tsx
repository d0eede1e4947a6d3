/** What to see to before a robot plays, as a line: a tooltip cannot be read on a phone. */

import { robot } from "../state/robot";
import { TEXTS } from "../texts";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./play-tip.module.css";

const css = bindStyles(styles);

export function PlayTip() {
  if (!robot.connected.value) return null;
  return (
    <p class={css("play-tip")} data-testid="play-tip">
      <Icon name="info" />
      <span>{TEXTS.library.playTip[robot.limbs.value]}</span>
    </p>
  );
}
