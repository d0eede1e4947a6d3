/** Screen 5: play motions one after the other, by large pads and keys. */

import { useEffect } from "preact/hooks";
import { CuePad } from "../parts/cue-pad";
import { PlayTip } from "../parts/play-tip";
import { loadActions, loadTakes } from "../store";

export function CuesScreen() {
  useEffect(() => {
    void loadActions();
    void loadTakes();
  }, []);
  return (
    <>
      <PlayTip />
      <CuePad />
    </>
  );
}
