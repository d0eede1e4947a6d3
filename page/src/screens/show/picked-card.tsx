/** The clip or cue that is selected. */

import {
  type Clip,
  type ShowCue,
  clipsOf,
  cueKind,
  cuesOf,
  hexOf,
  lightOf,
  oscArgsText,
  readOscArgs,
} from "../../show-document";
import { showEditor } from "../../state/show-editor";
import { TEXTS } from "../../texts";
import { NumberField, RoleField } from "./fields";

const T = TEXTS.show;

function ClipFields({ clip, index }: { clip: Clip; index: number }) {
  const set = (by: Partial<Clip>): void => showEditor.changeClip(index, by);
  return (
    <div class="fields">
      <RoleField value={clip.role} onSet={(role) => set({ role })} />
      <NumberField label={T.at} value={clip.at_s ?? 0} high={3600} onSet={(at_s) => set({ at_s: at_s ?? 0 })} />
      <NumberField
        label={T.speed}
        value={clip.speed ?? 1}
        low={0.1}
        high={4}
        onSet={(speed) => set({ speed: speed === 1 ? null : speed })}
      />
      {!clip.action && (
        <>
          <NumberField
            label={T.from}
            value={clip.from_s}
            empty="0"
            onSet={(from_s) => set({ from_s: from_s || null })}
          />
          <NumberField label={T.to} value={clip.to_s} empty={T.toEnd} onSet={(to_s) => set({ to_s })} />
          <NumberField
            label={T.loop}
            value={clip.loop ?? 1}
            low={1}
            high={1000}
            step={1}
            onSet={(loop) => set({ loop: loop && loop > 1 ? Math.round(loop) : null })}
          />
          <NumberField label={T.blend} value={clip.blend_s ?? 0.5} high={60} onSet={(blend_s) => set({ blend_s })} />
          <label class="inline check">
            <input
              type="checkbox"
              checked={clip.mirror ?? false}
              onChange={(event) => set({ mirror: event.currentTarget.checked || null })}
            />
            <span>{T.mirror}</span>
          </label>
        </>
      )}
    </div>
  );
}

function CueFields({ cue, index }: { cue: ShowCue; index: number }) {
  const set = (by: Partial<ShowCue>): void => showEditor.changeCue(index, by);
  const kind = cueKind(cue);
  const text = (field: "say" | "osc" | "to", label: string) => (
    <label class="field wide">
      <span>{label}</span>
      <input
        type="text"
        maxLength={500}
        value={cue[field] ?? ""}
        onChange={(event) => {
          const words = event.currentTarget.value.trim();
          if (words) set({ [field]: words });
        }}
      />
    </label>
  );
  return (
    <div class="fields">
      <NumberField label={T.at} value={cue.at_s ?? 0} high={3600} onSet={(at_s) => set({ at_s: at_s ?? 0 })} />
      {kind !== "osc" && (
        <RoleField
          value={cue.role ?? ""}
          {...(kind === "sound" ? { none: T.laptop } : {})}
          onSet={(role) => set({ role: role || null })}
        />
      )}
      {kind === "sound" && (
        <label class="field wide">
          <span>{T.cueKinds.sound}</span>
          <select value={cue.sound ?? ""} onChange={(event) => set({ sound: event.currentTarget.value })}>
            {[...new Set([cue.sound ?? "", ...(showEditor.shelf.value?.sounds ?? []).map(({ name }) => name)])].map(
              (name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ),
            )}
          </select>
        </label>
      )}
      {kind === "say" && (
        <>
          {text("say", T.words)}
          <label class="field">
            <span>{T.language}</span>
            <select
              value={cue.language ?? "en"}
              onChange={(event) => set({ language: event.currentTarget.value as "en" | "zh" })}
            >
              <option value="en">{T.languages.en}</option>
              <option value="zh">{T.languages.zh}</option>
            </select>
          </label>
        </>
      )}
      {kind === "light" && (
        <label class="field">
          <span>{T.colour}</span>
          <input
            type="color"
            value={hexOf(cue.light ?? [0, 0, 0])}
            onChange={(event) => set({ light: lightOf(event.currentTarget.value) })}
          />
        </label>
      )}
      {kind === "osc" && (
        <>
          {text("osc", T.address)}
          {text("to", T.receiver)}
          <label class="field wide">
            <span>{T.args}</span>
            <input
              type="text"
              value={oscArgsText(cue.args ?? [])}
              onChange={(event) => {
                const args = readOscArgs(event.currentTarget.value);
                set({ args: args.length ? args : null });
              }}
            />
          </label>
        </>
      )}
    </div>
  );
}

export function PickedCard() {
  const what = showEditor.picked.value;
  const here = showEditor.section.value;
  if (!what || !here) return null;
  const clip = what.kind === "clip" ? clipsOf(here)[what.index] : undefined;
  const cue = what.kind === "cue" ? cuesOf(here)[what.index] : undefined;
  if (!clip && !cue) return null;
  const title = clip ? (clip.take ?? clip.action ?? "") : T.cueKinds[cueKind(cue as ShowCue)];
  return (
    <section class="card" aria-labelledby="picked-title" data-testid="picked">
      <div class="row spread wrap">
        <h2 id="picked-title">{title}</h2>
        <div class="row">
          {clip?.take && (
            <a class="button quiet" href={`#/edit/${encodeURIComponent(clip.take)}`}>
              {T.editTake}
            </a>
          )}
          <button type="button" class="button" onClick={showEditor.removePicked} data-testid="remove-picked">
            {T.remove}
          </button>
        </div>
      </div>
      {clip ? <ClipFields clip={clip} index={what.index} /> : <CueFields cue={cue as ShowCue} index={what.index} />}
    </section>
  );
}
