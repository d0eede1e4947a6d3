import "./styles.css";
import { render } from "preact";
import { App } from "./app";
import { open } from "./live";

// The 3D part is large; ask for it at once, while the rest comes up.
void import("./scene/stage");
open();
render(<App />, document.getElementById("app") as HTMLElement);
