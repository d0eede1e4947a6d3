/** A part of the page that fails takes nothing else with it: STOP stays, and there is a way back. */

import { Component, type ComponentChildren } from "preact";
import { TEXTS } from "../texts";

interface State {
  failed: string;
}

function anew(): void {
  location.hash = "#/robot";
  location.reload();
}

export class Boundary extends Component<{ children: ComponentChildren; quiet?: boolean }, State> {
  override state: State = { failed: "" };

  static override getDerivedStateFromError(error: unknown): State {
    return { failed: String(error) };
  }

  override render() {
    if (!this.state.failed) return <>{this.props.children}</>;
    if (this.props.quiet) return null;
    return (
      <section class="card" role="alert" data-testid="failed">
        <h2>{TEXTS.failed.title}</h2>
        <p>{TEXTS.failed.words}</p>
        <p class="mono">{this.state.failed}</p>
        <button type="button" class="button primary" onClick={anew}>
          {TEXTS.failed.back}
        </button>
      </section>
    );
  }
}
