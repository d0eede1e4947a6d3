/** Questions, and small messages that come and go. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api";
import { badName, sentence } from "../format";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { Icon } from "./icons";
import { bindStyles } from "../css";
import styles from "./dialog.module.css";

const css = bindStyles(styles);

/**
 * A question over the page. It is not modal to the browser, which would put STOP out of reach:
 * the page behind it is inert, the bar with STOP is not.
 */
export function Dialog() {
  const asked = ui.question.value;
  const field = useRef<HTMLInputElement>(null);
  const cancel = useRef<HTMLButtonElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const before = useRef<Element | null>(null);
  if (asked) before.current ??= document.activeElement;
  const [wrong, setWrong] = useState("");
  const [busy, setBusy] = useState(false);
  // At once, so that what comes of an answer may put the focus elsewhere.
  useLayoutEffect(() => {
    setWrong("");
    setBusy(false);
    if (asked) {
      const first = form.current?.querySelector<HTMLElement>("[data-first]");
      (field.current ?? first ?? cancel.current)?.focus();
      field.current?.select();
    } else {
      const there = before.current?.isConnected ? before.current : document.getElementById("panel");
      if (before.current && there instanceof HTMLElement) there.focus({ preventScroll: true });
      before.current = null;
    }
  }, [asked]);
  if (!asked) return null;
  const close = (): void => void (ui.question.value = null);
  const answer = async (text: string): Promise<void> => {
    setBusy(true);
    try {
      const open = (await asked.then(text)) === false && asked.content;
      if (ui.question.peek() === asked && !open) close();
    } catch (error) {
      if (ui.question.peek() !== asked) ui.report(error);
      setWrong(error instanceof ApiError ? `${sentence(error.message)} ${sentence(error.remedy)}` : String(error));
      field.current?.focus();
    }
    setBusy(false);
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    if (asked.content) {
      void answer("");
      return;
    }
    if (!asked.field) {
      close();
      asked.then("");
      return;
    }
    const text = field.current?.value.trim() ?? "";
    const problem = asked.field.free ? (text ? "" : TEXTS.textMissing) : badName(text);
    setWrong(problem);
    if (problem) field.current?.focus();
    else void answer(text);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a click beside the dialog closes it; Escape does too
    <div class={css("scrim")} role="presentation" onClick={(event) => event.target === event.currentTarget && close()}>
      <dialog key={asked.title} open class={css("dialog")} aria-labelledby="dialog-title">
        <form ref={form} onSubmit={submit} noValidate>
          <h2 id="dialog-title">{asked.title}</h2>
          {asked.message && <p>{asked.message}</p>}
          {asked.field && (
            <label class="field">
              <span>{asked.field.label}</span>
              <input
                ref={field}
                type="text"
                defaultValue={asked.field.value}
                autoComplete="off"
                maxLength={asked.field.free ? 120 : undefined}
                aria-invalid={wrong !== ""}
                aria-describedby="dialog-wrong"
                onInput={() => setWrong("")}
              />
              <span id="dialog-wrong" class="wrong" role="alert">
                {wrong}
              </span>
            </label>
          )}
          {asked.content && <asked.content />}
          <div class="row end">
            <button ref={cancel} type="button" class="button" onClick={close}>
              {TEXTS.cancel}
            </button>
            <button type="submit" disabled={busy} class={asked.danger ? "button danger" : "button primary"}>
              {asked.confirm}
            </button>
          </div>
        </form>
      </dialog>
    </div>
  );
}

/**
 * The newest notice with its group; after it the error before it. Over the 3D view,
 * and nothing one works with.
 */
export function Notices() {
  const last = ui.notices.value.at(-1);
  const shown = last?.group
    ? ui.notices.value.filter(({ group }) => group === last.group).reverse()
    : last
      ? [last]
      : [];
  return (
    <div class={css("notices")} data-testid="notices" role="status" aria-live="polite">
      {shown.map(({ id, tone, message, remedy }) => (
        <div key={id} class={css(`notice ${tone}`)} data-testid="notice" data-tone={tone}>
          <Icon name={tone === "bad" ? "warn" : tone === "good" ? "check" : "info"} />
          <div>
            <p class={css("notice-words")}>{message}</p>
            {remedy && <p class={css("notice-remedy")}>{remedy}</p>}
          </div>
          <button type="button" class="icon-button small" aria-label={TEXTS.close} onClick={() => ui.dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
