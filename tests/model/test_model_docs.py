"""docs/robots.md: its example is run as it stands there, and its table is the registry's."""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from robot_packages import install
from rote.model import registry
from rote.model.g1 import G1

PAGE = (Path(__file__).parents[2] / "docs" / "robots.md").read_text(encoding="utf-8")
DASH = "\N{EN DASH}"


def block(language: str) -> str:
    """Return the one block of code in that language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture
def _lamp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    points = tomllib.loads(block("toml"))["project"]["entry-points"][registry.ENTRY_POINTS]
    ((name, value),) = points.items()
    module = value.partition(":")[0]
    install(tmp_path / "site", monkeypatch, f"{name} = {value}", module, block("python"))
    yield
    for known in (module, module.partition(".")[0]):
        sys.modules.pop(known, None)
    registry.forget()


@pytest.mark.usefixtures("_lamp")
def test_the_robot_of_the_page_is_a_robot() -> None:
    build = registry.build_named("lamp")
    assert (build.name, build.slots, build.rest_rad) == ("lamp-2", (2, 5), (0.0, 0.4))
    assert build.taught == build.streamed == ("turn_joint", "bend_joint")
    assert [slot for slot in range(35) if build.owns(slot)] == [2, 5]
    family = registry.family_of(build)
    assert family is not None
    assert sum(mass.mass_kg for mass in family.masses(build)) == pytest.approx(1.3)
    assert registry.family_with(build.names) is family


def spread(text: str) -> tuple[int, ...]:
    """Return the numbers of a text such as `0-2, 5`, with a long dash."""
    numbers: list[int] = []
    for part in text.split(", "):
        first, _, last = part.partition(DASH)
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def test_the_table_of_the_page_is_the_registry_s() -> None:
    rows = re.findall(
        rf"^\| [^|]*\| `([a-z0-9-]+)`[^|]*\| (\d+) \| ([0-9{DASH}, ]+) \|", PAGE, re.MULTILINE
    )
    assert [name for name, _, _ in rows] == list(registry.names())
    for name, joints, slots in rows:
        build = registry.build_named(name)
        assert len(build.joints) == int(joints)
        assert tuple(sorted(build.slots)) == spread(slots)


def test_the_machines_of_the_page_are_those_that_are_recognised() -> None:
    rows = re.findall(r"^\| ([0-9, ]+) \| ((?:`g1-\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    said: dict[int, str] = {}
    for machines, builds in rows:
        names = re.findall(r"`([^`]+)`", builds)
        numbers = spread(machines)
        said |= dict(zip(numbers, names * (len(numbers) // len(names)), strict=True))
    assert said == {machine: build.name for build in G1.builds for machine in build.machines}
