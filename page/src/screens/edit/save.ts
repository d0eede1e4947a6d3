/** Save the take under a name. */

import { ApiError } from "../../api";
import { editor } from "../../state/editor";
import { library } from "../../state/library";
import { ui } from "../../state/ui";
import { TEXTS } from "../../texts";

const T = TEXTS.edit;

/** Save under a name; one that exists gets a new version, if that is wanted. Nothing replaces what is not known. */
export async function saveAs(name: string): Promise<void> {
  await library.load();
  const known = library.takes.value.find((each) => each.name === name);
  try {
    if (!known) return await editor.save(name, 0);
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== "name-taken") throw error;
    return saveAs(name); // it was made by another page at this moment
  }
  const newer = name === editor.opened.value ? editor.newerVersion() : null;
  ui.question.value = {
    title: T.versionTitle(name),
    message: `${newer ? `${T.versionNewer(newer)} ` : ""}${T.versionWords}`,
    confirm: T.versionConfirm,
    then: () => ui.attempt(() => saveVersion(name, known.versions.at(-1) ?? known.version)),
  };
}

async function saveVersion(name: string, over: number): Promise<void> {
  try {
    await editor.save(name, over);
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== "changed-take") throw error;
    await saveAs(name); // another page has saved a version since: the person decides again
  }
}
