"""A small C program to compare with, compiled where there is a compiler."""

import shutil
import subprocess
import sys
from pathlib import Path


def compiled(folder: Path, source: str) -> Path | None:
    """Return the program; None, with the reason said, where it cannot be made."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler: nothing is compared with C", file=sys.stderr)
        return None
    text, program = folder / "peer.c", folder / "peer"
    text.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [compiler, "-O2", "-o", program, text], capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(f"the C program cannot be compiled: {done.stderr.strip()}", file=sys.stderr)
        return None
    return program
