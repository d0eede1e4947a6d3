"""The distribution name, how to install extras, and other distributions with the same name."""

import os
import sys
from pathlib import Path

NAME = "rote-robot"
"""What pip installs. The import name and the command are `rote`. On the package index, `rote` is
another project, whose import name and command are the same."""

NOT_FROM: dict[str, tuple[str, tuple[int, int]]] = {"dds": ("CycloneDDS", (3, 14))}
"""Extras whose library has no package for this version of Python and later ones. Markers in
pyproject.toml repeat this, so that `pip install 'rote-robot[all]'` works there without them."""

NOT_ON_AARCH64_LINUX = {"dds": "CycloneDDS", "sound": "miniaudio"}
"""Extras whose library has no package for Linux on aarch64; pyproject.toml has markers here too."""


def install_line(extra: str) -> str:
    """Return the command that adds an extra."""
    return f"pip install '{NAME}[{extra}]'"


def how_to_get(
    extra: str,
    python: tuple[int, int] = sys.version_info[:2],
    machine: tuple[str, str] | None = None,
) -> str:
    """Return what to do about a missing extra, as a sentence.

    `machine` is a system and its processor, like `("linux", "aarch64")`; by default this one.
    """
    if (machine or _this_machine()) == ("linux", "aarch64") and extra in NOT_ON_AARCH64_LINUX:
        library = NOT_ON_AARCH64_LINUX[extra]
        return f"{library} has no package for Linux on aarch64. Build it from its source."
    if extra in NOT_FROM:
        library, (major, minor) = NOT_FROM[extra]
        if python >= (major, minor):
            return (
                f"{library} has no package for Python {python[0]}.{python[1]}. "
                f"Use Python {major}.{minor - 1}, or another wire."
            )
    return f"Run: {install_line(extra)}"


def _this_machine() -> tuple[str, str]:
    return sys.platform, "" if sys.platform == "win32" else os.uname().machine


def find_namesake(folder: Path = Path(__file__).parents[2]) -> str:
    """Return the version of another distribution called `rote` that is installed too; "" if none.

    The files of both overwrite each other. `folder` is the one that contains this package.
    """
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.startswith("rote-")]
    except OSError:
        return ""
    for name in names:  # such as rote-1.2.3.dist-info or rote-1.2.3-py3.12.egg-info
        version, _, ending = name.removeprefix("rote-").rpartition(".")
        if ending in {"dist-info", "egg-info"}:
            return version.partition("-")[0]
    return ""
