/** The section that is shown: its name, trigger and rounds. */

import { Icon } from "../../parts/icons";
import type { Section } from "../../show-document";
import { showEditor } from "../../state/show-editor";
import { TEXTS } from "../../texts";
import { NumberField } from "./fields";

const T = TEXTS.show;

const TRIGGERS = ["go", "after", "at", "osc", "heard"] as const;

const NEEDS = { at: "time", osc: "address", heard: "word" } as const;

const FIRST = { at: "20:00:00", osc: "/scene/2", heard: "hello" } as const;

export function SectionCard() {
  const here = showEditor.section.value;
  if (!here) return null;
  const trigger = here.start ?? { on: "go" as const };
  const need = trigger.on in NEEDS ? NEEDS[trigger.on as keyof typeof NEEDS] : null;
  const index = showEditor.sections.value.indexOf(here);
  const set = (by: Partial<Section>): void => showEditor.changeSection((each) => ({ ...each, ...by }));
  const begin = (on: (typeof TRIGGERS)[number]): void => {
    if (on === "after") set({ start: { on, seconds: 1 } });
    else if (on === "go") set({ start: { on } });
    else set({ start: { on, [NEEDS[on]]: FIRST[on] } });
  };
  return (
    <section class="card" aria-labelledby="section-title" data-testid="section">
      <div class="row spread wrap">
        <h2 id="section-title">{T.section}</h2>
        <div class="row">
          <button
            type="button"
            class="icon-button"
            aria-label={T.earlier}
            title={T.earlier}
            disabled={index <= 0}
            onClick={() => showEditor.moveSection(-1)}
          >
            <Icon name="up" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label={T.later}
            title={T.later}
            disabled={index >= showEditor.sections.value.length - 1}
            onClick={() => showEditor.moveSection(1)}
          >
            <Icon name="down" />
          </button>
          <button
            type="button"
            class="icon-button"
            aria-label={T.removeSection}
            title={T.removeSection}
            disabled={showEditor.sections.value.length < 2}
            onClick={showEditor.removeSection}
          >
            <Icon name="trash" />
          </button>
        </div>
      </div>
      <div class="fields">
        <label class="field wide">
          <span>{T.name}</span>
          <input
            type="text"
            maxLength={100}
            value={here.name}
            onChange={(event) => {
              const name = event.currentTarget.value.trim();
              const taken = showEditor.sections.peek().some((each) => each !== here && each.name === name);
              if (name && !taken) set({ name });
              else event.currentTarget.value = here.name;
            }}
          />
        </label>
        <label class="field">
          <span>{T.begins}</span>
          <select
            value={trigger.on}
            data-testid="trigger"
            onChange={(event) => begin(event.currentTarget.value as (typeof TRIGGERS)[number])}
          >
            {TRIGGERS.map((on) => (
              <option key={on} value={on}>
                {T.triggers[on]}
              </option>
            ))}
          </select>
        </label>
        {trigger.on === "after" && (
          <NumberField
            label={T.seconds}
            value={trigger.seconds ?? 0}
            high={3600}
            step={0.5}
            onSet={(value) => set({ start: { on: "after", seconds: value ?? 0 } })}
          />
        )}
        {need && (
          <label class="field">
            <span>{T.needs[need]}</span>
            <input
              type="text"
              value={trigger[need] ?? ""}
              onChange={(event) => {
                const words = event.currentTarget.value.trim();
                if (words) set({ start: { on: trigger.on, [need]: words } });
              }}
            />
          </label>
        )}
        <NumberField
          label={T.loop}
          value={here.loop ?? 1}
          low={1}
          high={1000}
          step={1}
          onSet={(value) => set({ loop: Math.round(value ?? 1) })}
        />
        <label class="field">
          <span>{T.onLoss}</span>
          <select
            value={here.on_loss ?? "stop-all"}
            onChange={(event) => set({ on_loss: event.currentTarget.value as "stop-all" | "go-on" })}
          >
            <option value="stop-all">{T.losses.stop}</option>
            <option value="go-on">{T.losses.goOn}</option>
          </select>
        </label>
        <label class="inline check wide">
          <input
            type="checkbox"
            checked={here.hold ?? false}
            onChange={(event) => set({ hold: event.currentTarget.checked || null })}
            data-testid="hold"
          />
          <span>{T.hold}</span>
        </label>
      </div>
    </section>
  );
}
