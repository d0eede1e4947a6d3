/** Replaces the server, and texts that name it, before any other module of the page is loaded. */

import "./keep-nothing";
import { host } from "../host";
import { loadData } from "./data";
import { demoHost } from "./server";
import { DEMO_TEXTS } from "./texts";

Object.assign(host, demoHost(loadData()), { texts: DEMO_TEXTS.page });
