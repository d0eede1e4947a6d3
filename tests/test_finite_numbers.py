"""Every number of the public API that reaches a timer, a rate or a joint must be finite.

The parameters are read from the signatures: one that is added later is tried too, or fails here
until it has an example.
"""

import asyncio
import inspect
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from typing import Any, cast, get_args, get_type_hints, is_typeddict

import numpy as np
import pytest

import rote
import virtual
from a1_rig import is_damping, pair
from rig import rig
from rote.connection import Options
from rote.messages import COMPENSATIONS
from rote.model.a1 import A1 as A1_FAMILY
from rote.model.a1 import A1_STAND_RAD
from rote.model.g1 import G1_29
from rote.motion.track import Track
from rote.robot.following import Following
from rote.robot.quadruped.bot import Bot
from rote.robot.quadruped.robot import A1
from rote.robot.quadruped.safety import A1SafetyLimits, Safety
from rote.robot.robot import Robot
from rote.robot.ticker import TimedStart
from rote.session.a1 import Level
from rote.sim.world import World
from rote.stage.leads import check_lead
from rote.stage.stage import Stage
from rote.wire.a1.motors import MotorCmds
from rote.wire.a1.values import HighCmd, LowState
from scripted_tracks import make_scripted_track

NOT_FINITE = (math.nan, math.inf, -math.inf)
_NAMED = re.compile(r"\bnan\b|\binf\b|number|possible|finite|infinity")
"""The error is about the number, not about something else in the call."""
Call = Callable[..., Any]
Examples = Mapping[str, Mapping[str, Any]]


def g1_track() -> Track:
    """Return a slow swing of one elbow."""
    times = np.arange(101) / 100
    poses = np.zeros((101, len(G1_29.names)))
    return Track(times_s=times, joints_rad=poses, names=G1_29.names, variant="g1-29")


def a1_track() -> Track:
    times = np.arange(101) / 100
    return Track(
        times_s=times,
        joints_rad=np.tile(A1_STAND_RAD, (101, 1)),
        names=A1_FAMILY.names,
        variant="a1",
        source="stand",
    )


def float_parameters(function: Call) -> tuple[str, ...]:
    """Return the parameters of a function that are numbers, or rows or tables of numbers."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # a method of a built-in type
        return ()
    annotations: dict[str, object] = {}
    for name, parameter in signature.parameters.items():
        annotations[name] = parameter.annotation
        for keywords in get_args(parameter.annotation):
            # `**options: Unpack[SomeKeywords]`; those of a track are its fields.
            if is_typeddict(keywords) and not keywords.__name__.startswith("_"):
                annotations |= keywords.__annotations__
    return tuple(
        name
        for name, annotation in annotations.items()
        if "float" in str(annotation) and "Callable" not in str(annotation)
    )


def methods_with_floats(owner: type) -> dict[str, tuple[str, ...]]:
    public = (name for name in dir(owner) if not name.startswith("_"))
    functions = ((name, getattr(owner, name)) for name in public)
    found = ((name, float_parameters(f)) for name, f in functions if inspect.isroutine(f))
    return {name: parameters for name, parameters in found if parameters}


def spoiled(value: Any, number: float) -> Any:
    """Return an argument with a number in it that is not finite."""
    if isinstance(value, Mapping):
        return dict.fromkeys(value, number)
    if isinstance(value, Sequence | np.ndarray):
        rows = isinstance(value[0], list)
        return [spoiled(value[0], number) if rows else number, *value[1:]]
    return number


def cases(owner: type, examples: Examples) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield a method, a parameter, and arguments with which only that one is not finite."""
    for method, parameters in methods_with_floats(owner).items():
        example = examples[method]
        for parameter in parameters:
            for number in NOT_FINITE:
                value = spoiled(example.get(parameter, 1.0), number)
                rest = {name: each for name, each in example.items() if name != parameter}
                if method in ("play", "start"):  # speed and duration exclude each other
                    rest.pop("speed" if parameter == "duration" else "duration", None)
                yield method, parameter, {**rest, parameter: value}


async def refuses(call: Callable[[], Any]) -> bool:
    """Whether a call, its awaiting or its block is refused at once."""
    try:
        async with asyncio.timeout(5.0):
            result = call()
            if hasattr(result, "__aenter__"):
                async with result:
                    return False
            if isinstance(result, Awaitable):
                await result
    except rote.UnsupportedError:
        return True
    except (rote.RoteError, ValueError, OverflowError) as error:
        return bool(_NAMED.search(str(error).lower()))
    except TimeoutError:
        return False
    return False


ROBOT: Examples = {
    "teach": {"name": "mine", "compensation": [0.0] * COMPENSATIONS},
    "save": {"name": "mine", "duration_s": 1.0},
    "play": {"name": "stored 0"},
    "start": {"name": "stored 0"},
    "play_track": {},
    "move_by_hand": {"script": "wave", "seconds": 1.0},
    "follow": {},
}


@pytest.mark.parametrize("wire", ["memory", "services", "dds"])
def test_a_robot_refuses_numbers_that_are_not_finite_and_does_not_move(wire: str) -> None:
    async def main() -> list[str]:
        accepted = []
        async with rig(wire) as one, one.connect() as robot:
            examples = {**ROBOT, "play_track": {"track": g1_track()}}
            assert methods_with_floats(Robot).items() <= methods_with_floats(type(robot)).items()
            one.fill(1)
            before = one.world.state().joints_rad
            for method, parameter, arguments in cases(type(robot), examples):
                if not await refuses(partial(getattr(robot, method), **arguments)):
                    accepted.append(f"{method}({parameter}={arguments[parameter]})")
                    await robot.stop()
            await asyncio.sleep(2.0)
            if not accepted:
                assert one.world.state().joints_rad == pytest.approx(before, abs=0.01)
        return accepted

    assert virtual.run(main()) == []


A1_EXAMPLES: Examples = {
    **ROBOT,
    "control": {"step": lambda *_: None, "period_s": 0.002},
    "move_to": {"joints_rad": list(A1_STAND_RAD)},
    "play_track": {"track": a1_track()},
    "pose": {},
    "walk": {},
    "send_command": {"command": HighCmd(mode=2), "hold_s": 0.1},
}
BOT: Examples = {
    "go": {"predicate": lambda _: True, "limit_s": 1.0},
    "lie_down": {},
    "stand": {},
    "pose": {},
    "turn": {"angle_rad": 1.0},
    "until": {"predicate": lambda _: True, "limit_s": 1.0},
    "wait": {"seconds": 1.0},
    "walk": {"forward_m": 1.0},
}


@pytest.mark.parametrize("level", list(Level))
def test_an_a1_refuses_numbers_that_are_not_finite_and_does_not_move(level: Level) -> None:
    async def main() -> list[str]:
        accepted = []
        async with pair(level, start="stand" if level is Level.HIGH else "hung") as rigged:
            world, _, robot = rigged
            tries: list[tuple[type, object, Examples]] = [(A1, robot, A1_EXAMPLES)]
            if level is Level.HIGH:
                tries.append((Bot, Bot(robot), BOT))
            before = len(world.told)
            for owner, one, examples in tries:
                for method, parameter, arguments in cases(owner, examples):
                    if not await refuses(partial(getattr(one, method), **arguments)):
                        accepted.append(f"{method}({parameter}={arguments[parameter]})")
                        robot.arm()
            await asyncio.sleep(0.1)
            if not accepted:
                idle = [getattr(each, "mode", 0) == 0 for _, each in world.told[before:]]
                damps = [is_damping(each) for _, each in world.told[before:]]
                assert all(idle if level is Level.HIGH else damps)
            assert robot.trouble is None
        return accepted

    assert virtual.run(main()) == []


POSE = {"left_elbow_joint": 0.1}
TRACK: Examples = {
    "beat": {"bpm": 60.0},
    "blend": {"other": g1_track(), "weight": 0.5},
    "change_mark": {"time_s": 0.5, "label": "here"},
    "check": {},
    "close_loop": {"seconds": 0.5},
    "concatenate": {"other": g1_track()},
    "cross_fade": {"other": g1_track(), "overlap_s": 0.5},
    "keyframe": {"time_s": 0.5, "pose": POSE},
    "mark": {"time_s": 0.5, "label": "there"},
    "merge": {"parts": [[0.5, 1.0]]},
    "move_hand": {
        "hand": "right",
        "by": [0.0, 0.0, 0.01],
        "through": [[0.5, 0.3, -0.2, 0.2]],
        "start_s": 0.1,
        "end_s": 0.9,
        "blend_s": 0.2,
    },
    "remove_mark": {"time_s": 0.5},
    "resample": {"rate_hz": 50.0},
    "retime": {},
    "smooth": {"cutoff_hz": 5.0},
    "speed": {"factor": 2.0},
    "through": {"time_s": 0.5, "pose": POSE},
    "trim": {},
    "warp": {"moves": [[0.5, 0.6]]},
}


def test_a_track_takes_no_number_that_is_not_finite() -> None:
    track = g1_track().mark(0.5, "here")
    accepted = [
        f"{method}({parameter}={arguments[parameter]})"
        for method, parameter, arguments in cases(Track, TRACK)
        if not virtual.run(refuses(partial(getattr(track, method), **arguments)))
    ]
    for field in ("times_s", "joints_rad"):
        for number in NOT_FINITE:
            rows = getattr(track, field).copy()
            rows[50] = number
            changed = {"times_s": track.times_s, "joints_rad": track.joints_rad, field: rows}
            make = partial(Track, names=track.names, variant="g1-29", **changed)
            if not virtual.run(refuses(make)):
                accepted.append(f"Track({field}={number})")
    assert accepted == []


def test_a_learned_motion_takes_no_number_that_is_not_finite() -> None:
    track = make_scripted_track()
    model = rote.learn([track, track, track])
    for number in NOT_FINITE:
        for values in (
            {"start": {track.names[0]: number}},
            {"end": {track.names[0]: number}},
            {"duration_s": number},
            {"through": [rote.HandPoint(number, 0.3, -0.2, 0.2)]},
            {"through": [rote.HandPoint(0.5, 0.3, number, 0.2)]},
        ):
            assert virtual.run(refuses(partial(model.adapt, **values))), values


def idle() -> None:
    """Do nothing, in a loop."""


OTHERS: dict[str, tuple[Call, Mapping[str, Any]]] = {
    "check": (rote.check, {"track": g1_track(), "start_pose": [0.0] * len(G1_29.names)}),
    "LoopFunc": (rote.LoopFunc.__init__, {"name": "loop", "period_s": 0.01, "function": idle}),
    "MotorCmds.servo": (MotorCmds.servo, {"q_rad": [0.0] * 12}),
    "Safety.check": (Safety().check, {"state": LowState()}),
    "A1SafetyLimits": (A1SafetyLimits, {}),
    "TimedStart": (TimedStart, {}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_else_takes_a_number_that_is_not_finite(name: str) -> None:
    function, example = OTHERS[name]
    call = rote.LoopFunc if name == "LoopFunc" else function

    async def main() -> list[str]:
        accepted = []
        parameters = float_parameters(function)
        assert parameters
        for parameter in parameters:
            for number in NOT_FINITE:
                value = spoiled(example.get(parameter, 1.0), number)
                if not await refuses(partial(call, **{**example, parameter: value})):
                    accepted.append(f"{name}({parameter}={number})")
        return accepted

    assert virtual.run(main()) == []


async def serve_dds(number: float) -> None:
    async with rig("memory") as one:
        await one.simulator.serve_dds("lo", 77, lowstate_hz=number)


@pytest.mark.parametrize("number", NOT_FINITE)
def test_no_simulated_robot_is_made_with_such_a_number(number: float) -> None:
    assert float_parameters(rote.Simulator.serve_dds) == ("lowstate_hz",)
    assert virtual.run(refuses(lambda: serve_dds(number)))

    async def advance() -> None:
        async with rig("memory") as one:
            one.world.advance(number)

    assert virtual.run(refuses(advance))


def test_joints_that_are_followed_are_finite() -> None:
    held = {"pause": ("at_s",), "resume": ("at_s",)}
    assert methods_with_floats(Following) == {"aim": ("joints_rad",), **held}

    async def main() -> None:
        async with rig("dds") as one, one.connect() as robot:
            following = await robot.follow()
            await asyncio.sleep(1.5)
            before = one.world.state().joints_rad
            for number in NOT_FINITE:
                for never in (following.pause, following.resume):
                    with pytest.raises(rote.BadRequestError):
                        never(number)
                aim = partial(following.aim, {"left_elbow_joint": number})
                assert await refuses(aim), number
                await asyncio.sleep(0.2)
                assert one.world.state().joints_rad == pytest.approx(before, abs=0.01), number
            await following.stop()

    virtual.run(main())


@pytest.mark.parametrize("number", NOT_FINITE)
def test_a_motion_is_paused_and_resumed_at_no_time_that_is_not_finite(number: float) -> None:
    async def main() -> None:
        async with rig("dds") as one, one.connect() as robot:
            at_s = asyncio.get_running_loop().time() + 4.0
            playing = robot.play_track(make_scripted_track(seconds=3.0), at=at_s)
            async with asyncio.timeout(10.0):
                while not playing.can_pause:
                    await asyncio.sleep(0.05)
            assert await refuses(partial(playing.pause, number))
            playing.pause(asyncio.get_running_loop().time())
            await asyncio.sleep(0.5)
            assert await refuses(partial(playing.resume, number))
            await robot.stop()

    virtual.run(main())


@pytest.mark.parametrize("number", NOT_FINITE)
def test_a_show_is_played_at_no_pace_that_is_not_finite(number: float) -> None:
    paced = {"play": ("pace",), "sections": ("pace",)}
    assert methods_with_floats(Stage) == {**paced, "set_offset": ("seconds",)}
    assert virtual.run(refuses(partial(check_lead, number)))
    nowhere = cast("Stage", None)  # the pace is checked before anything is asked of the stage

    async def sections() -> None:
        async for _ in Stage.sections(nowhere, "show.toml", {}, pace=number):
            raise AssertionError

    assert virtual.run(refuses(sections))


async def start_at(number: float) -> None:
    TimedStart().at(number)


async def start_later_by(number: float) -> None:
    TimedStart().release(number)


@pytest.mark.parametrize("number", NOT_FINITE)
def test_a_start_that_is_told_later_is_finite_too(number: float) -> None:
    assert virtual.run(refuses(lambda: start_at(number)))
    assert virtual.run(refuses(lambda: start_later_by(number)))


NUMBERED_OPTIONS = [
    name
    for name, hint in get_type_hints(Options, localns={"World": World}).items()
    if "float" in str(hint)
]
CONNECTS: dict[str, Callable[..., Any]] = {
    "connect": partial(rote.connect, "sim://g1"),
    "open": partial(rote.open, "sim://g1"),
    "connect an A1": partial(rote.connect, "sim://a1"),
    "connect_a1": partial(rote.connect_a1, "sim://a1"),
    "sync.connect": partial(rote.sync.connect, "sim://g1"),
    "sync.open": partial(rote.sync.open, "sim://g1"),
}


@pytest.mark.parametrize("number", NOT_FINITE)
@pytest.mark.parametrize("how", CONNECTS)
def test_no_connection_is_made_with_a_time_that_is_not_finite(how: str, number: float) -> None:
    assert NUMBERED_OPTIONS == ["timeout"]
    if not how.startswith("sync"):
        assert virtual.run(refuses(partial(CONNECTS[how], timeout=number)))
        return
    with pytest.raises(rote.BadRequestError, match="timeout"), CONNECTS[how](timeout=number):
        pass


RESULTS = {"PlayReport", "StreamReport", "Progress", "Finding", "Take", "RobotState", "Keyframe"}
"""What the package itself makes; a robot is not told it."""
TRIED = {"Robot", "G1", "A1", "Bot", "Track", "check", "connect_a1", "LoopFunc", "Safety"}
TRIED |= {"MotorCmds", "Simulator", "World", "connect", "open", "MotionModel", "Streaming"}
COMMANDS = {"HighCmd", "ScaledHighCmd", "HighState", "LowCmd", "LowState", "MotorCmd", "MotorState"}
"""Records of a wire; their numbers are checked when they are sent: test_robot_a1_send.py."""


def test_every_public_name_with_numbers_is_tried() -> None:
    numbered = set()
    for name in rote.__all__:
        one = getattr(rote, name)
        if inspect.isclass(one) and not issubclass(one, BaseException):
            has_fields = is_dataclass(one) and any(
                "float" in str(t) for t in one.__annotations__.values()
            )
            if has_fields or methods_with_floats(one):
                numbered.add(name)
        elif inspect.isfunction(one) and float_parameters(one):
            numbered.add(name)
    assert numbered - RESULTS - TRIED - COMMANDS == set()


def test_a_blocking_robot_has_no_number_that_the_other_has_not() -> None:
    from rote.sync import BlockingA1, BlockingRobot

    for blocking, other in ((BlockingRobot, Robot), (BlockingA1, A1)):
        own = methods_with_floats(blocking)
        assert own == {name: methods_with_floats(other)[name] for name in own}
