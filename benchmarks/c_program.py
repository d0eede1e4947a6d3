"""A small C program to compare with, compiled where there is a compiler."""

import shutil
import subprocess
from pathlib import Path

from benchmarks.peers import report_missing


def compiled(folder: Path, source: str) -> Path | None:
    """Return the program; None, with a note, without a compiler.

    Raises `RuntimeError` if it does not compile.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        report_missing("no C compiler: nothing is compared with C")
        return None
    text, program = folder / "peer.c", folder / "peer"
    text.write_text(source, encoding="utf-8")
    done = subprocess.run(
        [compiler, "-O2", "-o", program, text], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"the C program cannot be compiled: {done.stderr.strip()}")
    return program
