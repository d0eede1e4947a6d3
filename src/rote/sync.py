"""The same API, blocking: for scripts, notebooks, and programs that run a loop already.

    with rote.sync.connect("sim://g1") as robot:
        with robot.teach("wave") as take:
            input("Move the arms, then press Enter.")
        robot.play("wave", speed=0.8)

In a notebook, where a block would have to be one cell, `open` and `close` do the same:

    robot = rote.sync.open("sim://g1")
    robot.play("wave")
    robot.close()

Every call runs on an event loop in its own thread. `robot.play` blocks until the motion is over.
`robot.start` returns as soon as the robot has accepted; its result has `stop`, `wait` and
`progress`. Functions that you give to `on_state` and the like are called in that thread.

The classes get their members from the asynchronous ones when this module is imported. For type
checkers and editors the build makes a stub, sync.pyi, with scripts/generate/sync_stub.py.
"""

import functools
from typing import Any, Unpack

from rote.blocking import (
    Blocking,
    BlockingBlock,
    BlockingConnection,
    Closable,
    LoopThread,
    proxy_of,
)
from rote.connection import Options
from rote.connection import connect as _connect
from rote.robot.leading import Mirroring
from rote.robot.playing import Playing
from rote.robot.robot import Audio, Modes, Robot
from rote.robot.take import Take
from rote.transport.wires import EMBEDDED

__all__ = [
    "connect", "open", "Blocking", "BlockingAudio", "BlockingBlock", "BlockingConnection",
    "BlockingA1", "BlockingA1Modes",  # noqa: F822 - made when first used
    "BlockingG1", "BlockingMirroring", "BlockingModes", "BlockingPlaying", "BlockingRobot",
    "BlockingTake",
]  # fmt: skip

_DOCS = {
    "Robot.teach": """Teach a motion: joints are soft inside the `with` block and hold again
        after it.

        The block's value is a `BlockingTake`. `overwrite` replaces an action of the same name,
        `force` skips rote's own checks, a `library` keeps the take on this computer's disk. Raises
        `BadRequestError` for an impossible name, and on entering `CautionError` or `RefusedError`
        if teaching is not possible now.""",
    "Robot.lead": """Let the arms of other robots follow this one inside the `with` block.

        The arms of this robot are soft meanwhile and a person moves them. A robot that plays is
        only watched; `soft` overrides this. With `mirrored`, left and right are exchanged. The
        block's value is a `BlockingMirroring`: its `wait` returns False if a robot was lost or
        stopped, and leaving the block raises the reason. However it ends, the soft arms hold again
        and the followers come to rest softly.""",
    "Robot.states": """Iterate over the robot's states as they arrive.

        Raises `LinkError` when the robot is lost.""",
    "Robot.play": """Play a taught action, by its name or by its number in the list, and
        return its report when it is over.

        Ctrl-C stops the robot softly. `start` returns at once, for a motion to be watched or
        stopped.""",
    "Robot.start": """Begin to play a taught action, and return when the robot has accepted;
        raise if it refuses.

        Iterate over the result to watch the playback, or call its `stop`. Arguments are those of
        `play`.""",
    "Robot.play_track": """Play a track of this computer, and return its report when it is
        over.

        `rate_hz` poses per second are sent; `speed` is a factor. The track is checked first: errors
        raise `UnsafeMotionError`, warnings `WarnedMotionError` unless `force` is true. A track of
        another build raises `OtherBuildError`; with `mapped` it is played by joint names. Joints of
        hands are played only with `hands`. A `checked` result for this very track is reused. Ctrl-C
        stops the robot softly.""",
    "Modes.stand": "Bring the robot into a balanced stand, and return when it stands.",
    "Modes.lie_down": "Make the robot lie down. It returns when the command is sent.",
    "A1.teach": """Teach a motion: the legs are soft inside the `with` block, and braked after
        it.

        The robot must lie or hang: soft legs carry nothing, and `force` does not change that. An A1
        stores no motions, so the take is on this computer only; with a `library` it is on its disk
        while it is recorded. Arguments and errors are those of `BlockingRobot.teach`.""",
    "A1.play_track": """Play a track of the twelve joints, hold its last pose, and return the
        report.

        The options are those of `BlockingRobot.play_track`, with these differences: the track is
        always checked, even with `checked`; legs are always driven 500 times a second; and warnings
        do not prevent playing. Ctrl-C stops the robot.""",
    "A1Modes.damp": """Make the legs go limp softly, at once: all motors damp themselves. The robot
        sinks.

        This is the robot's emergency stop, so it never asks for confirmation: `yes` has no effect.
        The high level of dialect 3.2 has no such command; there the robot stands.""",
    "A1Modes.stand": "Stand upright on the spot, and return when it stands; a lying robot gets up.",
    "A1Modes.lie_down": "Lie down; dialect 3.2 cannot. It returns when the command is sent.",
    "A1.states": """Iterate over the states as they arrive; a slow reader misses some.

        Raises `LinkError` when the robot is lost.""",
    "A1.native_states": """Iterate over the states as the robot sends them; a slow reader
        misses some.

        Raises `LinkError` when the robot is lost.""",
    "Playing.__aiter__": "Iterate over the progress until the playback is over.",
    "Playing.wait": """Wait for the end, soft return included, and return the report.

        Ctrl-C during the wait does not stop the robot.""",
}
"""Docstrings of blocking methods that differ from the asynchronous ones."""


@proxy_of(Take, _DOCS, without=frozenset({"add"}))
class BlockingTake(Blocking):
    """A take, as `with robot.teach(...) as take` has it. Its `track` is the recording."""


@proxy_of(Playing, _DOCS)
class BlockingPlaying(Blocking):
    """What `robot.start` returns: iterate over it to watch, `wait` for the end, or `stop` it."""


@proxy_of(Mirroring, _DOCS, without=frozenset({"interrupt"}))
class BlockingMirroring(Blocking):
    """The value of `with robot.lead(...)`: how the followers follow; `wait` while they do."""


@proxy_of(Modes, _DOCS)
class BlockingModes(Blocking):
    """The posture modes of a robot: `robot.modes`."""


@proxy_of(Audio, _DOCS)
class BlockingAudio(Blocking):
    """The voice, light, loudspeaker and microphone of a robot: `robot.audio`."""


@proxy_of(Robot, _DOCS)
class BlockingRobot(Closable):
    """One connected robot, as `rote.sync.connect` and `rote.sync.open` return it."""


class BlockingG1(BlockingRobot):
    """One connected G1, as `rote.sync.connect(url, family="g1")` returns it."""


@functools.cache
def _make_blocking_a1_modes() -> type[BlockingModes]:
    from rote.robot.quadruped.modes import A1Modes  # noqa: PLC0415 - not needed for a G1

    @proxy_of(A1Modes, _DOCS)
    class BlockingA1Modes(BlockingModes):
        """The posture modes of an A1 or Go1: `robot.modes`."""

    BlockingA1Modes.__qualname__ = "BlockingA1Modes"
    return BlockingA1Modes


@functools.cache
def _make_blocking_a1() -> type[BlockingRobot]:
    from rote.robot.quadruped.robot import A1  # noqa: PLC0415 - not needed for a G1

    _make_blocking_a1_modes()  # which `BlockingA1.modes` returns

    @proxy_of(A1, _DOCS)
    class BlockingA1(BlockingRobot):
        """One connected A1 or Go1, as `rote.sync.connect(url, family="a1")` returns it."""

    BlockingA1.__qualname__ = "BlockingA1"
    return BlockingA1


def __getattr__(name: str) -> Any:
    if name == "BlockingA1":
        return _make_blocking_a1()
    if name == "BlockingA1Modes":
        return _make_blocking_a1_modes()
    raise AttributeError(f"module 'rote.sync' has no attribute {name!r}")


def connect(
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> BlockingConnection[BlockingRobot]:
    """Connect to the robot at `url` for as long as the `with` block runs.

    Arguments and errors are those of `rote.connect`. The block's value is a `BlockingRobot`: the
    same methods, without `await`. With `family="g1"` or `family="a1"` it is a `BlockingG1` or a
    `BlockingA1`, which a type checker then knows too.
    """
    return BlockingConnection(
        LoopThread(), _connect(url, family=family, **options), _make_robot_proxy
    )


def open(  # noqa: A001 - as `gzip.open`: it is called `rote.sync.open`
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> BlockingRobot:
    """Connect to the robot at `url` until `close` is called: for notebooks and interactive use.

    Arguments and errors are those of `rote.connect`. A robot that is never closed is closed when
    the interpreter ends: joints that are being taught hold, a playback stops softly.
    """
    connection = connect(url, family=family, **options)
    return connection.__enter__()._keep_open(connection)


def _make_robot_proxy(thread: LoopThread, robot: Robot) -> BlockingRobot:
    if robot.build.family == "a1":
        return _make_blocking_a1()(thread, robot)
    return (BlockingG1 if robot.build.family == "g1" else BlockingRobot)(thread, robot)
