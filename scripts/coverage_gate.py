"""Compare the coverage of each package of rote with its floor, lines and branches together.

Prints a table for docs/reliability.md. Ends with 1 if a package is below its floor, has no floor,
or has a floor and does not exist.
"""

import io
import sys
from pathlib import Path

import coverage
from coverage.exceptions import NoDataError

SOURCE = Path(__file__).resolve().parents[1] / "src" / "rote"

PURE, SHELL = 100.0, 90.0
UNCOUNTED = 0.0
"""For modules that only run in processes of their own, which are not counted."""

# Least percentage for each package and each module at the top of src/rote.
FLOORS = {
    "errors.py": PURE,
    "findings.py": PURE,
    "messages.py": PURE,
    "model": PURE,
    "motion": PURE,
    "session": PURE,
    "text.py": PURE,
    "wire": PURE,
    "__init__.py": SHELL,
    "blocking.py": SHELL,
    "batch": SHELL,
    "capture": SHELL,
    "cli": SHELL,
    "compat": SHELL,
    "connection.py": SHELL,
    "named_enum.py": SHELL,
    "platform": SHELL,
    "robot": SHELL,
    "sim": SHELL,
    "sync.py": SHELL,
    "transport": SHELL,
    "trial": SHELL,
    "web": SHELL,
    "bridge": 85.0,  # its telemetry 82
    "stage": 85.0,  # its watcher 74
    "__main__.py": UNCOUNTED,
}


def list_packages(source: Path = SOURCE) -> set[str]:
    """Return the names of all packages and modules at the top of the source."""
    modules = {path.name for path in source.glob("*.py")}
    return modules | {path.parent.name for path in source.glob("*/__init__.py")}


def find_mismatches(packages: set[str]) -> list[str]:
    """Return a line for each package without a floor, and each floor without a package."""
    return [
        *(
            f"{name} has no floor in scripts/coverage_gate.py"
            for name in sorted(packages - FLOORS.keys())
        ),
        *(f"{name} has a floor, but does not exist" for name in sorted(FLOORS.keys() - packages)),
    ]


def measure_package(data: coverage.Coverage, name: str) -> tuple[float, str]:
    """Return the covered percentage of a package, and the lines that are missing."""
    report = io.StringIO()
    pattern = f"*/rote/{name}" if name.endswith(".py") else f"*/rote/{name}/*"
    try:
        percent = data.report(include=[pattern], file=report, show_missing=True, skip_covered=True)
    except NoDataError:
        return 0.0, ""
    return percent, report.getvalue()


def main() -> int:
    """Print the table and what is below its floor; return the exit code."""
    if wrong := find_mismatches(list_packages()):
        print("\n".join(wrong))
        return 1
    data = coverage.Coverage()
    data.combine()
    data.load()
    below = []
    print("| package | covered | floor |\n|---|---|---|")
    for name, floor in sorted(FLOORS.items()):
        percent, missing = measure_package(data, name)
        print(f"| `{name}` | {percent:.1f} % | {floor:.0f} % |")
        if percent < floor:
            below.append(f"{name} is below its floor:\n{missing}")
    print("\n" + "\n".join(below) if below else "")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
