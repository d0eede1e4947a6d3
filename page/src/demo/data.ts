/** The samples of the demo, as scripts/demo_site.py writes them from the package: the server's own answers. */

import type { EditCheck, EditCurves, EditFacts, FormatFacts, KnownRobots, RobotModel, Take } from "../types";
import type { DemoTrack } from "./edits";

/** One sample motion: its entry in the library, its samples, its check, and what the editor shows of its robot. */
export interface Sample {
  entry: Take;
  track: DemoTrack;
  check: EditCheck;
  robot: Pick<EditCurves, "build" | "family" | "title" | "limbs">;
}

export interface DemoData {
  version: string;
  model: RobotModel;
  robots: KnownRobots;
  edits: EditFacts[];
  formats: FormatFacts[];
  samples: Sample[];
}

/** Read the samples, from a file beside the page. */
export async function loadData(): Promise<DemoData> {
  const response = await fetch("./demo.json");
  if (!response.ok) throw new Error(`demo.json: ${response.status}`);
  return (await response.json()) as DemoData;
}
