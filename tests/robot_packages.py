"""Packages of third parties that bring a robot, as they lie on disk after an installation."""

import sys
from pathlib import Path

import pytest

from rote.model import registry

TRIPOD = """
from rote.model.family import X, ZERO, BodyFacts, Build, Family, Joint

JOINTS = (
    Joint(index=0, name="pan_joint", parent="stand", axis=X, lower_rad=-1.0, upper_rad=1.0,
          velocity_rad_s=2.0, effort_nm=1.0, origin_m=ZERO, slot=4),
)
TRIPOD = Family(
    name="tripod", title="a head on three legs", joints=JOINTS,
    builds=(Build(name="tripod-1", family="tripod", joints=JOINTS),),
    body=BodyFacts(base="stand"),
)
"""


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, entry_point: str, module: str, source: str
) -> None:
    """Put a module and the record of its package on Python's path until the test ends."""
    record = folder / f"{module.replace('.', '_')}-1.0.dist-info"
    record.mkdir(parents=True)
    name = module.rpartition(".")[2]
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (record / "entry_points.txt").write_text(f"[{registry.ENTRY_POINTS}]\n{entry_point}\n")
    path = folder.joinpath(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    monkeypatch.syspath_prepend(folder)
    for known in (module, module.partition(".")[0]):  # gone again when the test ends
        monkeypatch.delitem(sys.modules, known, raising=False)
    registry.forget()
