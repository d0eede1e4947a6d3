/** Takes that could not be written to the disk: the server keeps them in memory until they are saved or discarded. */

import { api } from "../api";
import { freeName, seconds } from "../format";
import { library } from "../state/library";
import { robot } from "../state/robot";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import type { UnsavedTake } from "../types";
import { message, remedy } from "../wording";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./unsaved.module.css";

const css = bindStyles(styles);
const T = TEXTS.unsaved;

function askToSave(take: UnsavedTake, folder: string | null): void {
  const taken = folder === null ? library.takes.peek().map(({ name }) => name) : [];
  ui.question.value = {
    title: T.saveTitle,
    message: folder === null ? T.toLibrary : T.toFolder(folder),
    confirm: T.save,
    field: { label: TEXTS.library.newName, value: freeName(take.name, taken) },
    then: async (name) => ui.notify(T.saved((await api.saveUnsaved(take.id, name, folder)).path), "good"),
  };
}

function askToDiscard(take: UnsavedTake): void {
  ui.question.value = {
    title: T.discardTitle(take.name),
    message: T.discardWords,
    confirm: T.discard,
    danger: true,
    then: () => ui.attempt(() => api.discardUnsaved(take.id)),
  };
}

function One({ take }: { take: UnsavedTake }) {
  const format = library.formats.value[0]?.name ?? "mcap";
  return (
    <li data-testid="unsaved-take">
      <p>
        <strong>{take.name}</strong> <span class="muted">{seconds(take.duration_s)}</span>
      </p>
      <p class="bad-words">{T.why(take.problem)}</p>
      <div class="row wrap">
        <a class="button primary" href={api.unsavedFile(take.id, format)} download data-testid="unsaved-download">
          {T.download}
        </a>
        <button type="button" class="button" disabled={!robot.mayCommand.value} onClick={() => askToSave(take, null)}>
          {T.again}
        </button>
        {take.folders.map((folder) => (
          <button
            type="button"
            key={folder}
            class="button"
            disabled={!robot.mayCommand.value}
            onClick={() => askToSave(take, folder)}
          >
            {T.in(folder)}
          </button>
        ))}
        <button
          type="button"
          class="button quiet"
          disabled={!robot.mayCommand.value}
          onClick={() => askToDiscard(take)}
        >
          {T.discard}
        </button>
      </div>
    </li>
  );
}

/** The takes that only the server's memory has; nothing if all are on the disk. */
export function UnsavedTakes() {
  const all = robot.status.value?.unsaved ?? [];
  if (!all.length) return null;
  return (
    <section class={css("card unsaved")} aria-labelledby="unsaved-title" data-testid="unsaved-takes">
      <h2 id="unsaved-title" class="bad-words">
        <Icon name="warn" />
        {T.title}
      </h2>
      <p>{T.words}</p>
      <ul class="stack">
        {all.map((take) => (
          <One key={take.id} take={take} />
        ))}
      </ul>
    </section>
  );
}

/** The take that is being recorded cannot be written. */
export function StorageProblem() {
  const texts = robot.status.value?.storage_problem;
  if (!texts) return null;
  const problem = { message: "", remedy: "", texts };
  return (
    <div class="banner bad" role="alert" data-testid="storage-problem">
      <Icon name="warn" />
      <p>
        <strong>{message(problem)}</strong> {remedy(problem)} {T.goesOn}
      </p>
    </div>
  );
}
