"""The programs that rote is measured against: where they are, and which are missing.

`scripts/peers/clients` and `scripts/peers/benchmarks` install them.
"""

import os
import sys
from pathlib import Path

PEERS = Path(os.environ.get("ROTE_PEERS", Path(__file__).parents[1] / ".peers"))

missing: list[str] = []
"""What was left out of this run, and why; one sentence each."""


class PeerMissingError(RuntimeError):
    """Nothing can be measured without this peer; the text says how to get it."""


def report_missing(reason: str) -> None:
    """Note that some rows are left out for want of a peer."""
    missing.append(reason)
    print(reason, file=sys.stderr)
