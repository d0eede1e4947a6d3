/** Screen 4: a take on a time line, tools, checks, and a preview before anything moves. */

import { PlayTip } from "../parts/play-tip";
import { Tools } from "../parts/tools";
import { editor } from "../state/editor";
import { robot } from "../state/robot";
import { TEXTS } from "../texts";
import { Checks } from "./edit/checks-card";
import { Choose, Orphans } from "./edit/choose";
import { Marks } from "./edit/marks-card";
import { Steps } from "./edit/steps-card";

export { EditDock } from "./edit/dock";

const T = TEXTS.edit;

export function EditScreen() {
  if (!editor.opened.value || !editor.edited.value) {
    return editor.working.value ? (
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
      {robot.can("stream") && <PlayTip />}
      <Tools />
      <Checks />
      <Marks />
      <Steps />
    </>
  );
}
