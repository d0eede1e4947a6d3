/** What only the demo shows, in the page's languages. */

import { language, type Translation } from "../languages";
import type { Catalogue } from "../texts";
import { INSTALL, INSTALL_STAGE, START } from "./install-line";
import { GERMAN } from "./texts-de";

const ENGLISH = {
  title: "Demo in your browser: no robot, nothing is kept.",
  install: "To teach, check and play on a robot:",
  then: "then",
  needsRote: "This needs rote on your computer",
  toolNeedsRote: "Needs rote on your computer.",
  remedy: `Install it: ${INSTALL}, then run: ${START}`,
  drawn: "This robot is only drawn by your browser; nothing real moves",
  unchecked: "This motion is not checked: the check needs rote on your computer",
  stopped: "Stopped: the drawn arms stay where they are.",
  nothing: "Nothing was moving.",
  busy: (name: string) => `The robot is busy: it plays “${name}”`,
  noTake: (name: string) => `There is no take “${name}”`,
  taken: (name: string) => `The take “${name}” already exists`,
  takenRemedy: "Choose another name, or save it as a new version",
  /** Texts of the page that are not true here. */
  page: {
    connection: { connected: "Demo robot" },
    teach: { noWire: `Teaching needs rote on your computer. Install it: ${INSTALL}, then run: ${START}` },
    edit: { play: "Play" },
    stop: { noteLong: "With a robot this is a software stop, not an emergency stop: keep the remote in reach." },
    library: {
      ownTakes: "This robot stores no motions: it plays those of this page.",
      laptop: "In this page",
      formats: "Adding files needs rote on your computer",
      deleteTake: "It moves to the trash of this page.",
      playTip: {
        arms: "Nothing real moves here. A robot must stand under control with enough space, and you hold the remote.",
      },
    },
    show: {
      noStage: "There is no stage here. You can arrange a show; no robot moves.",
      howStage: `To check, preview, save and run it, you need rote on your computer: ${INSTALL_STAGE}`,
    },
  } as Translation<Catalogue>,
};

export type DemoTexts = typeof ENGLISH;
export const DEMO_TEXTS: DemoTexts = language === "de" ? GERMAN : ENGLISH;
