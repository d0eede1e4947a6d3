/** How early each robot's own actions and sounds are requested: measured in a rehearsal, or set by hand. */

import { clipsOf, cuesOf, sectionsOf } from "../../show-document";
import { robot as own } from "../../state/robot";
import { showEditor } from "../../state/show-editor";
import { stage } from "../../state/stage";
import { TEXTS } from "../../texts";
import type { StageRobot } from "../../types";

const T = TEXTS.show.offsets;
const MAX_OFFSET_S = 15;
/** The server's name of the offset of all sounds of a robot. */
const SOUNDS = "sounds";

/** Return what the robot has an offset for, and what of the show needs one. */
function namesOf(robot: StageRobot): string[] {
  const role = Object.entries(showEditor.cast.value).find(([, name]) => name === robot.name)?.[0];
  const sections = showEditor.draft.value ? sectionsOf(showEditor.draft.value) : [];
  const actions = sections.flatMap((each) =>
    clipsOf(each).flatMap((clip) => (clip.role === role && clip.action ? [clip.action] : [])),
  );
  const sounds = sections.some((each) => cuesOf(each).some((cue) => role && cue.role === role && cue.sound));
  return [...new Set([...Object.keys(robot.offsets), ...actions, ...(sounds ? [SOUNDS] : [])])];
}

function OffsetField({ robot, name }: { robot: StageRobot; name: string }) {
  const offset = robot.offsets[name];
  return (
    <label class="field">
      <span>
        {robot.name}: {name === SOUNDS ? T.sounds : name}
      </span>
      <input
        type="number"
        min={0}
        max={MAX_OFFSET_S}
        step={0.05}
        placeholder={T.unknown}
        value={offset?.seconds ?? ""}
        disabled={!own.mayCommand.value || stage.running.value}
        data-testid="offset"
        onChange={(event) => {
          const text = event.currentTarget.value;
          const seconds = text === "" ? null : Math.min(MAX_OFFSET_S, Math.max(0, Number(text)));
          void stage.setOffset({ robot: robot.name, name, seconds });
        }}
      />
      <small class="muted">{offset ? (offset.is_set ? T.byHand : T.measured) : T.notYet}</small>
    </label>
  );
}

export function OffsetsCard() {
  const robots = stage.current.value?.robots ?? [];
  const rows = robots.flatMap((robot) => namesOf(robot).map((name) => ({ robot, name })));
  if (rows.length === 0) return null;
  return (
    <section class="card" aria-labelledby="offsets-title" data-testid="offsets">
      <h2 id="offsets-title">{T.title}</h2>
      <p class="muted small">{T.words}</p>
      <div class="fields">
        {rows.map(({ robot, name }) => (
          <OffsetField key={`${robot.name} ${name}`} robot={robot} name={name} />
        ))}
      </div>
    </section>
  );
}
