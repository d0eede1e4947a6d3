import "./styles.css";
import { render } from "preact";
import { App } from "./app";
import { language } from "./languages";
import { open } from "./live";
import { watchViewport } from "./visual-viewport";
import { watchScreen } from "./wake";

// The 3D part is large; ask for it at once, while the rest comes up.
void import("./scene/viewport3d");
document.documentElement.lang = language;
watchViewport();
watchScreen();
open();
render(<App />, document.getElementById("app") as HTMLElement);
