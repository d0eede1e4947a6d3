/** Short names for what the server says and hears, which is generated, and the messages of its WebSocket. */

import type * as api from "./api-types";

export type Severity = api.FindingNow["severity"];
export type Finding = api.FindingNow;
export type Connection = api.Connection;
export type Activity = api.ActivityNow;
export type Status = api.PendantStatus;
export type Mount = api.Mount;
export type Joint = api.JointFacts;
export type Place = api.LinkPlace;
export type Stick = api.Stick;
export type Solid = api.Solid;
export type RobotModel = api.JointTree;
export type Limbs = api.JointTree["limbs"];
export type KnownRobots = api.KnownRobots;
export type Actions = api.ActionsNow;
export type Take = api.TakeEntry;
export type Takes = api.Takes;
export type Trashed = api.TrashedTake;
export type Stored = api.Stored;
export type Curves = api.Curves;
export type Motion = api.TakeMotion;
export type EditCurves = api.EditCurves;
export type EditCheck = api.EditCheck;
export type LearnedBand = api.LearnedBand;
/** How a learned motion is adapted. */
export type AdaptLearned = Omit<api.PreviewAdapted, "check">;
export type Adapted = api.Adapted;
export type JointKeyframe = api.JointKeyframe;
export type LimbEnd = api.LimbEnd;
export type Mark = api.MarkNow;
/** An edited take as it is shown: its check comes a little later. */
export type Edited = EditCurves & { findings: Finding[]; ok: boolean; checked: boolean };
export type Step = api.Step;
export type EditFacts = api.EditFacts;
export type EditParameter = api.EditParameter;
export type FormatFacts = api.FormatFacts;
export type Taught = api.TaughtReport;
export type Stopped = api.StopReport;
export type Found = api.RobotFound;
export type Person = api.Person;
export type Links = api.Links;
export type StageNow = api.StageNow;
export type StageRobot = api.StageRobot;
export type ShowShelf = api.ShowShelf;
export type SectionCurves = api.SectionCurves;
export type SoundPeaks = api.SoundPeaks;
export type EventNow = api.EventNow;
export type UnsavedTake = api.UnsavedTake;
export type Vector = [number, number, number];

export type Message =
  | { type: "beat"; time_s: number }
  | { type: "hello"; client: string; number: number; name: string | null; role: Person["role"]; version: string }
  | { type: "full"; role: Person["role"]; message: string; remedy: string }
  | { type: "people"; people: Person[] }
  | { type: "events"; events: EventNow[] }
  | { type: "event"; event: EventNow }
  | { type: "state"; time_s: number; joints_rad: number[]; mode: number; phase: string; soft: boolean }
  | ({ type: "status" } & Status)
  | ({ type: "stage" } & StageNow)
  | ({ type: "stopped" } & Stopped)
  | { type: "notice"; message: string; text: api.TextNow; event: number | null }
  | { type: "problem"; error: string; message: string; remedy: string };
