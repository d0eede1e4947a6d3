"""Write the list of quirks into docs/simulator.md, from their table."""

from pathlib import Path

from generated_part import renew

from rote.sim.quirks import GROUPS, QUIRKS

PAGE = Path(__file__).parents[2] / "docs" / "simulator.md"
BEGIN, END = "<!-- quirks: begin -->\n", "<!-- quirks: end -->\n"


def listed() -> str:
    """Return the list as it stands in the page: a table for each group."""
    lines = []
    for group, title in GROUPS.items():
        lines += ["", f"### {title}", "", "| quirk | over | what it does |", "|---|---|---|"]
        lines += [
            f"| `{quirk.name}` | {', '.join(quirk.wires)} | {quirk.what} |"
            for quirk in QUIRKS.values()
            if quirk.group == group
        ]
    return "\n".join(lines[1:]) + "\n"


def main() -> None:
    """Renew the list."""
    renew(PAGE, BEGIN, END, listed())


if __name__ == "__main__":
    main()
