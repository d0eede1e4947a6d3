/** What a key means for the robot, wherever the focus is. */

export interface Focus {
  /** In a field that takes text: a space is a letter there. */
  typing: boolean;
  /** On a button, a link or a slider, which a space would press. */
  onControl: boolean;
  /** Whether the robot moves, or may. */
  moving: boolean;
}

/**
 * Escape stops from everywhere. Space stops too, unless it is typed into a text; on a focused
 * button it presses the button while the robot is at rest, and stops the robot while it moves.
 */
export function stops(key: string, focus: Focus): boolean {
  if (key === "Escape") return true;
  if (key !== " ") return false;
  if (focus.typing) return false;
  return focus.moving || !focus.onControl;
}

const NO_TEXT = ["button", "checkbox", "radio", "range", "submit", "file", "color", "reset"];

/** Read the focus off the element that has it. */
export function focusOf(element: Element | null, moving: boolean): Focus {
  const tag = element?.tagName ?? "";
  const type = element?.getAttribute("type") ?? "text";
  const typing =
    tag === "TEXTAREA" ||
    (tag === "INPUT" && !NO_TEXT.includes(type)) ||
    element?.getAttribute("contenteditable") === "true";
  const onControl =
    ["BUTTON", "A", "SELECT", "SUMMARY", "INPUT"].includes(tag) || element?.hasAttribute("tabindex") === true;
  return { typing, onControl: onControl && !typing, moving };
}
