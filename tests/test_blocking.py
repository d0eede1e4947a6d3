"""The blocking classes: the whole asynchronous API, with the right arguments and results."""

import asyncio
import inspect
import re
import typing
from collections.abc import AsyncIterator, Iterator

import blocking_robots
import pytest

import rote
from rote.blocking import Blocking, BlockingBlock
from rote.blocking_a1 import BlockingA1
from rote.blocking_robots import BlockingG1, BlockingPlaying, BlockingRobot, BlockingTake
from rote.motion.files.library import Library
from rote.robot.g1 import G1
from rote.robot.playing import Playing
from rote.robot.quadruped.robot import A1
from rote.robot.robot import Robot
from rote.robot.take import Take
from rote.robot.teaching import Teaching
from rote.wire.a1 import values as a1_values

PAIRS: list[tuple[type, type[Blocking[object]]]] = [
    (Robot, BlockingRobot),
    (G1, BlockingG1),
    (A1, BlockingA1),
    (Take, BlockingTake),
    (Playing, BlockingPlaying),
]
INTERNAL = {"add", "noted_in", "follow"}
"""Methods that only rote itself calls, and one whose result needs no waiting: `follow`."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")} - INTERNAL


def test_the_files_are_what_the_script_makes_of_the_asynchronous_api() -> None:
    for path, text in blocking_robots.generated().items():
        assert path.read_text(encoding="utf-8") == text, "run python scripts/blocking_robots.py"


@pytest.mark.parametrize(("ours", "blocking"), PAIRS, ids=lambda kind: kind.__name__)
def test_every_public_method_is_there_with_the_same_arguments(
    ours: type, blocking: type[Blocking[object]]
) -> None:
    assert public(ours) <= public(blocking)
    for name in public(ours):
        theirs = getattr(ours, name)
        if inspect.isfunction(theirs):
            wanted = inspect.signature(theirs).parameters
            given = inspect.signature(getattr(blocking, name)).parameters
            assert list(given) == list(wanted), name
            assert [p.kind for p in given.values()] == [p.kind for p in wanted.values()], name
            assert [p.default for p in given.values()] == [p.default for p in wanted.values()], name


@pytest.mark.parametrize(("ours", "blocking"), PAIRS, ids=lambda kind: kind.__name__)
def test_what_a_method_returns_is_what_the_asynchronous_one_gives(
    ours: type, blocking: type[Blocking[object]]
) -> None:
    names = {**vars(a1_values), "Library": Library}  # what annotations have as text
    for name, method in inspect.getmembers(ours, inspect.isfunction):
        if name not in public(ours) or method is not vars(ours).get(name):
            continue
        said = typing.get_type_hints(method, localns=names)["return"]
        given = typing.get_type_hints(getattr(blocking, name), localns=names)["return"]
        if said is Teaching:
            assert given == BlockingBlock[BlockingTake]
        elif said is Playing and inspect.iscoroutinefunction(method):
            assert given is BlockingPlaying
        elif hasattr(said, "__await__") and inspect.isclass(said):
            awaited = typing.get_type_hints(inspect.getattr_static(said, "__await__"))["return"]
            assert given is typing.get_args(awaited)[2], name
        elif typing.get_origin(said) is AsyncIterator:
            assert given == Iterator[typing.get_args(said)[0]]  # type: ignore[misc]
        elif getattr(typing.get_origin(said), "__name__", "") == "Awaitable":
            assert given is typing.get_args(said)[0]
        else:
            assert given == said, name


@pytest.mark.parametrize("blocking", [blocking for _, blocking in PAIRS])
def test_help_speaks_of_blocking_calls(blocking: type[Blocking[object]]) -> None:
    assert inspect.getdoc(blocking)
    for name in public(blocking):
        said = inspect.getdoc(getattr(blocking, name))
        assert said, name
        assert not re.search(r"\bawait|\basync\b", said), f"{name}: {said}"


def test_help_says_what_a_call_returns() -> None:
    with rote.sync.connect("sim://g1?store=:memory:") as robot:
        assert str(inspect.signature(robot.play)).endswith("-> rote.robot.api_values.PlayReport")
        assert "return its report" in (inspect.getdoc(robot.play) or "")
        assert "BlockingTake" in str(inspect.signature(robot.teach))


def test_a_take_is_paused_and_resumed_without_await() -> None:
    with rote.sync.connect("sim://a1?level=low&hand=paw", family="a1") as robot:
        with robot.teach("paw") as take:
            take.pause()
            assert take.paused
            take.resume()
            assert not take.paused
        assert take.rows() == take.rows(0, None)
    assert take.rows() is not None  # after the connection too


def test_a_blocking_call_inside_the_own_loop_is_refused() -> None:
    with rote.sync.connect("sim://g1?store=:memory:") as robot:
        caught: list[Exception] = []

        def ask(_: rote.RobotState) -> None:
            try:
                robot.actions()
            except RuntimeError as error:
                caught.append(error)

        forget = robot.on_state(ask)
        next(robot.states())
        forget()
    assert "inside rote's own loop" in str(caught[0])


def test_the_loop_of_the_caller_is_left_alone() -> None:
    async def cell() -> float:
        loop = asyncio.get_running_loop()
        robot = rote.sync.open("sim://g1?store=:memory:")
        robot.close()
        assert asyncio.get_running_loop() is loop
        return loop.time()

    assert asyncio.run(cell())
