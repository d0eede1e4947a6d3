/** Class names of CSS modules. */

/**
 * Return a function that replaces the class names of a module in a list of names; names that the module does not
 * define, such as `muted` of the global sheet, stay as they are.
 */
export function bindStyles(styles: Readonly<Record<string, string>>): (names: string) => string {
  return (names) =>
    names
      .split(" ")
      .map((name) => styles[name] ?? name)
      .join(" ");
}
