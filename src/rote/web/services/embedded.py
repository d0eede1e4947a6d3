"""The simulated robot in this process, with what its wire does not offer: dragging, presets."""

import math
from dataclasses import replace

import numpy as np

from rote import messages as m
from rote.connection import embedded_of
from rote.errors import BadRequestError, RefusedError
from rote.messages import Code, RobotState
from rote.model.family import Build
from rote.motion.track import Array
from rote.robot.api_values import Preset
from rote.sim.presets import presets_of
from rote.sim.store import Store
from rote.sim.world import World

ABILITIES = frozenset({"drag", "presets"})
_PULL_RAD_S = 2.5
_MARGIN_RAD = 0.02
_CALLER = "the web UI"


class DragHand:
    """A hand that pulls one joint after the other, softly, and keeps holding those it has released.

    The target may jump with a finger on a screen; the hand goes there at a moderate speed.
    """

    def __init__(self, build: Build) -> None:
        self._build = build
        self._pose: dict[int, float] = {}
        self._wanted: dict[int, float] = {}
        self._last_s = 0.0

    def pull(self, joint: int, value_rad: float, now_rad: float) -> None:
        """Pull `joint`, a column now at `now_rad`, to `value_rad`, within its limits."""
        self._pose.setdefault(joint, now_rad)
        limits = self._build.joints[joint]
        low, high = limits.lower_rad + _MARGIN_RAD, limits.upper_rad - _MARGIN_RAD
        self._wanted[joint] = min(max(value_rad, low), high)

    def grip(self, time_s: float) -> Array | None:
        """Return the target positions of the joints it holds, NaN for the others."""
        most = _PULL_RAD_S * max(time_s - self._last_s, 0.0)
        self._last_s = time_s
        grip: Array = np.full(len(self._build.joints), np.nan)
        for joint, wanted in self._wanted.items():
            self._pose[joint] += min(max(wanted - self._pose[joint], -most), most)
            grip[joint] = self._pose[joint]
        return grip


class Embedded:
    """One simulated robot and its store."""

    def __init__(self, url: str) -> None:
        build, path = embedded_of(url)
        self.store = Store(path)
        self.world = World(self.store, build=build)
        self._hand: DragHand | None = None

    def close(self) -> None:
        """Close the store."""
        self.store.close()

    def drag(self, name: str | None, value_rad: float) -> None:
        """Pull a joint by its name; None releases all."""
        if name is None:
            self._hand = None
            self.world.attach(None)
            return
        build = self.world.build
        if name not in build.taught or not math.isfinite(value_rad):
            raise BadRequestError(
                f"{name!r} cannot be pulled", f"Soft are {', '.join(build.taught)}."
            )
        joint = build.names.index(name)
        if self._hand is None:
            self._hand = DragHand(build)
            self.world.attach(self._hand)
        self._hand.pull(joint, value_rad, float(self.world.body.joints_rad[joint]))

    def release_hand(self) -> None:
        """Forget the hand: the teaching has ended, or another hand has replaced it."""
        self._hand = None

    def with_health(self, state: RobotState) -> RobotState:
        """Return a state with what the wire leaves out: health, and whether a pose is held."""
        health = self.world.health
        return replace(
            state,
            battery_percent=round(health.battery_percent, 1),
            temperatures_c=tuple(health.temperatures_c.tolist()),
            faults=health.messages,
            holding=self.world.holding,
        )

    @property
    def presets(self) -> tuple[Preset, ...]:
        """The factory actions, which the embedded robot's own wire does not list."""
        return tuple(Preset(preset.id, preset.name) for preset in presets_of(self.world.build))

    def perform(self, preset: int) -> None:
        """Begin a factory action, which the robot's own wire cannot do, or raise `RefusedError`."""
        reply = self.world.obey(_CALLER, m.PlayPreset(preset))
        assert isinstance(reply, m.Status)
        if reply.code != Code.OK:
            raise RefusedError(reply.code, *m.explain(reply.code))
