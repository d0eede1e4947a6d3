"""A worker that computes leaves the processors to the programs that move a robot."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

AUTOGROUP = Path("/proc/self/autogroup")
LOWERED = """
import os
from pathlib import Path
from rote.platform.system import lower_priority
lower_priority(7)
print(os.nice(0))
print(Path("/proc/self/autogroup").read_text())
"""


@pytest.mark.slow
@pytest.mark.skipif(not AUTOGROUP.exists(), reason="this system shares no time among sessions")
@pytest.mark.parametrize("is_new_session", [True, False])
def test_a_worker_with_low_priority_lowers_its_own_session_and_no_other(
    is_new_session: bool,
) -> None:
    ours = AUTOGROUP.read_text().split()[-1]
    done = subprocess.run(
        [sys.executable, "-c", LOWERED],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=is_new_session,
    )
    niceness, session = done.stdout.splitlines()[:2]
    assert int(niceness) == min(os.nice(0) + 7, 19)
    assert session.split()[-1] == (niceness if is_new_session else ours)
    assert AUTOGROUP.read_text().split()[-1] == ours
