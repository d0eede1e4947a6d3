/** Questions, and small messages that come and go. */

import { useEffect, useRef } from "preact/hooks";
import { dismiss, notices, question } from "../store";
import { TEXTS } from "../texts";
import { Icon } from "./icons";

/**
 * A question over the page. It is not modal to the browser, which would put STOP out of reach:
 * the page behind it is inert, the bar with STOP is not.
 */
export function Dialog() {
  const asked = question.value;
  const field = useRef<HTMLInputElement>(null);
  const cancel = useRef<HTMLButtonElement>(null);
  const before = useRef<Element | null>(null);
  if (asked) before.current ??= document.activeElement;
  useEffect(() => {
    if (asked) {
      (field.current ?? cancel.current)?.focus();
      field.current?.select();
    } else {
      if (before.current instanceof HTMLElement) before.current.focus();
      before.current = null;
    }
  }, [asked]);
  if (!asked) return null;
  const close = (): void => void (question.value = null);
  const submit = (event: Event): void => {
    event.preventDefault();
    const text = field.current?.value.trim() ?? "";
    if (asked.field && !text) return;
    close();
    asked.then(text);
  };
  return (
    <div class="scrim" onClick={(event) => event.target === event.currentTarget && close()}>
      <dialog open class="dialog" aria-labelledby="dialog-title">
        <form onSubmit={submit}>
          <h2 id="dialog-title">{asked.title}</h2>
          {asked.words && <p>{asked.words}</p>}
          {asked.field && (
            <label class="field">
              <span>{asked.field.label}</span>
              <input ref={field} type="text" value={asked.field.value} maxLength={31} autoComplete="off" />
            </label>
          )}
          <div class="row end">
            <button ref={cancel} type="button" class="button" onClick={close}>{TEXTS.cancel}</button>
            <button type="submit" class={asked.danger ? "button danger" : "button primary"}>{asked.confirm}</button>
          </div>
        </form>
      </dialog>
    </div>
  );
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ id, tone, words, remedy }) => (
        <div key={id} class={`notice ${tone}`} data-testid="notice">
          <Icon name={tone === "bad" ? "warn" : tone === "good" ? "check" : "info"} />
          <div>
            <p class="notice-words">{words}</p>
            {remedy && <p class="notice-remedy">{remedy}</p>}
          </div>
          <button class="icon-button small" aria-label={TEXTS.close} onClick={() => dismiss(id)}>
            <Icon name="close" />
          </button>
        </div>
      ))}
    </div>
  );
}
