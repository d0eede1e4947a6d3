"""Every oddity of firmware that the simulated robot can have, met by the client on each wire."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import virtual
from odd_robots import HARMLESS_TOGETHER, cases, documented, meet, title
from rig import Rig, rig
from rote.errors import DecodeError, RefusedError
from rote.robot.message_robot import G1
from rote.sim.quirks import Quirk, Quirks, quirks_named

DOCUMENT = Path(__file__).parents[1] / "docs" / "reliability.md"
CASES = cases()
ODDITIES = list(dict.fromkeys(quirks for quirks, _ in CASES))
TOLD = documented(DOCUMENT.read_text(encoding="utf-8"))
"""What the table says that rote does, by quirks and wire."""


def harmless(quirks: tuple[str, ...], wire: str) -> bool:
    """Whether everything works with this robot, by the table."""
    return TOLD.get((title(quirks), wire)) == "works"


def today(quirks: tuple[str, ...], wire: str) -> bool:
    """Whether `make test` meets this robot: each that is not harmless, on one wire."""
    wires = [each for others, each in CASES if others == quirks]
    return not harmless(quirks, wire) and wire == wires[ODDITIES.index(quirks) % len(wires)]


@pytest.mark.parametrize(
    ("quirks", "wire"),
    [
        pytest.param(
            quirks,
            wire,
            id=f"{wire}-{'+'.join(quirks)}",
            marks=() if today(quirks, wire) else pytest.mark.soak,
        )
        for quirks, wire in CASES
    ],
)
def test_an_odd_robot_ends_in_no_false_success_no_hang_and_no_lost_take(
    quirks: tuple[str, ...], wire: str
) -> None:
    assert meet(quirks, wire).words == TOLD.get((title(quirks), wire)), (
        "another outcome than docs/reliability.md has: python scripts/generate/odd_robots.py"
    )


@pytest.mark.parametrize(("wire", "quirks"), HARMLESS_TOGETHER)
def test_everything_works_with_a_robot_of_several_harmless_quirks(wire: str, quirks: str) -> None:
    assert meet(tuple(quirks.split()), wire).words == "works"


def test_each_harmless_quirk_is_met_together_with_others() -> None:
    alone = {quirks[0] for quirks, wire in CASES if harmless(quirks, wire)}
    together = set(" ".join(quirks for _, quirks in HARMLESS_TOGETHER).split())
    assert together == alone - {"lowstate-500hz"}


def test_the_table_names_no_robot_that_there_is_not() -> None:
    assert set(TOLD) == {(title(quirks), wire) for quirks, wire in CASES}


@pytest.mark.parametrize(
    ("wire", "odd"),
    [
        ("memory", "refused"),
        ("services", "refused"),
        ("services", "no list"),
        ("services", "other entries"),
    ],
)
def test_a_list_that_cannot_be_read_is_no_refusal_of_the_robot(wire: str, odd: str) -> None:
    """Only what needs the list fails, and says that the list is the reason."""

    async def story() -> None:
        async with rig(wire) as one:
            if odd == "refused":
                one.world.firmware = replace(
                    one.world.firmware, quirks=quirks_named(["list-refused"])
                )
            else:
                one.world.firmware = replace(one.world.firmware, quirks=Quirks([ODD_LISTS[odd]]))
            odd_one = Rig(one.simulator, one.url)
            async with odd_one.connect() as robot:
                await tell(odd_one, robot)

    async def tell(one: Rig, robot: G1) -> None:
        async with robot.teach("mine") as take:
            await robot.move_by_hand("wave", 1.0)
            await asyncio.sleep(1.0)
        assert [entry.name for entry in one.world.store.entries()] == ["mine"]
        assert take.saved or "list" in take.robot_note
        await asyncio.sleep(3.0)
        findings = await robot.preflight()
        assert any("list" in str(each.message) for each in findings) == (odd != "other entries")
        if wire == "memory":
            with pytest.raises(DecodeError, match="list"):
                await robot.play("mine")
            return
        assert (await robot.play("mine")).completed
        await robot.perform(27)
        if odd != "other entries":
            with pytest.raises(DecodeError, match="list"):
                await robot.perform("no such")
        with pytest.raises(RefusedError) as caught:
            await robot.play("other")
        assert caught.value.code == 7402
        with pytest.raises(DecodeError, match="list"):
            await robot.play(7)
        await robot.rename("mine", "yours")
        await robot.delete("yours")
        assert not one.world.store.entries()

    virtual.run(story())


def _odd_list(change: Callable[[list[Any]], object]) -> Quirk:
    return Quirk(name="odd", group="lists", wires=("webrtc",), what="", actions=change)


ODD_LISTS = {
    "no list": _odd_list(lambda _: {"presets": 3}),
    "other entries": _odd_list(lambda lists: [lists[0], 5]),
}
