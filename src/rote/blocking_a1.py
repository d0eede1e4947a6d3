"""The A1 and the Go1, blocking.

Made by `python scripts/blocking_robots.py`; do not edit it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from rote.blocking import BlockingBlock
from rote.blocking_robots import BlockingRobot, BlockingTake
from rote.errors import RoteError
from rote.findings import Finding
from rote.messages import RobotState
from rote.model.family import Build, Family
from rote.motion.track import Track
from rote.robot.api_values import ModeReport, StreamReport
from rote.robot.quadruped import motion as a1_motion
from rote.robot.quadruped.commands import Gait
from rote.robot.quadruped.control import State, Step
from rote.robot.quadruped.loop import LoopStats
from rote.robot.quadruped.robot import A1, A1Status
from rote.robot.quadruped.safety import Safety
from rote.robot.streaming import Offload, TimedStart, TrackCheck
from rote.session.a1 import Level
from rote.wire.a1.motors import MotorCmds
from rote.wire.a1.values import Command, Dialect

if TYPE_CHECKING:
    from rote.motion.files.library import Library

__all__ = ["BlockingA1"]


class BlockingA1(BlockingRobot):
    """One connected A1 or Go1, as `rote.sync.connect(url, family="a1")` returns it."""

    _target: A1

    @property
    def safety(self) -> Safety:
        """What guards the robot: every command passes it."""
        return self._target.safety

    @property
    def trouble(self) -> RoteError | None:
        """What tripped or was lost; nothing can be commanded until `arm`."""
        return self._target.trouble

    @property
    def url(self) -> str:
        """The URL of the robot."""
        return self._target.url

    @property
    def level(self) -> Level:
        """What it is connected to: the walking controller (high) or the motors (low)."""
        return self._target.level

    @property
    def dialect(self) -> Dialect:
        """The robot's dialect. On the low level, which is the same for all A1, their newest."""
        return self._target.dialect

    @property
    def abilities(self) -> frozenset[str]:
        """What can be done at this level."""
        return self._target.abilities

    @property
    def build(self) -> Build:
        """Which machine it is: its twelve joints."""
        return self._target.build

    @property
    def family(self) -> Family:
        """The A1 and Go1 quadrupeds."""
        return self._target.family

    @property
    def native(self) -> State | None:
        """The newest state as the robot sent it: of its walking controller, or of its motors."""
        return self._target.native

    @property
    def state(self) -> RobotState | None:
        """The newest state, in the form that all robots share."""
        return self._target.state

    def status(self) -> A1Status:
        """Return the newest state as an `A1Status`."""
        return self._call(self._target.status)

    def states(self) -> Iterator[RobotState]:
        """Iterate over the states as they arrive; a slow reader misses some.

        Raises `LinkError` when the robot is lost.
        """
        return self._iterate(self._target.states)

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return self._call(lambda: self._target.on_state(listener))

    def native_states(self) -> Iterator[State]:
        """Iterate over the states as the robot sends them; a slow reader
        misses some.

        Raises `LinkError` when the robot is lost.
        """
        return self._iterate(self._target.native_states)

    def on_native_state(self, listener: Callable[[State], object]) -> Callable[[], None]:
        """Call `listener` with every state as the robot sends it. Return a function that removes
        it.
        """
        return self._call(lambda: self._target.on_native_state(listener))

    def on_trouble(self, listener: Callable[[RoteError], object]) -> Callable[[], None]:
        """Call `listener` when a protection trips or the robot is lost. Return a function that
        removes it.
        """
        return self._call(lambda: self._target.on_trouble(listener))

    def on_stop(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when somebody stops the robot. Return a function that removes it."""
        return self._call(lambda: self._target.on_stop(listener))

    def send_command(
        self, command: Command, *, hold_s: float | None = None, force: bool = False
    ) -> None:
        """Ask for exactly this `HighCmd` or `LowCmd`, until told otherwise.

        It is for what has no method of its own: lights, a foot's height, a place to walk to, the
        fields of the remote. Every number is checked, and so is whether the robot's state permits
        it; `BadRequestError` says what does not, and then nothing was sent. `force` permits what is
        dangerous on purpose: flips and dances, letting a robot sink that stands.

        With `hold_s` it may be called from any thread, and is asked for no longer than that: where
        no other command has come by then, a walking robot stands and driven motors brake.
        """
        self._call(lambda: self._target.send_command(command, hold_s=hold_s, force=force))

    def stop(self) -> None:
        """End whatever goes on. Always allowed, and safe to repeat.

        A walking robot stands. Legs that were driven hold the position that was measured last, and
        brake if they were driven by velocity or torque alone; legs that are being taught are
        braked. Nothing that was requested before a stop begins after it.
        """
        self._run(self._target.stop)

    def damp(self, *, yes: bool = False) -> ModeReport:
        """Let the legs give way softly, at once: all motors damp themselves. The robot
        sinks.

        It is this robot's stop in an emergency, so it never asks back: `yes` changes nothing.
        Dialect 3.2 knows no word for it on its high level; there the robot stands.
        """
        return self._run(lambda: self._target.damp(yes=yes))

    def arm(self) -> None:
        """Accept commands again after a protection has tripped, once a person has looked at the
        robot.
        """
        self._call(self._target.arm)

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
        """Go at this speed until told otherwise: forward, left, and turning left.

        `body_height_m`, and `foot_raise_m` for the feet that step, are more or less than usual. For
        a distance or an angle use `Bot`.
        """
        self._call(
            lambda: self._target.walk(
                forward_m_s,
                left_m_s,
                turn_rad_s,
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
        self._call(
            lambda: self._target.pose(
                roll_rad=roll_rad, pitch_rad=pitch_rad, yaw_rad=yaw_rad, body_height_m=body_height_m
            )
        )

    def mode(self) -> ModeReport:
        """Return the mode of the walking controller."""
        return self._run(self._target.mode)

    def stand(self) -> ModeReport:
        """Stand upright on the spot, and return when it stands; a lying robot gets up."""
        return self._run(self._target.stand)

    def lie_down(self) -> ModeReport:
        """Lie down; dialect 3.2 cannot. It returns when the command is sent."""
        return self._run(self._target.lie_down)

    def rise(self) -> None:
        """Begin to get up; `get_up` also waits for it."""
        self._call(self._target.rise)

    def get_up(self) -> None:
        """Get up from lying or from damping; return when the robot stands.

        Raises `TimeLimitError` if it does not stand in time.
        """
        self._run(self._target.get_up)

    def set_motors(self, motors: MotorCmds) -> None:
        """Command the motors until another command; for more than that use `control`."""
        self._call(lambda: self._target.set_motors(motors))

    def control(
        self, step: Step, *, period_s: float = 0.002, cpu: int | None = None, realtime: bool = False
    ) -> LoopStats:
        """Let `step` drive the motors until it returns None: `step(state, seconds) -> MotorCmds`.

        It is called every `period_s` seconds in its own thread, on `cpu` and with real-time
        priority if asked. If it has not given a new command within 20 ms, raises, or asks for
        something impossible, the robot is damped and this raises `ProtectionError` or the
        function's own error. Return the statistics.
        """
        return self._run(
            lambda: self._target.control(step, period_s=period_s, cpu=cpu, realtime=realtime)
        )

    def move_to(self, joints_rad: Sequence[float], seconds: float | None = None) -> LoopStats:
        """Move the legs softly to these twelve angles in rad, in `seconds` if given, and hold them
        there.
        """
        return self._run(lambda: self._target.move_to(joints_rad, seconds))

    def teach(
        self,
        name: str,
        *,
        overwrite: bool = False,
        force: bool = False,
        library: "Library | None" = None,
        loop: bool = False,
        compensation: Sequence[float] = (),
    ) -> BlockingBlock[BlockingTake]:
        """Teach a motion: the legs are soft inside the `with` block, and braked after
        it.

        The robot must lie or hang: soft legs carry nothing, and `force` does not change that. An A1
        stores no motions, so the take is on this computer only; with a `library` it is on its disk
        while it is recorded. Arguments and errors are those of `BlockingRobot.teach`.
        """
        return BlockingBlock(
            self._thread,
            self._call(
                lambda: self._target.teach(
                    name,
                    overwrite=overwrite,
                    force=force,
                    library=library,
                    loop=loop,
                    compensation=compensation,
                )
            ),
            BlockingTake,
        )

    def check_teachable(self, name: str, *, overwrite: bool = False, force: bool = False) -> bool:
        """Raise what `teach` would raise, except that the legs may be taught right now. Return
        False: an A1 stores no actions, so none is replaced.
        """
        return self._run(
            lambda: self._target.check_teachable(name, overwrite=overwrite, force=force)
        )

    def play_track(
        self,
        track: Track,
        *,
        rate_hz: float = a1_motion.RATE_HZ,
        speed: float = 1.0,
        force: bool = False,
        mapped: bool = False,
        hands: bool = False,
        checked: TrackCheck | None = None,
        offload: Offload | None = None,
        at: float | TimedStart | None = None,
        imported: bool = False,
    ) -> StreamReport:
        """Play a track of the twelve joints, hold its last pose, and return the
        report.

        It is checked first, whatever was `checked` before, and begins with a soft move from where
        the legs are. Legs are always driven 500 times a second, and what only warns does not keep
        an A1 from playing. Ctrl-C stops the robot.
        """
        return self._run(
            lambda: self._target.play_track(
                track,
                rate_hz=rate_hz,
                speed=speed,
                force=force,
                mapped=mapped,
                hands=hands,
                checked=checked,
                offload=offload,
                at=at,
                imported=imported,
            )
        )

    def describe(self) -> dict[str, Any]:
        """Return its dialect and level, and a summary of the newest state."""
        return self._run(self._target.describe)

    def preflight(self) -> list[Finding]:
        """Return what a person should know before the robot moves, the worst first."""
        return self._run(self._target.preflight)

    def check_streamable(self) -> None:
        """Raise `UnsupportedError` where the walking controller has the motors."""
        self._call(self._target.check_streamable)

    def check_wanted(self, ability: str) -> None:
        """Raise `BadRequestError` if the robot stands and the ability needs its motors: it would
        sink.
        """
        self._call(lambda: self._target.check_wanted(ability))
