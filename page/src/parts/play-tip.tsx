/** What to see to before a robot plays, as a line: a tooltip cannot be read on a phone. */

import { robot } from "../state/robot";
import { TEXTS } from "../texts";
import { Icon } from "./icons";

export function PlayTip() {
  if (!robot.connected.value) return null;
  return (
    <p class="play-tip" data-testid="play-tip">
      <Icon name="info" />
      <span>{TEXTS.library.playTip[robot.limbs.value]}</span>
    </p>
  );
}
