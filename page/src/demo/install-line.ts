/** What a visitor needs for everything that the demo cannot do. */
export const INSTALL = "pip install 'rote-robot[web,mcap]'";

/** The same with what a show of several robots needs. */
export const INSTALL_STAGE = "pip install 'rote-robot[web,mcap,stage,sound]'";

/** The command that starts the page with its server. */
export const START = "rote web";
