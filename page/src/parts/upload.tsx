/** Adding files: each gets a name and the unit of its angles, and a name that exists is asked about. */

import { signal } from "@preact/signals";
import { ApiError, api } from "../api";
import { badName, sentence } from "../format";
import { library } from "../state/library";
import { ui } from "../state/ui";
import { TEXTS } from "../texts";
import { bindStyles } from "../css";
import styles from "./upload.module.css";

const css = bindStyles(styles);
const T = TEXTS.library.add;
const LARGEST = 32 * 1024 * 1024;
const GROUP = "upload";

interface Upload {
  file: File;
  name: string;
  unit: "rad" | "deg";
  /** Whether it becomes a new version of a take of the same name. */
  replace: boolean;
  state: "waiting" | "sending" | "done";
  wrong: string;
}

const uploads = signal<Upload[]>([]);

function change(place: number, to: Partial<Upload>): void {
  uploads.value = uploads.value.map((each, index) => (index === place ? { ...each, ...to } : each));
}

function isTaken(name: string): boolean {
  return library.takes.value.some((take) => take.name === name);
}

/** What speaks against adding one of the files as it is; empty where nothing does. */
function obstacle(upload: Upload, place: number): string {
  const name = upload.name.trim();
  if (upload.file.size > LARGEST) return `${TEXTS.errors.tooLarge} ${TEXTS.errors.tooLargeRemedy}`;
  const bad = badName(name);
  if (bad) return bad;
  const twice = uploads.value.some((each, index) => index < place && each.name.trim() === name);
  if (twice) return T.takenTwice;
  return isTaken(name) && !upload.replace ? T.taken : "";
}

async function send(place: number): Promise<void> {
  const { file, name, unit, replace } = uploads.value[place] as Upload;
  change(place, { state: "sending", wrong: "" });
  try {
    const entry = await api.upload(file, { name: name.trim(), unit, replace });
    change(place, { state: "done" });
    ui.notify(TEXTS.library.uploaded(entry.name), "good", "", GROUP);
  } catch (error) {
    const [message, remedy] = error instanceof ApiError ? [error.message, error.remedy] : [String(error), ""];
    change(place, { state: "waiting", wrong: `${sentence(message)} ${sentence(remedy)}`.trim() });
    ui.notify(`${file.name}: ${message}`, "bad", remedy, GROUP);
  }
}

/** Add all that can be added; returns whether nothing is left to ask. */
async function sendAll(): Promise<boolean> {
  for (const [place, upload] of uploads.value.entries()) {
    if (upload.state === "done") continue;
    const wrong = obstacle(upload, place);
    change(place, { wrong });
    if (!wrong) await send(place);
  }
  void library.load();
  const left = uploads.value.findIndex(({ state }) => state !== "done");
  if (left < 0) return true;
  document.getElementById(`upload-name-${left}`)?.focus();
  return false;
}

function Row({ upload, place }: { upload: Upload; place: number }) {
  const done = upload.state === "done";
  const taken = isTaken(upload.name.trim()) && !done;
  return (
    <fieldset
      class={css("upload")}
      data-testid="upload-row"
      data-state={upload.state}
      disabled={upload.state !== "waiting"}
    >
      <legend class="mono">{upload.file.name}</legend>
      {done ? (
        <p class="good-words">{T.done}</p>
      ) : (
        <div class="row wrap">
          <label class="field grow">
            <span>{T.name}</span>
            <input
              id={`upload-name-${place}`}
              data-first
              type="text"
              autoComplete="off"
              value={upload.name}
              aria-invalid={upload.wrong !== ""}
              aria-describedby={`upload-wrong-${place}`}
              onInput={(event) => change(place, { name: event.currentTarget.value, wrong: "", replace: false })}
            />
          </label>
          <label class="field">
            <span>{T.unit}</span>
            <select
              value={upload.unit}
              onChange={(event) => change(place, { unit: event.currentTarget.value as Upload["unit"], wrong: "" })}
            >
              <option value="rad">{T.units.rad}</option>
              <option value="deg">{T.units.deg}</option>
            </select>
          </label>
        </div>
      )}
      {taken && (
        <label class="inline">
          <input
            type="checkbox"
            checked={upload.replace}
            onChange={(event) => change(place, { replace: event.currentTarget.checked, wrong: "" })}
          />
          <span>{T.version}</span>
        </label>
      )}
      <span id={`upload-wrong-${place}`} class="wrong" role="alert">
        {upload.wrong || (taken && !upload.replace ? T.taken : "")}
      </span>
      {upload.state === "sending" && <p class="muted">{T.sending}</p>}
    </fieldset>
  );
}

function Rows() {
  return (
    <div class={css("uploads")}>
      {uploads.value.map((upload, place) => (
        <Row key={place} upload={upload} place={place} />
      ))}
    </div>
  );
}

/** Ask how files are to be added. */
export function askToAdd(files: Iterable<File>): void {
  uploads.value = [...files].map((file) => ({
    file,
    name: file.name.replace(/\.[^.]*$/, ""),
    unit: "rad",
    replace: false,
    state: "waiting",
    wrong: "",
  }));
  if (!uploads.value.length) return;
  ui.question.value = {
    title: T.title(uploads.value.length),
    message: "",
    confirm: T.confirm,
    content: Rows,
    then: sendAll,
  };
}
