/** The tools of the editor, made from the server's table of edits: what is added there is here too. */

import { useState } from "preact/hooks";
import { made, typedValue, type Value, type Values } from "../edit-step";
import { degrees, hundredths, joint as jointName } from "../format";
import { rowAt } from "../interpolate";
import { editor } from "../state/editor";
import { library } from "../state/library";
import { TEXTS } from "../texts";
import type { EditFacts, EditParameter } from "../types";
import { bindStyles } from "../css";
import styles from "./tools.module.css";

const css = bindStyles(styles);
const T = TEXTS.edit;
/** These have buttons, handles or a tool of their own: on the time line, and in the list of marks. */
const TRIM = "trim";
const KEYFRAME = "keyframe";
const THROUGH = "through";
const OWN = [TRIM, KEYFRAME, THROUGH, "mark", "change_mark", "remove_mark"];
/** This edit changes the speed by limits: its result is shown before it is applied. */
const RETIME = "retime";

function first(edit: EditFacts): Values {
  return Object.fromEntries(edit.parameters.map((each) => [each.name, begin(each)]));
}

function begin({ kind, slider, default: usual }: EditParameter): Value {
  if (kind === "flag") return Boolean(usual);
  if (kind === "joints") return null;
  if (kind === "build" || kind === "text" || kind === "choice" || kind === "numbers" || kind === "rows") return "";
  return (usual as number | null) ?? (slider ? Math.min(Math.max(1, slider[0]), slider[1]) : null);
}

function Number_({
  parameter,
  value,
  onChange,
}: {
  parameter: EditParameter;
  value: number | null;
  onChange: (value: Value) => void;
}) {
  const { title, help, unit, slider, low, high } = parameter;
  if (slider) {
    const [from, to, by] = slider;
    return (
      <label class={css("tool-number")}>
        <span class={css("tool-label")}>{title}</span>
        <input
          type="range"
          min={from}
          max={to}
          step={by}
          value={value ?? from}
          title={help}
          aria-label={`${title}: ${help}`}
          onInput={(event) => onChange(Number(event.currentTarget.value))}
        />
        <output>
          {value} {unit}
        </output>
      </label>
    );
  }
  return (
    <label class="inline" title={help}>
      <span>{title}</span>
      <input
        type="number"
        min={low ?? undefined}
        max={high ?? undefined}
        step="any"
        value={value ?? ""}
        placeholder={T.usual}
        onInput={(event) => onChange(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}
      />{" "}
      {unit}
    </label>
  );
}

function Input({
  parameter,
  value,
  onChange,
}: {
  parameter: EditParameter;
  value: Value;
  onChange: (value: Value) => void;
}) {
  const { kind, title, help } = parameter;
  if (kind === "flag") {
    return (
      <label class="check" title={help}>
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />{" "}
        <span>{title}</span>
      </label>
    );
  }
  if (kind === "text") {
    return (
      <label class="inline" title={help}>
        <span>{title}</span>
        <input type="text" value={String(value)} onInput={(event) => onChange(event.currentTarget.value)} />
      </label>
    );
  }
  if (kind === "numbers" || kind === "rows") {
    return (
      <label class="inline" title={help}>
        <span>{title}</span>
        <input
          type="text"
          inputMode="text"
          value={String(value ?? "")}
          placeholder={kind === "rows" ? `${parameter.form}; …` : parameter.form}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      </label>
    );
  }
  if (kind === "choice") {
    return (
      <label class="inline" title={help}>
        <span>{title}</span>
        <select value={String(value)} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">{T.pick}</option>
          {parameter.choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      </label>
    );
  }
  if (kind === "joints") return <p class="muted small">{T.joints.of(editor.picked.value.map(editor.limbName))}</p>;
  if (kind === "build") {
    return (
      <label class="inline" title={help}>
        <span>{title}</span>
        <select value={String(value)} onChange={(event) => onChange(event.currentTarget.value)}>
          <option value="">{T.pick}</option>
          {editor.builds.value.map(({ build, title: words }) => (
            <option key={build} value={build}>
              {words}
            </option>
          ))}
        </select>
      </label>
    );
  }
  return <Number_ parameter={parameter} value={value as number | null} onChange={onChange} />;
}

/** One edit with its parameters, and a button that does it. */
function Tool({ edit, others }: { edit: EditFacts; others: readonly string[] }) {
  const [values, setValues] = useState<Values>(() => first(edit));
  const set = (name: string) => (value: Value) => setValues((before) => ({ ...before, [name]: value }));
  const all: Values = { ...values };
  for (const { name, kind } of edit.parameters)
    if (kind === "joints") all[name] = editor.picked.value.length ? [...editor.picked.value] : null;
  const missing =
    (edit.takes !== 0 && others.length === 0) ||
    edit.parameters.some((each) => {
      const value = typedValue(each, all[each.name] ?? null);
      return each.required && (value === "" || value === null);
    });
  // What is rarely wanted is folded away: numbers that may be left open.
  const shown = edit.parameters.filter((each) => each.kind !== "number" || each.slider || each.required);
  const rare = edit.parameters.filter((each) => !shown.includes(each));
  return (
    <div class={css("edit-tool")} data-edit={edit.name}>
      {shown.map((each) => (
        <Input key={each.name} parameter={each} value={values[each.name] ?? null} onChange={set(each.name)} />
      ))}
      {rare.length > 0 && (
        <details class="more">
          <summary>{T.more}</summary>
          {rare.map((each) => (
            <Input key={each.name} parameter={each} value={values[each.name] ?? null} onChange={set(each.name)} />
          ))}
        </details>
      )}
      <button
        type="button"
        class="button"
        title={edit.summary}
        disabled={editor.working.value || missing}
        onClick={() => {
          const wanted = made(edit, all, others);
          if (edit.name === RETIME) void editor.proposeStep(wanted, edit.title);
          else editor.step(wanted);
        }}
      >
        {edit.title}
      </button>
    </div>
  );
}

function Trim() {
  const { from, to } = editor.selection.value;
  const whole = from <= 0.001 && to >= (editor.edited.value?.duration_s ?? 0) - 0.001;
  return (
    <>
      <button
        type="button"
        class={whole ? "button" : "button primary"}
        disabled={editor.working.value || whole}
        title={T.hints.trim}
        data-testid="trim"
        data-edit="trim"
        onClick={() => editor.step({ op: "trim", start_s: from, end_s: to })}
      >
        {T.trim}
      </button>
      <button
        type="button"
        class="button"
        disabled={editor.working.value}
        title={T.hints.trimIdle}
        onClick={() => editor.step({ op: "trim", auto: true })}
      >
        {T.trimIdle}
      </button>
    </>
  );
}

/** The edits that need another take, or several. */
function Join() {
  const others = library.takes.value.filter((take) => !take.problem);
  const [chosen, setChosen] = useState<string[]>([]);
  const usable = chosen.filter((name) => others.some((take) => take.name === name));
  const joined = usable.length ? usable : others.slice(0, 1).map(({ name }) => name);
  const tools = editor.edits.value.filter(({ takes: wanted }) => wanted !== 0);
  return (
    <div class={css("join")}>
      <label class="field">
        <span>{T.join}</span>
        <select
          multiple
          size={Math.min(4, others.length)}
          aria-label={T.join}
          data-testid="others"
          onChange={(event) => setChosen([...event.currentTarget.selectedOptions].map(({ value }) => value))}
        >
          {others.map((take) => (
            <option key={take.name} value={take.name} selected={joined.includes(take.name)}>
              {take.name}
            </option>
          ))}
        </select>
        <small class="muted">{T.joinHint}</small>
      </label>
      {tools.map((edit) => (
        <Tool key={edit.name} edit={edit} others={joined} />
      ))}
    </div>
  );
}

/** Which joints the edits change that can be of some: whole limbs, or single ones. */
function Joints() {
  const take = editor.edited.value;
  if (!take) return null;
  const limbs = Object.keys(take.limbs);
  const chosen = editor.picked.value;
  const toggle = (name: string): void => {
    editor.picked.value = chosen.includes(name) ? chosen.filter((each) => each !== name) : [...chosen, name];
  };
  const chip = (name: string, label: string) => (
    <button
      type="button"
      key={name}
      class="toggle"
      aria-pressed={chosen.includes(name)}
      data-joint={name}
      onClick={() => toggle(name)}
    >
      {label}
    </button>
  );
  return (
    // biome-ignore lint/a11y/useSemanticElements: a legend would stand on the line above it
    <div class={css("pick-joints")} role="group" aria-labelledby="joints-title" data-testid="joints">
      <span class={css("tool-label")} id="joints-title">
        {T.joints.title}
      </span>
      <p class="muted small">{T.joints.words}</p>
      <div class="row wrap">
        <button
          type="button"
          class="toggle"
          aria-pressed={chosen.length === 0}
          onClick={() => (editor.picked.value = [])}
          data-joint=""
        >
          {T.joints.all}
        </button>
        {limbs.map((name) => chip(name, editor.limbName(name)))}
      </div>
      <details class="more">
        <summary>{T.joints.single}</summary>
        <div class="row wrap">{take.names.map((name) => chip(name, jointName(name)))}</div>
      </details>
    </div>
  );
}

/** One joint's angle at the moment shown, by a slider; and how far the motion around it follows. */
function Pose({ edit, through }: { edit: EditFacts; through: EditFacts | undefined }) {
  const take = editor.edited.value;
  const [wanted, setWanted] = useState("");
  if (!take) return null;
  const joint = take.names.includes(wanted) ? wanted : (take.names[0] ?? "");
  const { lower_rad, upper_rad } = editor.limitsOf(joint);
  const row = rowAt(take.times_s, take.joints_rad, editor.playhead.value);
  const angle = editor.bending.value?.[joint] ?? row[take.names.indexOf(joint)] ?? 0;
  const lead = (value: number): void => {
    editor.stopPreview();
    editor.bending.value = { ...editor.bending.peek(), [joint]: value };
  };
  return (
    <div class={css("edit-tool")} data-edit={edit.name}>
      <p class="muted small">{T.pose.words(hundredths(editor.playhead.value))}</p>
      <label class="inline">
        <span>{T.pose.joint}</span>
        <select value={joint} onChange={(event) => setWanted(event.currentTarget.value)} data-testid="pose-joint">
          {take.names.map((name) => (
            <option key={name} value={name}>
              {jointName(name)}
            </option>
          ))}
        </select>
      </label>
      <label class={css("tool-number")}>
        <span class={css("tool-label")}>{T.pose.angle}</span>
        <input
          type="range"
          min={lower_rad}
          max={upper_rad}
          step={0.005}
          value={angle}
          disabled={editor.working.value}
          aria-label={`${T.pose.angle}: ${jointName(joint)}`}
          aria-valuetext={degrees(angle)}
          data-testid="pose-angle"
          onInput={(event) => lead(Number(event.currentTarget.value))}
        />
        <output>{degrees(angle)}</output>
      </label>
      {edit.parameters
        .filter(({ slider }) => slider)
        .map((each) => {
          const side = each.name === "before_s" ? "before" : "after";
          return (
            <Number_
              key={each.name}
              parameter={each}
              value={editor.widths.value[side]}
              onChange={(value) => (editor.widths.value = { ...editor.widths.peek(), [side]: value as number })}
            />
          );
        })}
      <div class="row end">
        {editor.bending.value && (
          <button type="button" class="button quiet" onClick={() => (editor.bending.value = null)}>
            {TEXTS.cancel}
          </button>
        )}
        {through && (
          <button
            type="button"
            class="button"
            title={through.summary}
            disabled={editor.working.value || !editor.bending.value}
            data-edit={through.name}
            onClick={() => editor.bending.value && editor.leadThrough(editor.bending.value)}
          >
            {through.title}
          </button>
        )}
        <button
          type="button"
          class={editor.bending.value ? "button primary" : "button"}
          title={edit.summary}
          disabled={editor.working.value || !editor.bending.value}
          data-testid="set-pose"
          onClick={() => editor.bending.value && editor.setPose(editor.bending.value)}
        >
          {edit.title}
        </button>
      </div>
    </div>
  );
}

export function Tools() {
  const alone = editor.edits.value.filter(({ name, takes: wanted }) => wanted === 0 && !OWN.includes(name));
  const plain = alone.filter(({ parameters }) => parameters.length === 0);
  const others = alone.filter(({ parameters }) => parameters.length > 0);
  const pose = editor.edits.value.find(({ name }) => name === KEYFRAME);
  return (
    <section class="card" aria-labelledby="tools-title" data-testid="tools">
      <h2 id="tools-title">{T.tools}</h2>
      <div class={css("row wrap tool-buttons")}>
        <Trim />
        {plain.map((edit) => (
          <button
            type="button"
            key={edit.name}
            class="button"
            data-edit={edit.name}
            disabled={editor.working.value}
            title={edit.summary}
            onClick={() => editor.step(made(edit, {}, []))}
          >
            {edit.title}
          </button>
        ))}
      </div>
      <Joints />
      {others.map((edit) => (
        <Tool key={edit.name} edit={edit} others={[]} />
      ))}
      {pose && <Pose edit={pose} through={editor.edits.value.find(({ name }) => name === THROUGH)} />}
      <Join />
    </section>
  );
}
