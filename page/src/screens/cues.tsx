/** Screen 5: play motions one after the other, by large pads and keys. */

import { useEffect } from "preact/hooks";
import { CuePad } from "../parts/cue-pad";
import { PlayTip } from "../parts/play-tip";
import { library } from "../state/library";
import { robot } from "../state/robot";

export function CuesScreen() {
  useEffect(() => {
    void robot.loadActions();
    void library.load();
  }, []);
  return (
    <>
      <PlayTip />
      <CuePad />
    </>
  );
}
