/** What an agent wants to be played, and the button that a person holds to let it. */

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api";
import { now } from "../state/clock";
import { robot } from "../state/robot";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { Icon } from "./icons";

const T = TEXTS.proposal;
/** The server measures too: a little longer than it asks for. */
const MARGIN_MS = 150;

export function Proposal() {
  // The secret is kept in this page alone, until it is closed.
  const [secret, setSecret] = useState("");
  const [held, setHeld] = useState(false);
  const [, tick] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const shown = robot.status.value?.proposal ?? null;
  useEffect(() => {
    if (!shown) return undefined;
    const clock = setInterval(() => tick((count) => count + 1), 250);
    return () => {
      clearInterval(clock);
      clearTimeout(timer.current);
    };
  }, [shown?.ticket]);
  if (!shown) return null;
  const { ticket, digest, hold_s, state } = shown;
  const left = Math.max(0, Math.ceil(shown.left_s - (now() - robot.statusAt.value)));

  async function press(): Promise<void> {
    if (held) return;
    setHeld(true);
    if (!(await ui.attempt(() => api.agentPress(ticket, digest, secret)))) return setHeld(false);
    timer.current = setTimeout(
      async () => {
        setHeld(false);
        await ui.attempt(() => api.agentHold(ticket));
      },
      hold_s * 1000 + MARGIN_MS,
    );
  }

  function letGo(): void {
    if (!held) return;
    clearTimeout(timer.current);
    setHeld(false);
    if (state !== "approved") void ui.attempt(() => api.agentLetGo(ticket));
  }

  return (
    <div class="banner proposal" role="alert" data-testid="proposal" data-state={state}>
      <Icon name="warn" />
      <p>
        <strong>{T.title}</strong> {T.what(shown.take, shown.version, shown.speed)} {T.left(left)}{" "}
        <small class="muted">{T.digest(digest.slice(0, 12))}</small>
      </p>
      {state === "approved" ? (
        <span role="status">{T.approved}</span>
      ) : (
        <>
          <input
            type="text"
            aria-label={T.secret}
            placeholder={T.secret}
            value={secret}
            autocomplete="off"
            spellcheck={false}
            maxLength={20}
            onInput={(event) => setSecret(event.currentTarget.value)}
            data-testid="secret"
          />
          <button
            type="button"
            class={held ? "button primary held" : "button primary"}
            disabled={!robot.mayCommand.value || secret.trim() === ""}
            onPointerDown={() => void press()}
            onPointerUp={letGo}
            onPointerLeave={letGo}
            onPointerCancel={letGo}
            onContextMenu={(event) => event.preventDefault()}
            data-testid="approve"
          >
            {held ? T.holding : T.hold}
          </button>
          <button
            type="button"
            class="button"
            disabled={!robot.mayCommand.value}
            onClick={() => ui.attempt(() => api.agentRefuse(ticket))}
            data-testid="refuse"
          >
            {T.refuse}
          </button>
        </>
      )}
    </div>
  );
}
