"""Claim: the command line answers at once, and importing rote costs next to nothing.

The wall time of whole processes, with the bare interpreter beside them.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks.size import size
from benchmarks.table import Row, take_turns, wall_s

ROUNDS = size(15, 1)
HEAVY = ("numpy", "typer", "rich", "matplotlib")
PYTHON = sys.executable
ROTE = str(Path(PYTHON).with_name("rote"))


def start(*command: str) -> float:
    """Return how many milliseconds a command takes from start to end."""
    return 1000 * wall_s(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def heavy_imports() -> int:
    """Return how many of the heavy modules `import rote` imports."""
    code = f"import rote, sys; print(sum(name in sys.modules for name in {HEAVY}))"
    done = subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout)


def run() -> list[Row]:
    ms = take_turns(
        ROUNDS,
        {
            "help": lambda: start(ROTE, "--help"),
            "import": lambda: start(PYTHON, "-c", "import rote"),
            "bare": lambda: start(PYTHON, "-c", "pass"),
        },
    )
    none_of = f"start-up: of {', '.join(HEAVY)}, imported"
    return [
        Row("start-up: rote --help", "ms", ms["help"], 300, "limit", at_most=1),
        Row("start-up: python -c 'import rote'", "ms", ms["import"], 150, "limit", at_most=1),
        Row("start-up: python -c 'import rote'", "ms", ms["import"], ms["bare"], "-c pass"),
        Row(none_of, "of 4", heavy_imports(), 0, "limit", at_most=1),
    ]
