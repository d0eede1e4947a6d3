"""python -m benchmarks [claim ...] [--json] [--write] [--short]: measure, and print one table.

A missed goal is no failure: the exit code is 0. It is 1 if a claim could not be measured although
its peers are installed.
"""

import argparse
import json
import os
import sys
import time
from importlib import import_module
from traceback import print_exc

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
    "average",
    "adapt",
    "long_takes",
    "library",
    "batch",
    "mirror",
    "contact",
    "capture",
    "web",
    "stage",
)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure rote.")
    parser.add_argument("claims", nargs="*", metavar="claim", help=", ".join(CLAIMS))
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the JSON to benchmarks/results.json and the tables to docs/performance.md; "
        "of named claims only theirs",
    )
    parser.add_argument(
        "--short",
        action="store_true",
        help="only try whether every benchmark works: a few seconds, figures without a meaning",
    )
    options = parser.parse_args()
    if unknown := set(options.claims) - set(CLAIMS):
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(CLAIMS)}")
    if options.write and options.short:
        parser.error("figures of a short run mean nothing: leave out --short or --write")
    return options


def main() -> int:
    options = parse_options()
    # As the command line does: idle threads of numpy's would count as processor time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if options.short:
        os.environ["ROTE_BENCHMARKS_SHORT"] = "1"  # before anything that reads it is imported
    from benchmarks.report import (
        Measured,
        Results,
        describe_machine,
        load_results,
        replace_claims,
        today,
        write_results,
    )
    from benchmarks.table import show

    def measure(claim: str) -> Measured:
        from benchmarks import peers

        print(f"measuring {claim} ...", file=sys.stderr, flush=True)
        peers.missing.clear()
        measured = Measured()
        cpu_s = cpu_with_children_s()
        try:
            measured.rows = import_module(f"benchmarks.{claim}").run()
        except peers.PeerMissingError as error:
            peers.report_missing(str(error))
        except Exception as error:
            print_exc()
            measured.failed = repr(error)
        measured.missing = list(dict.fromkeys(peers.missing))
        print(f"  {cpu_with_children_s() - cpu_s:.1f} s of processor time", file=sys.stderr)
        return measured

    before, start_s = os.getloadavg()[0], time.monotonic()
    claims = {claim: measure(claim) for claim in options.claims or CLAIMS}
    results = Results(
        date=today(),
        machine=describe_machine(),
        load=(round(before, 1), round(os.getloadavg()[0], 1)),
        minutes=round((time.monotonic() - start_s) / 60, 1),
        claims=claims,
    )
    if options.write:
        write_results(replace_claims(load_results(), results) if options.claims else results)
    if options.json:
        print(json.dumps(results.document(), indent=2))
    else:
        print(show([row for measured in claims.values() for row in measured.rows]))
        print(f"\n{results.machine}, load {before:.1f}, {results.minutes} minutes")
    for claim, why in results.failed.items():
        print(f"{claim} could not be measured: {why}", file=sys.stderr)
    return 1 if results.failed else 0


def cpu_with_children_s() -> float:
    """Return the processor time of this process and of those that it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


if __name__ == "__main__":
    sys.exit(main())
