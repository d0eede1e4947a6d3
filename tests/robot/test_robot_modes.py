"""How a robot is made to stand, by its build: the modes that are requested, and the remedies."""

import asyncio
from dataclasses import replace

import pytest

import virtual
from rig import rig
from rote.errors import CautionError, RefusedError, RoteError
from rote.messages import CODE_TEXTS, Code
from rote.model.family import Build
from rote.model.g1 import G1_23, G1_27, G1_29, Mode
from rote.model.r1 import R1_26
from rote.model.registry import modes_of
from rote.robot.message_robot import G1
from rote.robot.modes import MessageModes

BOTH_WAYS = "L2+UP, then R1+Y with 29 joints, R1+X with fewer"


async def refusal_to_teach(robot: G1, *, force: bool) -> RoteError:
    with pytest.raises(RefusedError) as refused:
        async with robot.teach("mine", force=force):
            pass
    return refused.value


@pytest.mark.parametrize(
    ("build", "standing", "buttons"),
    [
        (G1_29, Mode.WALK_WAIST, "L2+UP, then R1+Y"),
        (G1_27, Mode.WALK, "L2+UP, then R1+X"),
        (G1_23, Mode.WALK, "L2+UP, then R1+X"),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_waist_decides_the_mode_of_a_stand_and_its_buttons(
    build: Build, standing: Mode, buttons: str
) -> None:
    modes = modes_of(build)
    assert modes.standing == standing
    assert set(modes.to_stand[Mode.LOCK_STAND]) == {Mode.WALK, Mode.WALK_WAIST}
    assert modes.to_stand[Mode.LOCK_STAND][0] == standing
    assert modes.stand_up_buttons == buttons
    assert modes_of(build.at(build.machines[1])).standing == standing


@pytest.mark.parametrize("wire", ["memory", "services"])
@pytest.mark.parametrize(
    ("build", "version", "standing"),
    [
        (G1_29, "1.4.7", Mode.WALK_WAIST),
        (G1_29, "1.5.3", Mode.WALK_WAIST),
        (G1_27, "1.5.3", Mode.WALK),
        (G1_23, "1.4.7", Mode.WALK),
        (G1_23, "1.5.3", Mode.WALK),
    ],
)
def test_a_robot_stands_up_by_the_mode_of_its_build_at_the_first_try(
    wire: str, build: Build, version: str, standing: Mode
) -> None:
    async def story() -> None:
        async with (
            rig(wire, build=build, version=version, mode=Mode.DAMP) as one,
            one.connect() as robot,
        ):
            begun_s = one.world.time_s
            assert (await robot.modes.stand()).id == standing
            assert one.world.machine.mode == standing
            assert one.world.time_s - begun_s < 8.0, "no other mode was waited for"

    virtual.run(story())


def test_a_robot_that_refuses_its_usual_mode_stands_by_the_other_one() -> None:
    async def story() -> None:
        async with rig("services", mode=Mode.LOCK_STAND) as one, one.connect() as robot:
            machine = one.world.machine
            known = tuple(mode for mode in machine.modes.all if mode.id != Mode.WALK_WAIST)
            machine.modes = replace(machine.modes, all=known)
            assert (await robot.modes.stand()).id == Mode.WALK

    virtual.run(story())


@pytest.mark.parametrize("wire", ["memory", "services"])
@pytest.mark.parametrize("force", [False, True], ids=["by rote", "by the robot"])
@pytest.mark.parametrize(
    ("build", "buttons", "other"), [(G1_29, "R1+Y", "R1+X"), (G1_23, "R1+X", "R1+Y")]
)
def test_a_refusal_names_the_buttons_of_the_robot_s_build(
    wire: str, force: bool, build: Build, buttons: str, other: str
) -> None:
    async def story() -> None:
        async with rig(wire, build=build, mode=Mode.LOCK_STAND) as one, one.connect() as robot:
            await robot.modes.read()
            error = await refusal_to_teach(robot, force=force)
            assert isinstance(error, CautionError) is not force
            assert f"L2+UP, then {buttons}" in error.remedy
            assert other not in error.remedy
            (finding,) = [each for each in await robot.preflight() if "stand" in each.message]
            assert f"L2+UP, then {buttons}." in finding.remedy
            assert other not in finding.remedy

    virtual.run(story())


def test_both_ways_are_named_while_the_build_is_not_known() -> None:
    async def story() -> None:
        async with (
            rig("services", build=G1_23, mode=Mode.LOCK_STAND, quirks=("no-lowstate",)) as one,
            one.connect() as robot,
        ):
            for force in (False, True):
                assert BOTH_WAYS in (await refusal_to_teach(robot, force=force)).remedy
            (finding,) = [each for each in await robot.preflight() if "balanced" in each.message]
            assert BOTH_WAYS in finding.remedy

    virtual.run(story())


def test_a_remedy_without_a_robot_names_both_ways() -> None:
    assert BOTH_WAYS in CODE_TEXTS[Code.WRONG_STATE][1]


def test_a_mode_that_leads_nowhere_is_reported_with_the_buttons_of_the_build() -> None:
    async def story() -> None:
        async with rig("services", build=G1_23, mode=706) as one, one.connect() as robot:
            with pytest.raises(CautionError) as refused:
                await robot.modes.stand()
            assert "L2+UP, then R1+X." in refused.value.remedy
            assert "R1+Y" not in refused.value.remedy
            assert one.world.machine.mode == 706

    virtual.run(story())


def test_a_mode_that_is_no_longer_reported_is_unknown_and_not_the_current_one() -> None:
    async def story() -> None:
        async with rig("services", build=R1_26, mode=811) as one, one.connect() as robot:
            assert (await robot.modes.read()).id == 811
            assert await robot.preflight() == []
            one.world.machine.mode = 813  # of which an R1 reports nothing
            await asyncio.sleep(3.5)
            assert robot.state is not None
            assert robot.state.has_joints, "everything else is still reported"
            assert robot.state.mode == -1
            mode = await robot.modes.read()
            assert (mode.id, mode.known, mode.balanced) == (-1, False, False)
            (finding,) = await robot.preflight()
            assert "unknown whether the robot stands balanced" in finding.message
            assert (await robot.describe())["mode"]["id"] == -1
            one.world.machine.mode = 811
            assert (await robot.modes.read()).id == 811

    virtual.run(story())


def test_an_r1_is_damped_from_a_mode_that_it_does_not_report_and_when_it_is_damped() -> None:
    async def story() -> None:
        async with rig("services", build=R1_26, mode=813) as one, one.connect() as robot:
            one.world.machine.mode = 811
            await robot.modes.read()  # by this mode the R1 is recognised
            one.world.machine.mode = 813
            await asyncio.sleep(3.5)
            with pytest.raises(CautionError):
                await robot.modes.damp()
            for _ in range(2):  # it refuses the mode that it is in with 1001
                assert (await robot.modes.damp(yes=True)).id == 1
            assert one.world.machine.mode == 1
            with pytest.raises(CautionError) as refused:
                await robot.modes.stand()
            assert refused.value.remedy == "Nothing was sent. Use the robot's remote."

    virtual.run(story())


def test_a_refused_mode_is_not_taken_for_reached_because_it_was_the_last_one_reported() -> None:
    async def story() -> None:
        async with rig("services", build=R1_26, mode=811) as one, one.connect() as robot:
            await robot.modes.read()
            one.world.machine.mode = 4
            assert (await robot.modes.read()).id in (4, 811)
            await asyncio.sleep(0.3)
            one.world.machine.mode = 813  # only damping leads out of it
            with pytest.raises(RefusedError, match="1001"):
                assert isinstance(robot.modes, MessageModes)
                await robot.modes.enter(4)

    virtual.run(story())
