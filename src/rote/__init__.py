"""Teach a Unitree robot a motion by hand and play it back.

    async with rote.connect("sim://g1") as robot:
        async with robot.teach("wave") as take:      # the arms are soft inside the block
            await asyncio.sleep(8)                   # a person moves them
        await robot.play("wave")

    wave = rote.load("wave.mcap").trim(auto=True).smooth()

`rote.sync` is the same API with blocking calls. In a notebook use `rote.sync.open` or
`await rote.open`, and `close`. The names below are imported when first used, so that importing rote
is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rote import sync
    from rote.connection import connect, connect_a1, open  # noqa: A004 - it is called `rote.open`
    from rote.errors import (
        BadRequestError,
        BusyError,
        DecodeError,
        ImportedMotionError,
        LinkError,
        MissingExtraError,
        NoAnswerError,
        OtherBuildError,
        PeerLostError,
        ProtectionError,
        ProtocolError,
        RefusedError,
        RoteError,
        StageError,
        StoreError,
        TimeLimitError,
        UnsafeMotionError,
        UnsupportedError,
        WarnedMotionError,
    )
    from rote.findings import Finding, Severity
    from rote.messages import Code, Interpolation, Keyframe, Phase, RobotState
    from rote.model.g1 import Mode
    from rote.model.registry import joint_names
    from rote.motion.check.rules import check
    from rote.motion.files import load, save
    from rote.motion.files.library import Library, library
    from rote.motion.learn import HandPoint, MotionModel, learn
    from rote.motion.track import Track
    from rote.robot.api_values import Actions, PlayReport, Progress, StreamReport
    from rote.robot.message_robot import G1
    from rote.robot.playing import Playing
    from rote.robot.quadruped.bot import Bot
    from rote.robot.quadruped.loop import LoopFunc
    from rote.robot.quadruped.robot import A1
    from rote.robot.quadruped.safety import Safety
    from rote.robot.robot import Robot
    from rote.robot.streaming import Streaming
    from rote.robot.take import Take
    from rote.sim.server import Simulator
    from rote.sim.store import Store
    from rote.sim.world import World
    from rote.stage.stage import open_stage
    from rote.wire.a1.motors import MotorCmd, MotorCmds, MotorState
    from rote.wire.a1.values import HighCmd, HighState, Led, LowCmd, LowState, ScaledHighCmd

__version__ = "0.2.0"

_NAMES_BY_MODULE: dict[str, tuple[str, ...]] = {
    "rote.stage.stage": ("open_stage",),
    "rote.connection": ("connect", "connect_a1", "open"),
    "rote.errors": (
        "RoteError", "BadRequestError", "DecodeError", "ProtocolError", "LinkError",
        "NoAnswerError", "PeerLostError", "StageError", "BusyError", "RefusedError",
        "UnsafeMotionError", "UnsupportedError", "MissingExtraError", "StoreError",
        "ProtectionError", "TimeLimitError", "WarnedMotionError", "OtherBuildError",
        "ImportedMotionError",
    ),
    "rote.messages": ("Code", "Interpolation", "Keyframe", "Phase", "RobotState"),
    "rote.model.g1": ("Mode",),
    "rote.model.registry": ("joint_names",),
    "rote.motion.check.rules": ("check",),
    "rote.motion.files": ("load", "save"),
    "rote.motion.files.library": ("Library", "library"),
    "rote.motion.learn": ("HandPoint", "MotionModel", "learn"),
    "rote.motion.track": ("Track",),
    "rote.robot.quadruped.robot": ("A1",),
    "rote.findings": ("Finding", "Severity"),
    "rote.robot.api_values": ("Actions", "PlayReport", "Progress", "StreamReport"),
    "rote.robot.quadruped.bot": ("Bot",),
    "rote.robot.message_robot": ("G1",),
    "rote.robot.quadruped.loop": ("LoopFunc",),
    "rote.robot.playing": ("Playing",),
    "rote.robot.quadruped.safety": ("Safety",),
    "rote.robot.streaming": ("Streaming",),
    "rote.robot.robot": ("Robot",),
    "rote.robot.take": ("Take",),
    "rote.sim.server": ("Simulator",),
    "rote.sim.store": ("Store",),
    "rote.sim.world": ("World",),
    "rote.wire.a1.motors": ("MotorCmd", "MotorCmds", "MotorState"),
    "rote.wire.a1.values": (
        "HighCmd", "HighState", "Led", "LowCmd", "LowState", "ScaledHighCmd",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names}

__all__ = [
    "connect", "open", "connect_a1", "open_stage", "sync",
    "Robot", "G1", "Playing", "PlayReport", "Streaming", "StreamReport", "Progress", "Take",
    "Track", "load", "save", "library", "Library", "check", "joint_names",
    "learn", "MotionModel", "HandPoint",
    "A1", "Bot", "LoopFunc", "Safety",
    "HighCmd", "ScaledHighCmd", "HighState", "LowCmd", "LowState",
    "Led", "MotorCmd", "MotorCmds", "MotorState",
    "Actions", "Finding", "Severity",
    "Code", "Interpolation", "Keyframe", "Mode", "Phase", "RobotState",
    "Simulator", "Store", "World",
    "RoteError", "BadRequestError", "DecodeError", "ProtocolError", "LinkError", "NoAnswerError",
    "PeerLostError", "StageError", "BusyError", "RefusedError", "UnsafeMotionError",
    "UnsupportedError", "MissingExtraError", "StoreError", "ProtectionError", "TimeLimitError",
    "WarnedMotionError", "OtherBuildError", "ImportedMotionError", "__version__",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "sync":
        return import_module("rote.sync")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'rote' has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
