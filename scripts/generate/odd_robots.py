"""Meet every odd robot and write what came of it into docs/reliability.md; takes two minutes."""

import sys
from pathlib import Path

from generated_part import renew

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from odd_robots import BEGIN, END, cases, meet, table  # noqa: E402 - the path has to be there first


def main() -> None:
    """Write the table."""
    document = ROOT / "docs" / "reliability.md"
    met = {case: meet(*case) for case in cases()}
    renew(document, BEGIN, END, "\n".join(table(met)))


if __name__ == "__main__":
    main()
