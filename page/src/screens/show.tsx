/** Screen 6: a show of several robots on lanes, its check and preview, and GO. On a phone GO alone. */

import "./show.css";
import { useEffect } from "preact/hooks";
import { carried } from "../parts/lanes";
import { library } from "../state/library";
import { showEditor } from "../state/show-editor";
import { TEXTS } from "../texts";
import { CheckCard } from "./show/check-card";
import { CuesCard } from "./show/cues-card";
import { FileCard } from "./show/file-card";
import { GoCard } from "./show/go-card";
import { phone } from "./show/layout";
import { Carried, LibraryCard } from "./show/library-card";
import { OffsetsCard } from "./show/offsets-card";
import { PickedCard } from "./show/picked-card";
import { RolesCard } from "./show/roles-card";
import { SectionCard } from "./show/section-card";

export { ShowDock } from "./show/dock";
export { hasLanes } from "./show/layout";

const T = TEXTS.show;

export function ShowScreen() {
  useEffect(() => {
    void library.load();
    void showEditor.start();
    return () => {
      showEditor.stopPreview();
      carried.value = null;
    };
  }, []);
  if (phone.value)
    return (
      <>
        <GoCard />
        <FileCard />
        <p class="muted small">{T.phone}</p>
      </>
    );
  return (
    <>
      <Carried />
      <FileCard />
      <GoCard />
      {showEditor.draft.value && (
        <>
          <PickedCard />
          <LibraryCard />
          <CheckCard />
          <CuesCard />
          <SectionCard />
          <RolesCard />
          <OffsetsCard />
        </>
      )}
    </>
  );
}
