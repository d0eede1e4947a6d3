"""Start Chromium with a lower priority than the simulated robots that it runs beside."""

import os
import shlex
import shutil
from pathlib import Path

_LOWER_SESSION = """{
  read -r _ _ _ _ _ session _ < /proc/$$/stat
  [ "$session" = "$$" ] && echo 5 > /proc/$$/autogroup
} 2> /dev/null"""


def write_chromium_script(folder: Path) -> str:
    """Write a program that starts Chromium with a low priority, and return its path.

    Here Chromium draws by software, and as root it raises the priority of the processes that draw
    above all others (nice -8). Simulated robots, whose motors want a message every few
    milliseconds, were then silent for 0.4 s. Without the capability to do so, it keeps ours.

    Playwright starts it in a session of its own, to which Linux gives as much processor time as to
    all other tests together, unless the session has a niceness of its own.
    """
    prefix: list[str] = []
    if shutil.which("nice"):
        prefix += ["nice", "-n", "5"]
    if os.geteuid() == 0 and shutil.which("setpriv"):
        prefix += ["setpriv", "--bounding-set=-sys_nice"]
    command = shlex.join([*prefix, shutil.which("chromium") or "chromium"])
    script = folder / "chromium"
    script.write_text(f'#!/bin/sh\n{_LOWER_SESSION}\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return str(script)
