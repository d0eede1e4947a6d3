"""A process: `rote agent`, whose loop can be made to hang by SIGUSR1 while its threads live on.

python stage_agent_process.py SECONDS LOG agent ROBOT_URL --join FILE

It writes the time down again and again, so that a test sees whether the computer kept it waiting.
"""

import signal
import sys
import threading
import time

from rote.__main__ import main

LOG_S = 0.02


def note_times(log: str) -> None:
    with open(log, "a", buffering=1) as file:  # noqa: PTH123 - a line at a time
        while True:
            file.write(f"{time.monotonic():.3f}\n")
            time.sleep(LOG_S)


if __name__ == "__main__":
    hang_s, log = float(sys.argv.pop(1)), sys.argv.pop(1)
    threading.Thread(target=note_times, args=(log,), daemon=True).start()
    signal.signal(signal.SIGUSR1, lambda *_: time.sleep(hang_s))
    sys.exit(main())
