"""The blocking API: the same words, usable in scripts, in threads and inside a running loop."""

import ast
import asyncio
import gc
import inspect
import re
import signal
import threading
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import sync_stub

import rote
from rote.errors import BadRequestError, RefusedError, UnsupportedError
from rote.motion.files.library import Library
from rote.robot.leading import Leading, Mirroring
from rote.robot.message_robot import G1
from rote.robot.playing import Playing
from rote.robot.quadruped.modes import A1Modes
from rote.robot.quadruped.robot import A1
from rote.robot.robot import Audio, Modes, Robot
from rote.robot.take import Take
from rote.robot.teaching import Teaching
from rote.sync import (
    Blocking,
    BlockingA1,
    BlockingA1Modes,
    BlockingAudio,
    BlockingBlock,
    BlockingG1,
    BlockingMirroring,
    BlockingModes,
    BlockingPlaying,
    BlockingRobot,
    BlockingTake,
)
from rote.wire.a1 import values as a1_values

URL = "sim://g1?store=:memory:"


def test_teach_list_and_play_without_await() -> None:
    with rote.sync.connect(URL) as robot:
        assert robot.actions().taught == ()
        assert robot.modes.read().balanced
        assert robot.preflight() == []
        with robot.teach("mine") as take:
            robot.move_by_hand("wave", 0.3)
            while take.samples < 30:
                next(robot.states())
        assert take.saved
        assert take.track.rate_hz == pytest.approx(100, rel=0.05)
        assert [action.name for action in robot.actions().taught] == ["mine"]
        assert robot.play("mine").completed


def test_one_robot_leads_another_although_each_has_its_own_loop() -> None:
    with rote.sync.connect(URL) as leader, rote.sync.connect(URL) as follower:
        with leader.lead(follower) as mirroring:
            leader.move_by_hand("wave", 2.0)
            assert mirroring.wait(1.5)
            assert leader.state is not None
            assert leader.state.arms_soft
            assert mirroring.followers[0].poses > 0
        after = leader.state
        assert after is not None
        assert not after.arms_soft
        assert follower.state is not None
        assert not follower.state.playing


def test_a_stop_of_a_follower_ends_the_wait_and_is_raised_at_the_end_of_the_block() -> None:
    with rote.sync.connect(URL) as leader, rote.sync.connect(URL) as follower:
        with pytest.raises(RefusedError, match="stop"), leader.lead(follower) as mirroring:
            follower.stop()
            assert not mirroring.wait(10.0)
        assert leader.state is not None
        assert not leader.state.arms_soft


def teach_a_drum(robot: Any) -> None:
    with robot.teach("mine"):
        robot.move_by_hand("drum", 0.2)
        for _ in zip(range(30), robot.states(), strict=False):
            pass


def test_a_started_playback_can_be_watched_and_stopped() -> None:
    with rote.sync.connect(URL) as robot:
        teach_a_drum(robot)
        playing = robot.start("mine", loop=True)
        phases = set()
        for progress in playing:
            phases.add(progress.phase)
            if progress.phase is rote.Phase.PLAYING:
                break
        assert not playing.done
        playing.stop()
        assert playing.done
        assert not playing.wait().completed  # type: ignore[unreachable]
        assert "blocking" in repr(playing)
        assert {"stop", "name"} <= set(dir(playing))
        assert playing.name == "mine"


def test_errors_come_through_as_they_are() -> None:
    with rote.sync.connect(URL) as robot:
        with pytest.raises(RefusedError):
            robot.play("nothing")
        with pytest.raises(BadRequestError):
            robot.teach("")
        with pytest.raises(AttributeError):
            robot.dance()  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match="pace"):
            robot.play("mine", pace=2.0)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="not iterable"):
            iter(robot)  # type: ignore[call-overload]
    with pytest.raises(BadRequestError):
        rote.sync.connect("sim://spot").__enter__()
    connection = rote.sync.connect(URL)
    with pytest.raises(AttributeError, match=r"with rote\.sync\.connect"):
        connection.actions()  # type: ignore[attr-defined]
    with connection as robot:
        assert "speed" in str(inspect.signature(robot.play))


def test_a_failed_block_leaves_the_arms_holding_and_nothing_saved() -> None:
    with rote.sync.connect(URL) as robot:
        with pytest.raises(KeyError):
            with robot.teach("mine"):
                raise KeyError
        assert not next(robot.states()).arms_soft
        assert robot.actions().taught == ()


def test_it_works_inside_a_running_loop_as_in_jupyter() -> None:
    async def cell() -> int:
        count: list[int] = []
        with rote.sync.connect(URL) as robot:
            count.append(len(robot.actions().taught))
        return sum(count)

    assert asyncio.run(cell()) == 0


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    for _ in range(3):
        with rote.sync.connect(URL) as robot:
            robot.modes.read()
    assert threading.active_count() == before


def test_a_signal_unwinds_a_blocking_teach_block() -> None:
    with rote.sync.connect(URL) as robot:
        with pytest.raises(SystemExit) as caught:
            with robot.teach("mine"):
                signal.raise_signal(signal.SIGTERM)
        assert caught.value.code == 128 + signal.SIGTERM
        assert not next(robot.states()).arms_soft
        assert robot.actions().taught == ()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_ctrl_c_in_a_blocking_playback_stops_the_robot() -> None:
    with rote.sync.connect(URL) as robot:
        teach_a_drum(robot)
        main = threading.get_ident()

        def interrupt(state: rote.RobotState) -> None:
            if state.phase is rote.Phase.PLAYING:
                forget()
                signal.pthread_kill(main, signal.SIGINT)

        forget = robot.on_state(interrupt)
        with pytest.raises(KeyboardInterrupt):
            robot.play("mine", loop=True)
        assert next(robot.states()).phase is rote.Phase.RETURN


def test_what_still_runs_when_a_connection_ends_is_ended_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with rote.sync.connect(URL) as robot:
        states = robot.states()
        with robot.teach("mine"):
            for _ in zip(range(30), states, strict=False):
                pass
        robot.start("mine", loop=True)
    gc.collect()
    assert not caplog.records  # asyncio complains of tasks that were forgotten


def test_two_robots_fit_in_one_process() -> None:
    with rote.sync.connect(URL) as one, rote.sync.connect(URL) as other:
        with one.teach("mine") as take:
            take.discard()
            next(one.states())
            assert not next(other.states()).arms_soft
        assert other.actions().taught == ()


def test_the_parts_of_a_robot_block_too() -> None:
    with rote.sync.connect(URL) as robot:
        assert isinstance(robot.modes, BlockingModes)
        assert robot.modes.stand() == robot.modes.read()
        with pytest.raises(UnsupportedError):
            robot.audio.say("Hello")  # over the documented frames
    with rote.sync.connect("sim://a1", family="a1") as quadruped:
        assert quadruped.modes.lie_down().name == "lie down"
        quadruped.modes.get_up()
        assert quadruped.modes.stand().balanced
        with pytest.raises(UnsupportedError):
            quadruped.audio.light(1, 2, 3)


PAIRS: list[tuple[type, type[Blocking]]] = [
    (Robot, BlockingRobot),
    (G1, BlockingG1),
    (A1, BlockingA1),
    (Modes, BlockingModes),
    (Audio, BlockingAudio),
    (A1Modes, BlockingA1Modes),
    (Take, BlockingTake),
    (Playing, BlockingPlaying),
    (Mirroring, BlockingMirroring),
]
INTERNAL = {"add", "follow", "interrupt"}
"""Methods that only rote itself calls, and one whose result needs no waiting: `follow`."""


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")} - INTERNAL


def test_the_stub_has_the_members_and_arguments_of_the_classes_at_run_time() -> None:
    classes = {
        node.name: {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)}
        for node in ast.parse(sync_stub.stub()).body
        if isinstance(node, ast.ClassDef)
    }
    for ours, blocking in PAIRS:
        stub = classes[blocking.__name__]
        own = {name: each for name, each in vars(blocking).items() if name in public(blocking)}
        own |= {"__iter__": vars(blocking)["__iter__"]} if "__iter__" in vars(blocking) else {}
        source = inspect.getsource(ours)
        assert own.keys() <= stub.keys(), blocking
        for name in stub.keys() - own.keys():  # what the target sets for itself
            assert re.search(rf"^        self\.{name}\b.* = ", source, re.MULTILINE), name
        for name, member in own.items():
            if inspect.isfunction(member):
                arguments = stub[name].args
                every = (
                    *arguments.args,
                    arguments.vararg,
                    *arguments.kwonlyargs,
                    arguments.kwarg,
                )
                names = [each.arg for each in every if each is not None]
                assert names == list(inspect.signature(member).parameters), name


OPTIONAL = object()
"""The default of an argument that a `TypedDict` names, which has none."""


def arguments_of(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return the parameters; `**options: Unpack[SomeKeywords]` are those that it names."""
    arguments: dict[str, inspect.Parameter] = {}
    for name, each in inspect.signature(function).parameters.items():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            (keywords,) = typing.get_args(each.annotation)
            arguments |= {
                key: inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=OPTIONAL)
                for key in keywords.__annotations__
            }
        else:
            arguments[name] = each
    return arguments


@pytest.mark.parametrize(("ours", "blocking"), PAIRS, ids=lambda kind: kind.__name__)
def test_every_public_method_is_there_with_the_same_arguments(
    ours: type, blocking: type[Blocking]
) -> None:
    assert public(ours) <= public(blocking)
    for name in public(ours):
        theirs = getattr(ours, name)
        if inspect.isfunction(theirs):
            wanted = arguments_of(theirs)
            given = arguments_of(getattr(blocking, name))
            assert list(given) == list(wanted), name
            assert [p.kind for p in given.values()] == [p.kind for p in wanted.values()], name
            for argument, parameter in wanted.items():
                expected = given[argument].default
                assert parameter.default in (expected, OPTIONAL), f"{name}({argument})"


@pytest.mark.parametrize(("ours", "blocking"), PAIRS, ids=lambda kind: kind.__name__)
def test_what_a_method_returns_is_what_the_asynchronous_one_gives(
    ours: type, blocking: type[Blocking]
) -> None:
    names = {**vars(a1_values), "Library": Library}  # what annotations have as text
    for name, method in inspect.getmembers(ours, inspect.isfunction):
        if name not in public(ours) or method is not vars(ours).get(name):
            continue
        said = typing.get_type_hints(method, localns=names)["return"]
        given = typing.get_type_hints(getattr(blocking, name), localns=names)["return"]
        if said is Teaching:
            assert given == BlockingBlock[BlockingTake]
        elif said is Leading:
            assert given == BlockingBlock[BlockingMirroring]
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
def test_help_speaks_of_blocking_calls(blocking: type[Blocking]) -> None:
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
