"""Where the programs are that rote is measured against.

`scripts/peers` and `scripts/bench_peers` put them there.
"""

import os
from pathlib import Path

PEERS = Path(os.environ.get("ROTE_PEERS", Path(__file__).parents[1] / ".peers"))
