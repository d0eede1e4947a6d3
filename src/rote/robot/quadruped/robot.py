"""An A1 or Go1 quadruped, real or simulated: walk it, drive its joints, teach its legs by hand.

    async with rote.connect("a1://192.168.123.161") as robot:               # the walking controller
        robot.walk(0.3)
        await asyncio.sleep(2)
        await robot.stop()

    async with rote.connect("a1://192.168.123.10?level=low") as robot:      # the motors
        await robot.control(step)

Every command passes a `Safety`. If a protection trips, the robot is damped at once, for at least a
second; the running operation raises `ProtectionError`, and no command is accepted until `arm`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from rote.errors import RoteError
from rote.findings import Finding
from rote.messages import RobotState
from rote.model.a1 import A1 as A1_FAMILY
from rote.model.a1 import A1_BUILD
from rote.model.family import Build, Family
from rote.motion.track import Track
from rote.platform.loop import to_the_end
from rote.robot.api_values import check_name
from rote.robot.link import Unfinished, iterate_states
from rote.robot.play_options import TrackKeywords, TrackOptions
from rote.robot.quadruped import commands as a1_commands
from rote.robot.quadruped.commands import Gait, is_standing, make_standing_robot_error
from rote.robot.quadruped.control import BRAKED, A1RobotClient, State, Step
from rote.robot.quadruped.leg_control import LegControl
from rote.robot.quadruped.loop import LoopStats
from rote.robot.quadruped.modes import A1Modes
from rote.robot.quadruped.motion import SOFT, SoftLegs
from rote.robot.quadruped.playing import LegPlayer, LegPlaying
from rote.robot.quadruped.safety import Safety
from rote.robot.quadruped.status import A1Status, find_problems, make_robot_state, make_status
from rote.robot.take import Take
from rote.robot.teaching import Teaching
from rote.robot.unsupported import CannotRobot
from rote.session.a1 import Level
from rote.wire.a1.motors import LEG_MOTORS, MotorCmds
from rote.wire.a1.values import Command, Dialect, HighState, LowCmd, LowState

if TYPE_CHECKING:
    from rote.motion.files.library import Library

# ---- a teaching ----------------------------------------------------------------------------------

_CLOCK_RANGE = 2**32  # the robot's clock has 32 bits


class LegTeachingBackend:
    """One teaching of an A1. The robot stores nothing: the take is on this computer only.

    The robot lies or hangs throughout, and its legs are braked afterwards. A weak spring keeps soft
    legs from their stops; see `SoftLegs`.
    """

    def __init__(self, legs: LegControl) -> None:
        self._legs = legs
        self._client = legs.client
        self._springs = SoftLegs(legs.safety)
        self._interrupt_block: Callable[[RoteError], None] = lambda _: None
        self._take: Take | None = None
        self._trouble: RoteError | None = None
        self._begun = False
        self._listener_removers: list[Callable[[], None]] = []
        self._last_tick: int | None = None
        self._time_us = 0

    async def check(self) -> None:
        """Wait for a state; raise if the robot is stopped meanwhile."""
        end_errors: list[RoteError] = []
        remove_listener = self._legs.on_teaching_end(end_errors.append)
        try:
            await self._legs.wait_for_state()
        finally:
            remove_listener()
        if end_errors:
            raise end_errors[0]

    async def begin(self, take: Take, end: Callable[[RoteError], None]) -> None:
        """Make the legs soft."""
        self._take, self._interrupt_block = take, end
        self._legs.make_soft(LowCmd(motors=SOFT))
        self._begun = True
        self._listener_removers = [
            self._client.on_state(self._on_state),
            self._legs.on_teaching_end(self._on_early_end),
        ]

    async def hold(self, *, keep: bool) -> None:
        """Brake the legs; a robot in trouble was already braked when the trouble began."""
        self._legs.end_softness()
        if self._begun and self._trouble is None:
            self._client.command(LowCmd(motors=BRAKED))

    def stop_listening(self) -> None:
        """Stop listening to the robot."""
        for remove_listener in self._listener_removers:
            remove_listener()

    async def save(self, take: Take) -> None:
        """Do nothing: an A1 stores no actions."""

    def _on_state(self, state: State) -> None:
        assert isinstance(state, LowState)
        assert self._take is not None
        if self._last_tick is not None:
            # The clock wraps; a difference of more than half its range means a delayed old state.
            passed_us = (state.tick - self._last_tick) % _CLOCK_RANGE
            if not 0 < passed_us < _CLOCK_RANGE // 2:
                return
            self._time_us += passed_us
        self._last_tick = state.tick
        joints = state.motors.q_rad[:LEG_MOTORS]
        self._take.add(self._time_us, joints.tolist(), self._client.now())
        motors = self._springs.motors(np.asarray(joints, dtype=float))
        if motors is not None and self._trouble is None:
            with suppress(RoteError):  # a lost robot is reported by `on_teaching_end`
                self._client.command(LowCmd(motors=motors))

    def _on_early_end(self, error: RoteError) -> None:
        if self._trouble is None:
            self._trouble = error
            with suppress(RoteError):  # a lost robot was braked when it fell silent
                self._client.command(LowCmd(motors=BRAKED))
            self._interrupt_block(error)


# ---- the robot -----------------------------------------------------------------------------------


MOTORS = {"teach": "be taught by hand", "stream": "play a motion", "control": "drive motors"}
"""Abilities that need the motors (the low level), with a text for each."""


class A1(CannotRobot):
    """One connected A1 or Go1. `rote.connect` returns it connected.

    In addition to the methods of all robots (`rote.robot.robot.Robot`), an A1 walks, poses, and
    lets your function drive its motors. `native` and `native_states` are its states as it sends
    them. Every command may raise `ProtectionError` or `LinkError` while there is `trouble`,
    `UnsupportedError` at the wrong level, and `BadRequestError` for a number out of range.
    """

    _wire = "a1"

    def __init__(
        self,
        client: A1RobotClient,
        safety: Safety | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`close` closes the connection and everything opened for it; default: `client.close`."""
        self._client = client
        self._close = client.close if close is None else close
        self._unfinished = Unfinished()
        self._legs = LegControl(client, safety)
        self._modes = A1Modes(self._legs)
        self._player = LegPlayer(self._legs, self._unfinished)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.build.name} at {self.url}>"

    @property
    def url(self) -> str:
        """The URL of the robot."""
        return self._client.url

    @property
    def level(self) -> Level:
        """What it is connected to: the walking controller (high) or the motors (low)."""
        return self._client.level

    @property
    def dialect(self) -> Dialect:
        """The robot's dialect. The low level is the same for all A1, and reports the newest one."""
        return self._client.dialect

    @property
    def abilities(self) -> frozenset[str]:
        """What can be done at this level."""
        if self.level is Level.LOW:
            return frozenset({"states", "stop", "teach", "pause", "stream", "control"})
        # Dialect 3.2 has no command to lie down.
        lie = frozenset() if self.dialect is Dialect.A1_3_2 else frozenset({"lie"})
        return frozenset({"states", "stop", "walk", "pose", "mode"}) | lie

    @property
    def build(self) -> Build:
        """Which machine it is: its twelve joints."""
        return A1_BUILD

    @property
    def family(self) -> Family:
        """The A1 and Go1 quadrupeds."""
        return A1_FAMILY

    @property
    def modes(self) -> A1Modes:
        """The posture modes of its walking controller."""
        return self._modes

    @property
    def safety(self) -> Safety:
        """The safety checks; every command passes them."""
        return self._legs.safety

    @property
    def trouble(self) -> RoteError | None:
        """The tripped protection or the lost connection; no commands are accepted until `arm`."""
        return self._legs.trouble

    @property
    def native(self) -> State | None:
        """The newest state as the robot sent it: of its walking controller, or of its motors."""
        return self._client.latest

    @property
    def state(self) -> RobotState | None:
        """The newest state, in the form that all robots share."""
        native = self._client.latest
        return None if native is None else make_robot_state(native, self._legs)

    def status(self) -> A1Status:
        """Return the newest state as an `A1Status`."""
        return make_status(self._legs)

    def states(self) -> AsyncIterator[RobotState]:
        """Yield states as they arrive; raises `LinkError` when the robot is lost. A slow reader
        misses some.
        """
        return iterate_states(self.on_state, self._legs.on_loss)

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return self._client.on_state(lambda native: listener(make_robot_state(native, self._legs)))

    def native_states(self) -> AsyncIterator[State]:
        """Yield states as the robot sends them; raises when it is lost. A slow reader
        misses some.
        """
        return self._legs.states()

    def on_native_state(self, listener: Callable[[State], object]) -> Callable[[], None]:
        """Call `listener` with every state as the robot sends it. Return a function that removes
        it.
        """
        return self._client.on_state(listener)

    def on_trouble(self, listener: Callable[[RoteError], object]) -> Callable[[], None]:
        """Call `listener` when a protection trips or the robot is lost. Return a function that
        removes it.
        """
        return self._client.on_trouble(listener)

    def on_stop(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when the robot is stopped. Return a function that removes it."""
        return self._legs.on_stop(listener)

    # ---- always ---------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop whatever is running. Always allowed, and safe to repeat.

        A walking robot stands. Driven legs hold the last measured position, and brake if they were
        driven by velocity or torque alone; legs that are being taught are braked. Nothing that was
        requested before a stop begins after it.
        """
        await self._legs.stop()

    def arm(self) -> None:
        """Accept commands again after a protection has tripped. Check the robot before."""
        self._legs.arm()

    async def describe(self) -> dict[str, Any]:
        """Return its dialect and level, and a summary of the newest state."""
        status = self.status()
        return {
            "dialect": status.dialect,
            "level": status.level,
            "mode": status.mode,
            "height_m": status.height_m,
            "battery_percent": status.battery_percent,
            "hottest_c": status.hottest_c,
        }

    async def preflight(self) -> list[Finding]:
        """Return the findings that matter before the robot moves, the worst first."""
        return find_problems(self._legs)

    def check_wanted(self, ability: str) -> None:
        """Raise `BadRequestError` if the robot stands and the ability needs its motors: it would
        sink.
        """
        native = self.native
        if ability in MOTORS and isinstance(native, HighState) and is_standing(native):
            raise make_standing_robot_error()

    async def close(self) -> None:
        """End what was begun over this connection, then close it. Safe to repeat.

        Legs that are being taught are braked, a playback stops. `async with rote.connect(...)`
        closes the connection by itself. Cancelling this call does not interrupt it.
        """
        await to_the_end(self._end_and_close())

    async def _end_and_close(self) -> None:
        try:
            await self._unfinished.end_all()
        finally:
            await self._close()

    # ---- commands -------------------------------------------------------------------------------

    def send_command(
        self, command: Command, *, hold_s: float | None = None, force: bool = False
    ) -> None:
        """Send exactly this `HighCmd` or `LowCmd` repeatedly, until another command.

        For everything without a method of its own: lights, foot height, a position to walk to, the
        fields of the remote. Every number is checked against its range and the robot's state; if
        one is not allowed, `BadRequestError` is raised and nothing is sent. `force` permits
        dangerous commands: flips, dances, and letting a standing robot sink.

        With `hold_s` it may be called from any thread, and the command expires after that time: if
        no other command has arrived by then, a walking robot stands and driven motors brake.
        """
        self._legs.send(command, hold_s, force=force)

    def walk(
        self,
        forward_m_s: float = 0.0,
        left_m_s: float = 0.0,
        turn_rad_s: float = 0.0,
        *,
        gait: Gait = Gait.TROT,
        body_height_m: float = 0.0,
        foot_raise_m: float = 0.0,
    ) -> None:
        """Walk at this speed until another command: forward, left, and turning left.

        `body_height_m` and `foot_raise_m` are relative to the usual heights. For a distance or an
        angle use `Bot`.
        """
        velocity = (forward_m_s, left_m_s, turn_rad_s)
        self._legs.send_high(
            a1_commands.walk_command(
                self.dialect,
                velocity,
                gait=gait,
                body_height_m=body_height_m,
                foot_raise_m=foot_raise_m,
            )
        )

    def pose(
        self,
        *,
        roll_rad: float = 0.0,
        pitch_rad: float = 0.0,
        yaw_rad: float = 0.0,
        body_height_m: float = 0.0,
    ) -> None:
        """Stand on the spot with the body turned (rad), lowered or raised (m), until another
        command.
        """
        self._legs.send_high(
            a1_commands.pose_command(
                self.dialect,
                roll_rad=roll_rad,
                pitch_rad=pitch_rad,
                yaw_rad=yaw_rad,
                body_height_m=body_height_m,
            )
        )

    def set_motors(self, motors: MotorCmds) -> None:
        """Command the motors until another command; for more than that use `control`."""
        self._legs.send_motors(motors)

    async def control(
        self,
        step: Step,
        *,
        period_s: float = 0.002,
        cpu: int | None = None,
        realtime: bool = False,
    ) -> LoopStats:
        """Let `step` drive the motors until it returns None: `step(state, seconds) -> MotorCmds`.

        `step` is called every `period_s` seconds in its own thread, on `cpu` and with real-time
        priority if requested. If it takes longer than 20 ms, raises, or returns an invalid command,
        the robot is damped and this raises `ProtectionError` or the function's own error. Return
        the statistics.
        """
        stats, _ = await self._legs.run_control_function(step, period_s, cpu=cpu, realtime=realtime)
        return stats

    async def move_to(self, joints_rad: Sequence[float], seconds: float | None = None) -> LoopStats:
        """Move the legs softly to these twelve angles in rad, in `seconds` if given, and hold them
        there.
        """
        return await self._player.move_to(joints_rad, seconds)

    # ---- teaching and playing -------------------------------------------------------------------

    def teach(
        self,
        name: str,
        *,
        overwrite: bool = False,
        force: bool = False,
        library: "Library | None" = None,
        loop: bool = False,
        compensation: Sequence[float] = (),
    ) -> Teaching:
        """Teach a motion: the legs are soft inside the `async with` block, and braked after it.

        The robot must lie or hang: soft legs carry nothing, and `force` does not change that. An A1
        stores no motions, so the take is on this computer only; with a `library` it is on its disk
        while it is recorded. Arguments and errors are those of `Robot.teach`.
        """
        self._check_teach_arguments(name, overwrite=overwrite)
        if loop or compensation:
            self._raise_unsupported("be taught with a loop or compensation", "frames")
        self._legs.check_not_busy()
        take = Take(name, self.build, self._wire, self._ignore_pause)
        return Teaching(LegTeachingBackend(self._legs), take, library, self._unfinished)

    async def check_teachable(
        self, name: str, *, overwrite: bool = False, force: bool = False
    ) -> bool:
        """Raise what `teach` would raise, except that a running teaching is no error.

        Return False: an A1 stores no actions, so none is replaced.
        """
        self._check_teach_arguments(name, overwrite=overwrite)
        self._legs.check_not_busy(for_teaching=True)
        return False

    def _check_teach_arguments(self, name: str, *, overwrite: bool) -> None:
        self._legs.require_level(Level.LOW, "be taught by hand")
        if overwrite:
            self._raise_unsupported("store actions, so there is none to overwrite")
        check_name(name)

    async def _ignore_pause(self, paused: bool) -> None:
        """Do nothing: the take is on this computer only."""

    def play_track(self, track: Track, **options: Unpack[TrackKeywords]) -> LegPlaying:
        """Play a track of the twelve joints, and hold its last pose; `stop` ends it earlier.

        The options are the keyword arguments of `Robot.play_track`, with these differences: the
        track is always checked, even with `checked`; legs are always driven 500 times a second; and
        warnings do not prevent playing. The motion begins with a soft move from the current leg
        positions.
        """
        return self._player.play_track(track, TrackOptions(**options))

    def check_streamable(self) -> None:
        """Raise `UnsupportedError` if the walking controller drives the motors."""
        self._player.check_streamable()
