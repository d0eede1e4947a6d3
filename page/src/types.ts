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
export type Curves = api.Curves;
export type Motion = api.TakeMotion;
export type Edited = api.Edited;
export type Step = api.Step;
export type EditFacts = api.EditFacts;
export type EditParameter = api.EditParameter;
export type FormatFacts = api.FormatFacts;
export type Taught = api.TaughtReport;
export type Stopped = api.StopReport;
export type Found = api.RobotFound;
export type Person = api.Person;
export type Links = api.Links;
export type Vector = [number, number, number];

export type Message =
  | { type: "hello"; client: string; number: number; name: string | null; role: Person["role"]; version: string }
  | { type: "people"; people: Person[] }
  | { type: "state"; time_s: number; joints_rad: number[]; mode: number; phase: string; soft: boolean }
  | ({ type: "status" } & Status)
  | ({ type: "stopped" } & Stopped)
  | { type: "notice"; message: string }
  | { type: "problem"; error: string; message: string; remedy: string };
