"""A row of the table, and the two ways to time."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from statistics import median

from benchmarks.size import SHORT


@dataclass(frozen=True, slots=True)
class Row:
    """One claim: ours beside a peer or a limit, and how their ratio should be."""

    claim: str
    unit: str
    ours: float
    other: float
    other_is: str
    """Whose `other` is: a peer run beside ours, or "limit"."""
    at_least: float | None = None
    """What ours / other should reach..."""
    at_most: float | None = None
    """...or stay within. With neither, the row is there to compare."""

    @property
    def ratio(self) -> float | None:
        """Ours / other."""
        return self.ours / self.other if self.other else None

    @property
    def goal(self) -> str:
        """The goal for the ratio, in words; a limit of zero allows none."""
        if not self.other:
            return "none"
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return f"at most {self.at_most:g}" if self.at_most is not None else "-"

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if self.at_least is not None:
            return self.ours >= self.at_least * self.other
        return self.ours <= self.at_most * self.other if self.at_most is not None else None

    def cells(self) -> tuple[str, ...]:
        """Return what the table shows."""
        return (
            self.claim,
            f"{_short(self.ours)} {self.unit}",
            f"{_short(self.other)} {self.unit} ({self.other_is})",
            "-" if self.ratio is None else _short(self.ratio),
            self.goal,
            {True: "yes", False: "no", None: "-"}[self.met],
        )

    def document(self) -> dict[str, object]:
        """Return the JSON of this row; `Row(**document)` is this row again."""
        return asdict(self)


HEADINGS = ("claim", "ours", "peer or limit", "ratio", "goal", "met")


def show(rows: list[Row]) -> str:
    """Return the aligned table."""
    lines = [HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    padded = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return "\n".join(padded)


def markdown(rows: list[Row]) -> str:
    """Return the table for a page."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(cell.strip() for cell in line) + " |" for line in lines)


def cpu_s(work: Callable[[], object]) -> float:
    """Return the processor time that `work` takes; other programs do not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def wall_s(work: Callable[[], object]) -> float:
    """Return how long one waits for `work`."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def take_turns(rounds: int, measures: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """Take each measure once per round, after a round to warm up; return the medians.

    A short run takes each once, and has no round to warm up.
    """
    if SHORT:
        return {name: measure() for name, measure in measures.items()}
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for number in range(rounds + 1):
        for name, measure in measures.items():
            value = measure()
            if number > 0:
                taken[name].append(value)
    return {name: median(values) for name, values in taken.items()}


def _short(value: float) -> str:
    digits = 0 if value >= 100 or value == int(value) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"
