/** What only the demo shows, in German. */

import { INSTALL, INSTALL_STAGE, START } from "./install-line";
import type { DemoTexts } from "./texts";

export const GERMAN: DemoTexts = {
  title: "Demo im Browser: kein Roboter, nichts wird aufbewahrt.",
  install: "Um mit einem Roboter zu lehren, zu prüfen und zu spielen:",
  then: "dann",
  needsRote: "Das braucht rote auf dem eigenen Computer",
  toolNeedsRote: "Braucht rote auf dem eigenen Computer.",
  remedy: `Installieren: ${INSTALL}, dann: ${START}`,
  drawn: "Diesen Roboter zeichnet nur der Browser; nichts Echtes bewegt sich",
  unchecked: "Diese Bewegung ist nicht geprüft: Die Prüfung braucht rote auf dem eigenen Computer",
  stopped: "Gestoppt: Die gezeichneten Arme bleiben, wo sie sind.",
  nothing: "Nichts hat sich bewegt.",
  busy: (name: string) => `Der Roboter ist beschäftigt: Er spielt „${name}“`,
  noTake: (name: string) => `Es gibt keine Aufnahme „${name}“`,
  taken: (name: string) => `Die Aufnahme „${name}“ gibt es schon`,
  takenRemedy: "Einen anderen Namen wählen oder als neue Version speichern",
  page: {
    connection: { connected: "Demo-Roboter" },
    teach: { noWire: `Lehren braucht rote auf dem eigenen Computer. Installieren: ${INSTALL}, dann: ${START}` },
    edit: { play: "Abspielen" },
    stop: { noteLong: "Mit einem Roboter ist das ein Software-Stopp, kein Not-Halt: Fernbedienung in Reichweite." },
    library: {
      ownTakes: "Dieser Roboter speichert keine Bewegungen: Er spielt die dieser Seite.",
      laptop: "In dieser Seite",
      formats: "Dateien hinzufügen braucht rote auf dem eigenen Computer",
      deleteTake: "Sie kommt in den Papierkorb dieser Seite.",
      playTip: {
        arms: "Hier bewegt sich nichts Echtes. Ein Roboter muss gesteuert stehen und Platz haben, die Fernbedienung in der Hand.",
      },
    },
    show: {
      noStage: "Hier gibt es keine Bühne. Eine Show lässt sich anordnen; kein Roboter bewegt sich.",
      howStage: `Prüfen, Vorschau, Speichern und Aufführen brauchen rote auf dem eigenen Computer: ${INSTALL_STAGE}`,
    },
  },
};
