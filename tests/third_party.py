"""A robot that another package brings, as pip would have installed it: no file of ours knows it."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rote.model import registry
from rote.model.family import Family

_METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"


def package(folder: Path, source: Path, family: str, constant: str) -> Path:
    """Write the package `<family>_robot` that brings a family; return the folder it is in.

    `source` is the module that defines the family under the name `constant`. With the folder on
    PYTHONPATH, a process of its own finds the robot as well.
    """
    module = f"{family}_robot"
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (folder / f"{module}.py").write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    (info / "METADATA").write_text(_METADATA.format(name=module), encoding="utf-8")
    line = f"[{registry.ENTRY_POINTS}]\n{family} = {module}:{constant}\n"
    (info / "entry_points.txt").write_text(line, encoding="utf-8")
    return folder


@contextmanager
def installed(folder: Path, family: str) -> Iterator[Family]:
    """Have a package in `folder` installed, and give the family it brings."""
    module = f"{family}_robot"
    sys.path.insert(0, str(folder))
    _look_again()
    try:
        found = registry.find_family(family)
        assert found is not None
        yield found
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(module, None)
        _look_again()


def _look_again() -> None:
    importlib.invalidate_caches()
    registry.forget()
