"""python -m benchmarks [claim ...] [--json]: measure, and print one table.

It ends with exit code 0 whatever it measures: a benchmark is no test.
"""

import argparse
import json
import os
import platform
import sys
from importlib import import_module

from benchmarks.table import Row, show

CLAIMS = (
    "codec",
    "round_trip",
    "start_up",
    "simulator",
    "webrtc",
    "stream",
    "dds",
    "bridges",
    "a1",
    "motion",
    "exchange",
    "retime",
    "long_takes",
    "contact",
    "capture",
    "web",
    "stage",
)


def measure(claim: str) -> list[Row]:
    print(f"measuring {claim} ...", file=sys.stderr, flush=True)
    try:
        rows: list[Row] = import_module(f"benchmarks.{claim}").run()
    except Exception as error:
        print(f"{claim} could not be measured: {error!r}", file=sys.stderr)
        return []
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure rote.")
    parser.add_argument("claims", nargs="*", metavar="claim", help=", ".join(CLAIMS))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    wanted = parser.parse_args()
    if unknown := set(wanted.claims) - set(CLAIMS):
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(CLAIMS)}")
    rows = [row for claim in wanted.claims or CLAIMS for row in measure(claim)]
    machine = {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
    if wanted.json:
        print(json.dumps({"machine": machine, "rows": [row.document() for row in rows]}, indent=2))
    else:
        print(show(rows))
        print("\n" + ", ".join(f"{name} {value}" for name, value in machine.items()))


if __name__ == "__main__":
    main()
