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
"""

from typing import TYPE_CHECKING, Literal, Unpack, overload

from rote.blocking import Blocking, BlockingConnection, LoopThread
from rote.blocking_robots import BlockingG1, BlockingRobot
from rote.connection import Options
from rote.connection import connect as _connect
from rote.robot.robot import Robot
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.blocking_a1 import BlockingA1

__all__ = ["connect", "open", "Blocking"]


@overload
def connect(
    url: str, *, family: Literal["a1"], **options: Unpack[Options]
) -> "BlockingConnection[BlockingA1]": ...


@overload
def connect(
    url: str = EMBEDDED, *, family: Literal["g1"], **options: Unpack[Options]
) -> BlockingConnection[BlockingG1]: ...


@overload
def connect(
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> BlockingConnection[BlockingRobot]: ...


def connect(
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> BlockingConnection[BlockingRobot]:
    """Connect to the robot at `url` for as long as the `with` block runs.

    Arguments and errors are those of `rote.connect`. The block's value is a `BlockingRobot`: the
    same methods, without `await`. With `family="g1"` or `family="a1"` it is a `BlockingG1` or a
    `BlockingA1`, which a type checker then knows too.
    """
    return BlockingConnection(LoopThread(), _connect(url, family=family, **options), _face)


@overload
def open(url: str, *, family: Literal["a1"], **options: Unpack[Options]) -> "BlockingA1": ...  # noqa: A001


@overload
def open(  # noqa: A001
    url: str = EMBEDDED, *, family: Literal["g1"], **options: Unpack[Options]
) -> BlockingG1: ...


@overload
def open(  # noqa: A001
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> BlockingRobot: ...


def open(  # noqa: A001 - as `gzip.open`: it is called `rote.sync.open`
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> BlockingRobot:
    """Connect to the robot at `url` until `close` is called: for notebooks and interactive use.

    Arguments and errors are those of `rote.connect`. A robot that is never closed is closed when
    the interpreter ends: joints that are being taught hold, a playback stops softly.
    """
    connection = connect(url, family=family, **options)
    return connection.__enter__()._keep_open(connection)


def _face(thread: LoopThread, robot: Robot) -> BlockingRobot:
    if robot.build.family == "a1":
        from rote.blocking_a1 import BlockingA1  # noqa: PLC0415 - not needed for a G1

        return BlockingA1(thread, robot)
    return (BlockingG1 if robot.build.family == "g1" else BlockingRobot)(thread, robot)
