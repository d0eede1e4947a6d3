"""Start Chromium with a lower priority than the simulated robots that it runs beside."""

import os
import shlex
import shutil
from pathlib import Path


def write_chromium_script(folder: Path) -> str:
    """Write a program that starts Chromium with a low priority, and return its path.

    Here Chromium draws by software, and as root it raises the priority of the processes that draw
    above all others (nice -8). Simulated robots, whose motors want a message every few
    milliseconds, were then silent for 0.4 s. Without the capability to do so, it keeps ours.
    """
    prefix: list[str] = []
    if shutil.which("nice"):
        prefix += ["nice", "-n", "5"]
    if os.geteuid() == 0 and shutil.which("setpriv"):
        prefix += ["setpriv", "--bounding-set=-sys_nice"]
    command = shlex.join([*prefix, shutil.which("chromium") or "chromium"])
    script = folder / "chromium"
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return str(script)
