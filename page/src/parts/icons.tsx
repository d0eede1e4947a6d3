/** Small line drawings for buttons. They say nothing to a screen reader; their buttons do. */

const PATHS = {
  robot:
    "M9 3h6a3 3 0 0 1 3 3v3a3 3 0 0 1-3 3H9a3 3 0 0 1-3-3V6a3 3 0 0 1 3-3ZM9 7.500h.01M15 7.500h.01M5 21v-3a3 3 0 0 1 3-3h8a3 3 0 0 1 3 3v3",
  teach:
    "M8 12V5.500a1.500 1.500 0 0 1 3 0V11m0-1V4a1.500 1.500 0 0 1 3 0v7m0-5a1.500 1.500 0 0 1 3 0v8a7 7 0 0 1-7 7c-3 0-4.500-1.500-6-4l-2.200-3.600a1.500 1.500 0 0 1 2.500-1.600L8 14",
  library: "M4 5h16M4 12h16M4 19h10",
  edit: "M4 7h9m4 0h3M4 17h3m4 0h9M15 4.500v5M9 14.500v5",
  play: "M8 5.500v13l11-6.500-11-6.500Z",
  pause: "M8 5v14M16 5v14",
  loop: "M4 11V9a3 3 0 0 1 3-3h11m0 0-3-3m3 3-3 3M20 13v2a3 3 0 0 1-3 3H6m0 0 3 3m-3-3 3-3",
  undo: "M9 7 4 12l5 5M4 12h10a6 6 0 0 1 6 6",
  redo: "m15 7 5 5-5 5M20 12H10a6 6 0 0 0-6 6",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  gear: "M12 15.200a3.200 3.200 0 1 0 0-6.400 3.200 3.200 0 0 0 0 6.400ZM12 3v2.500M12 18.500V21M4.200 7.500l2.200 1.250M17.600 15.250l2.200 1.250M4.200 16.500l2.200-1.250M17.600 8.750l2.200-1.250",
  people:
    "M9 11a3.500 3.500 0 1 0 0-7 3.500 3.500 0 0 0 0 7ZM2.500 20v-1.500a5 5 0 0 1 5-5h3a5 5 0 0 1 5 5V20M16 4.400a3.500 3.500 0 0 1 0 6.400M18 13.800a5 5 0 0 1 3.500 4.700V20",
  home: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  close: "m6 6 12 12M18 6 6 18",
  check: "m5 12.500 4.500 4.500L19 7.500",
  warn: "M12 4 2.800 20h18.400L12 4ZM12 10v4.500M12 17.200h.01",
  info: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18ZM12 11v5M12 8h.01",
  upload: "M12 16V4m0 0L7 9m5-5 5 5M4 16v2a2 2 0 0 0 2 2h12a2 2 0 0 0 2-2v-2",
  battery: "M4 8h13a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V9a1 1 0 0 1 1-1ZM21 11v2",
  heat: "M12 14.500V5a2 2 0 1 0-4 0v9.500a4 4 0 1 0 4 0Z",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14ZM20 20l-4-4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
