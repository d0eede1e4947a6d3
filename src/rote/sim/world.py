"""The simulated robot as a whole: it obeys commands, moves in time, and reports its state.

It identifies clients by a key and has no sockets; the caller advances its clock.
"""

from collections.abc import Callable, Hashable

from rote import messages as m
from rote.errors import StoreError, StoreLockedError, UnsafeMotionError
from rote.messages import Code, Phase
from rote.model.family import Build, Family
from rote.sim.arm_motion import ArmMotion
from rote.sim.behaviour import draw_measured
from rote.sim.body import STEP_S, PullingHand
from rote.sim.columns import DEFAULT_BUILD
from rote.sim.core import RobotCore
from rote.sim.firmware import Firmware, unknown_modes
from rote.sim.fsm import ArmInput
from rote.sim.playing import SimPlaying
from rote.sim.refusal import RefusalError
from rote.sim.sensors import ArmStateCode, Sensors
from rote.sim.store import RECORD_EVERY, Store
from rote.sim.teaching import SimTeaching
from rote.sim.voice import Voice

HEALTH_EVERY = 50
"""Steps between two updates of battery and motors: 10 Hz."""
CONTROLLER = "ai"
"""The controller of a G1."""


class World:
    """One simulated robot, of any build."""

    def __init__(
        self,
        store: Store,
        *,
        build: Build = DEFAULT_BUILD,
        mode: int | None = None,
        seed: int = 0,
        firmware: Firmware | None = None,
        polite: bool = False,
    ) -> None:
        """Create a robot; a `polite` robot has none of a real robot's delays."""
        core = self._core = RobotCore(
            store, build, mode=mode, seed=seed, firmware=firmware, polite=polite
        )
        self.store, self.body, self.health = store, core.body, core.health
        self.machine, self.voice = core.machine, Voice()
        self.controller = CONTROLLER
        """Name of the controller that drives the robot; empty in debug mode. See `drive`."""
        self.notices = core.notices
        """The newest hundred notices; the code that shows them clears the list."""
        self._sensors = Sensors(build, seed)
        self._motion = ArmMotion(core)
        self._teaching = SimTeaching(core, self._motion)
        self._playing = SimPlaying(core, self._motion, self._teaching)
        self._handlers: dict[type, Callable[..., str | None]] = {
            m.ChangeMode: self._change_mode,
            m.MoveByHand: self._teaching.move_by_hand,
            m.RenameAction: self._rename_action,
            m.DeleteAction: self._delete_action,
            m.PlayPreset: self._playing.play_preset,
            m.EnterTeaching: self._teaching.enter_teaching,
            m.KeepTeaching: self._teaching.keep_teaching,
            m.ExitTeaching: self._teaching.exit_teaching,
            m.Record: self._teaching.set_recording,
            m.PauseRecording: self._teaching.pause_recording,
            m.SaveAction: self._teaching.save_action,
            m.PlayAction: self._playing.play_action,
            m.BeginStream: self._playing.begin_stream,
            m.StreamPose: self._playing.follow_pose,
            m.StopMotion: self._stop_motion,
        }
        self._apply_mode()

    # ---- time -----------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Advance time by `seconds`; between health updates, take many steps at once if it can."""
        core = self._core
        last = core.steps + round(seconds / STEP_S)
        while core.steps < last:
            steps_before_health = HEALTH_EVERY - 1 - core.steps % HEALTH_EVERY
            self._motion.advance_steps(min(last - core.steps, steps_before_health))
            if core.steps < last:
                self._advance_step()

    def _advance_step(self) -> None:
        """Advance mode, teaching, motion, health and recording by one step."""
        core = self._core
        core.advance_clock()
        if core.machine.advance(core.time_s):
            core.note(f"mode is now {core.machine.facts.name}")
            self._apply_mode()
        if core.teaching:
            self._teaching.end_if_due()
        self._motion.release_if_due()
        if core.steps % HEALTH_EVERY == 0:
            core.health.advance(core.time_s, HEALTH_EVERY * STEP_S, core.body.torques_nm)
        core.body.step(core.time_s, *self._motion.next_setpoint())
        if self._teaching.recording and core.steps % RECORD_EVERY == 0:
            self._teaching.record_sample()

    def _apply_mode(self) -> None:
        """Make joints soft or stiff as the mode requires, and stop motions that it forbids."""
        if not self.machine.stiff:
            self._go_limp()
            return
        if not self.machine.balanced:
            self._stop_motion(None, m.StopMotion())
        if not self.teaching:
            was_soft = bool(self.body.soft)
            self.body.soften(())
            if was_soft:
                self._motion.return_to_rest()

    def _go_limp(self) -> None:
        """Make all joints soft, and drop every motion and teaching."""
        if self.teaching:
            self.attach(None)
        self._motion.drop_motions()
        self._teaching.abandon()
        self.machine.act(ArmInput.STOP)
        all_joints = tuple(range(len(self.build.joints)))
        self.body.soften(all_joints, carried_share=0.0, damped=self.machine.damped)

    # ---- commands -------------------------------------------------------------------------------

    def obey(self, client: Hashable, command: m.Command) -> m.Reply:
        """Carry out a command, or refuse it; never raises."""
        try:
            if isinstance(command, m.ListActions):
                return m.ActionList(self.store.entries())
            if isinstance(command, m.ReadController):
                return m.Controller(self.controller)
            handler = self._handlers.get(type(command))
            if handler is None:
                raise RefusalError(Code.UNKNOWN_COMMAND)
            return m.Status(Code.OK, handler(client, command) or "")
        except RefusalError as refusal:
            if refusal.note:
                self.note(f"refused: {refusal.note}")
            return m.Status(refusal.code, refusal.note)
        except UnsafeMotionError as error:
            self.note(f"refused: {error}")
            return m.Status(Code.UNSAFE)
        except StoreError as error:
            self.note(str(error))
            locked = isinstance(error, StoreLockedError)
            return m.Status(Code.STORE_FAILED, "another program has locked it" if locked else "")

    def forget(self, client: Hashable) -> None:
        """Handle a client that has left: end its teaching, and its playback if that loops."""
        if self._teaching.client == client:
            self.note("the teaching client has left: the arms hold")
            self._teaching.end(ArmInput.EXIT)
        playback = self._motion.playback
        if self._motion.client == client and playback is not None and playback.loops:
            self.note("the client that started the loop has left: the motion stops")
            self._stop_motion(client, m.StopMotion())

    def drive(self, controller: str) -> None:
        """Set the controller; an empty name means debug mode, in which all joints go limp."""
        self.controller = controller
        self.note(f"{controller!r} drives the robot" if controller else "debug mode")
        if not controller:
            self.machine.enter_damp_mode()
            self._apply_mode()

    def attach(self, hand: PullingHand | None) -> None:
        """Attach a hand that pulls on the robot; None removes it."""
        self.body.attach(hand, self.time_s)

    def end_teaching(self) -> None:
        """End teaching, whichever client began it, and store a named recording."""
        if self.teaching:
            self._teaching.end(ArmInput.EXIT, keep=True)

    def draw(self, measured_s: tuple[float, ...]) -> float:
        """Draw a time from a measured distribution."""
        return draw_measured(measured_s, self._core.rng)

    def postpone(self, answer_s: float) -> None:
        """Delay the playback that was just accepted, according to the robot's behaviour.

        `answer_s` is the delay of the answer to the client. Until the playback starts, the arms
        and their reported state stay as they are.
        """
        self._motion.postpone(answer_s)

    def _change_mode(self, _: Hashable, command: m.ChangeMode) -> None:
        if not self.controller:
            raise RefusalError(Code.WRONG_STATE)
        if command.mode in unknown_modes(self.build):
            raise RefusalError(Code.BAD_PAYLOAD)
        if command.mode in self.firmware.ignored:
            self.note(
                f"mode {command.mode:d} is accepted but not entered, as by firmware "
                f"{self.firmware.version}"
            )
            return
        self.machine.change_mode(command.mode, self.time_s)

    def _rename_action(self, _: Hashable, command: m.RenameAction) -> None:
        if m.name_problem(command.new, in_use=True):
            raise RefusalError(Code.BAD_PAYLOAD)
        self.store.rename(command.old, command.new)
        self.note(f"renamed {command.old!r} to {command.new!r}")

    def _delete_action(self, _: Hashable, command: m.DeleteAction) -> None:
        self.store.delete(command.name)
        self.note(f"deleted {command.name!r}")

    def _stop_motion(self, _: Hashable, __: m.StopMotion) -> None:
        if self.teaching:
            self._teaching.end(ArmInput.STOP)
        else:
            self._motion.stop()

    # ---- state ----------------------------------------------------------------------------------

    @property
    def build(self) -> Build:
        """The robot's build."""
        return self._core.build

    @property
    def family(self) -> Family:
        """The family of the robot's build."""
        return self._core.columns.family

    @property
    def firmware(self) -> Firmware:
        """The software of the robot; it can be replaced at any time."""
        return self._core.firmware

    @firmware.setter
    def firmware(self, firmware: Firmware) -> None:
        self._core.firmware = firmware

    @property
    def time_s(self) -> float:
        """The robot's time in seconds since it started."""
        return self._core.time_s

    @property
    def doing(self) -> ArmStateCode:
        """The arms' activity, as numbered by a G1's state topic."""
        return self._motion.state_code

    @property
    def occupied(self) -> bool:
        """Whether nothing can be played or taught because the arms are being released."""
        return self._motion.occupied

    @property
    def unlisted(self) -> str:
        """The taught action that is stored but not yet listed by the services; usually empty."""
        return self._teaching.unlisted

    @property
    def no_stream(self) -> str:
        """The reason why this robot does not accept a stream."""
        return self._playing.no_stream

    @property
    def phase(self) -> Phase:
        """The phase of a playback."""
        return self._motion.phase

    @property
    def stopped_early(self) -> bool:
        """Whether the last playback did not run to its end."""
        return self._motion.stopped_early

    @property
    def holding(self) -> bool:
        """Whether the arms keep the last pose of a preset."""
        return self._motion.held is not None

    @property
    def holds_taught(self) -> bool:
        """Whether the arms hold their pose for a while after teaching."""
        return self._motion.holds_taught

    @property
    def teaching(self) -> bool:
        """Whether the arms are soft for a client that teaches."""
        return self._core.teaching

    @property
    def recording(self) -> bool:
        """Whether samples are being recorded."""
        return self._teaching.recording

    def state(self) -> m.RobotState:
        """Return the robot's current state, with sensor noise."""
        return self._sensors.read(self)

    def note(self, message: str) -> None:
        """Add a notice for the operator."""
        self._core.note(message)
