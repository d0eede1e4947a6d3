/** How the lamp of a robot on a stage is drawn; its word is always beside it. */

import type { StageRobot } from "./types";

type Lamp = StageRobot["lamp"];

const DOTS: Record<Lamp, "connected" | "connecting" | "lost"> = {
  ready: "connected",
  loading: "connecting",
  armed: "connecting",
  playing: "connected",
  paused: "connecting",
  muted: "connecting",
  STOPPED: "lost",
  FAULT: "lost",
  LOST: "lost",
};

export const dotOf = (lamp: Lamp): string => DOTS[lamp];
