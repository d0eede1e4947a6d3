"""Meet every odd robot and write what came of it into docs/reliability.md; takes two minutes."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from odd_robots import BEGIN, END, cases, meet, table  # noqa: E402 - the path has to be there first


def main() -> None:
    """Write the table."""
    document = ROOT / "docs" / "reliability.md"
    met = {case: meet(*case) for case in cases()}
    before, _, rest = document.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    lines = "\n".join(table(met))
    document.write_text(f"{before}{BEGIN}\n\n{lines}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
