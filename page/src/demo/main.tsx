/** The page as a demo: no server and no robot. */

import "./install";
import { Icon } from "../parts/icons";
import { start } from "../start";
import { INSTALL, START } from "./install-line";
import { DEMO_TEXTS as T } from "./texts";

start(
  <div class="banner" data-testid="demo">
    <Icon name="info" />
    <p>
      <strong>{T.title}</strong> {T.install} <code>{INSTALL}</code>, {T.then} <code>{START}</code>.
    </p>
  </div>,
);
