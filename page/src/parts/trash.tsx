/** The library's trash: what was deleted, brought back or deleted for good. */

import { useEffect, useState } from "preact/hooks";
import { ApiError, api } from "../api";
import { freeName, seconds } from "../format";
import { language } from "../languages";
import { library } from "../state/library";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import type { Trashed } from "../types";
import { Icon } from "./icons";

const T = TEXTS.library.trash;

function when(trashed: Trashed): string {
  return new Date(1000 * trashed.deleted_s).toLocaleString(language, { dateStyle: "medium", timeStyle: "short" });
}

export function Trash() {
  const [open, setOpen] = useState(false);
  const [listed, setListed] = useState<Trashed[] | null>(null);
  const load = (): Promise<boolean> => ui.attempt(async () => setListed((await api.trash()).trash));
  // What is deleted meanwhile is in it at once.
  useEffect(() => {
    if (open) void load();
  }, [open, library.takes.value]);
  const restored = async (id: string, to?: string): Promise<void> => {
    const entry = await api.restoreTake(id, to);
    ui.notify(T.restored(entry.name), "good");
    await Promise.all([load(), library.load()]);
  };
  const restore = async ({ id, name }: Trashed): Promise<void> => {
    const taken = library.takes.peek().some((take) => take.name === name);
    if (taken)
      ui.question.value = {
        title: T.takenTitle,
        message: T.takenWords(name),
        confirm: T.restore,
        field: {
          label: TEXTS.library.newName,
          value: freeName(
            name,
            library.takes.peek().map((each) => each.name),
          ),
        },
        then: (to) => restored(id, to),
      };
    else
      try {
        await restored(id);
      } catch (error) {
        if (error instanceof ApiError) ui.report(error);
        else throw error;
      }
  };
  const purge = ({ id, name }: Trashed): void => {
    ui.question.value = {
      title: T.purgeQuestion(name),
      message: T.purgeWords,
      confirm: T.purge,
      danger: true,
      then: () =>
        ui
          .attempt(() => api.purgeTake(id))
          .then((well) => {
            if (well) ui.notify(T.purged(name), "good");
            void load();
            document.getElementById("trash-title")?.focus({ preventScroll: true });
          }),
    };
  };
  return (
    <section class="card" aria-labelledby="trash-title" data-testid="trash">
      <div class="row spread wrap">
        <h2 id="trash-title" tabIndex={-1}>
          {T.title}
        </h2>
        <button type="button" class="button quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
          <Icon name="trash" />
          {open ? T.close : T.open}
        </button>
      </div>
      {open && listed?.length === 0 && <p class="muted">{T.empty}</p>}
      {open && listed && listed.length > 0 && (
        <ul class="list">
          {listed.map((each) => (
            <li key={each.id} class="item" data-testid="trashed" data-name={each.name}>
              <div class="item-main wraps">
                <div class="item-words">
                  <p class="item-name">{each.name}</p>
                  <p class="muted">
                    {[
                      each.duration_s === null ? "" : seconds(each.duration_s),
                      each.versions > 1 ? T.versions(each.versions) : "",
                      T.deleted(when(each)),
                      each.versions === 0 ? T.cut : "",
                    ]
                      .filter(Boolean)
                      .join(" · ")}
                  </p>
                </div>
                {each.versions > 0 && (
                  <button
                    type="button"
                    class="button"
                    onClick={() => restore(each)}
                    aria-label={`${T.restore}: ${each.name}`}
                  >
                    {T.restore}
                  </button>
                )}
                <button
                  type="button"
                  class="button quiet"
                  onClick={() => purge(each)}
                  aria-label={`${T.purge}: ${each.name}`}
                >
                  {T.purge}
                </button>
              </div>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
