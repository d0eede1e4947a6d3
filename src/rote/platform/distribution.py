"""The distribution name, how to install extras, and other distributions with the same name."""

import os
import sys
from pathlib import Path

NAME = "rote-robot"
"""What pip installs. The import name and the command are `rote`. On the package index, `rote` is
another project, whose import name and command are the same."""

NOT_FROM: dict[str, tuple[str, tuple[int, int]]] = {"dds": ("CycloneDDS", (3, 14))}
"""Extras whose library has no package from this version of Python on. A marker in pyproject.toml
says the same, so that `pip install 'rote-robot[all]'` works there without them."""


def install_line(extra: str) -> str:
    """Return the command that adds an extra."""
    return f"pip install '{NAME}[{extra}]'"


def how_to_get(extra: str, python: tuple[int, int] = sys.version_info[:2]) -> str:
    """Return what to do about a missing extra, as a sentence."""
    library, version = NOT_FROM.get(extra, ("", python))
    if python >= version and library:
        last = f"{version[0]}.{version[1] - 1}"
        now = f"{python[0]}.{python[1]}"
        return f"{library} has no package for Python {now}. Use Python {last}, or another wire."
    return f"Run: {install_line(extra)}"


def namesake(folder: Path = Path(__file__).parents[2]) -> str:
    """Return the version of a distribution called `rote` in the folder of this package; "" if there
    is none.

    Its files and ours overwrite each other, whichever was installed last.
    """
    try:
        with os.scandir(folder) as inside:
            names = [each.name for each in inside if each.name.startswith("rote-")]
    except OSError:
        return ""
    for name in names:
        rest, _, ending = name.removeprefix("rote-").rpartition(".")
        if ending in {"dist-info", "egg-info"}:
            return rest.partition("-")[0]
    return ""
