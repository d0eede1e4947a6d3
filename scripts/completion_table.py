"""Write src/rote/shell_completion.json: all commands and options, for the shells' completion."""

import json
from pathlib import Path

from rote.cli import commands
from rote.cli.completion import table

FILE = Path(__file__).parents[1] / "src" / "rote" / "shell_completion.json"


def text() -> str:
    """Return what the file must hold."""
    return json.dumps(table(commands()), indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
