/** The page's clock, in seconds; unlike the time of day it is never set back. */
export const now = (): number => performance.now() / 1000;
