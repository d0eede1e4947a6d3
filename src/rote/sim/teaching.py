"""Teaching a simulated robot: soft arms, their recording, and the action made from it."""

from collections.abc import Hashable

from rote import messages as m
from rote.errors import BadRequestError, StoreError
from rote.messages import Code
from rote.model.family import MAX_MOTION_S
from rote.motion.record import bridge_poses
from rote.motion.track import Array
from rote.sim.arm_motion import ArmMotion
from rote.sim.body import STEP_S
from rote.sim.core import RobotCore
from rote.sim.fsm import ArmInput
from rote.sim.hands import ScriptedHand
from rote.sim.refusal import RefusalError
from rote.sim.store import (
    RECORD_EVERY,
    action_from_keyframes,
    action_from_recording,
    check_keyframes,
    describe_disagreement,
)

KEEP_ALIVE_S = 13.5
"""Seconds without a keep-alive (three periods) after which teaching ends and the arms hold."""
KEEP_NAMED_S = 10.0
"""The timeout for teaching through the services, which name the action at the start."""
_STILL_RECORDS = "the recording still runs: stop it"


class SimTeaching:
    """Teaching by one client at a time: entering, recording, saving and ending it."""

    def __init__(self, core: RobotCore, motion: ArmMotion) -> None:
        self._core, self._motion = core, motion
        self.client: Hashable | None = None
        """The client that teaches."""
        self._name = ""
        self._buffer: list[Array] = []
        self._recording = self._paused = self._resumed = False
        """`_resumed` is set from the end of a pause until the next sample."""
        self._began_s = self._kept_alive_s = 0.0
        self._unlisted, self._listed_s = "", 0.0
        """The action that was stored last, and the time at which the services list it."""

    @property
    def recording(self) -> bool:
        """Whether samples are being recorded now."""
        return self._recording and not self._paused

    @property
    def unlisted(self) -> str:
        """The taught action that is stored but not yet listed by the services; usually empty."""
        late = self._core.firmware.behaviour.lists_late and self._core.time_s < self._listed_s
        return self._unlisted if late else ""

    # ---- beginning and ending -------------------------------------------------------------------

    def enter_teaching(self, client: Hashable, command: m.EnterTeaching) -> None:
        """Make the arms soft; if the command names the action, start recording at once."""
        core = self._core
        if core.teaching and (self.client != client or command.name):
            raise self.make_busy_error(client)
        self._motion.require_free_arms()
        self._motion.require_movable_arms()
        if (
            command.name
            and not core.firmware.behaviour.overwrites
            and self._is_stored(command.name)
        ):
            raise RefusalError(Code.NAME_EXISTS)
        core.machine.act(ArmInput.TEACH)
        self._motion.yield_to_teaching(command.name)
        self.client, self._name, self._paused = client, command.name, False
        self._kept_alive_s = self._began_s = core.time_s
        core.body.soften(core.build.taught_columns)
        core.note("teaching: the arms are soft")
        if command.name:
            self.set_recording(client, m.Record(on=True))

    def keep_teaching(self, client: Hashable, _: m.KeepTeaching) -> None:
        """Handle a keep-alive of the teaching client: the arms stay soft."""
        self._require_teacher(client)
        self._kept_alive_s = self._core.time_s

    def exit_teaching(self, client: Hashable, _: m.ExitTeaching) -> None:
        """End the client's teaching."""
        if self._core.teaching:
            if self.client != client:
                raise self.make_busy_error(client)
            self.end(ArmInput.EXIT, keep=True)

    def end(self, event: ArmInput, *, keep: bool = False) -> None:
        """Make the arms hold; with `keep`, store the recording if it was named at the start."""
        self._core.machine.act(event)
        if keep and self._name:
            self._store_recording(self._name)
        self._listed_s = self._motion.hold_taught(named=bool(self._name))
        self.abandon()
        self._core.note("teaching ended: the arms hold")

    def abandon(self) -> None:
        """End teaching without moving the arms; the recording can still be saved."""
        self._recording, self.client, self._name = False, None, ""

    def end_if_due(self) -> None:
        """End teaching after a keep-alive timeout, or when named teaching has lasted too long."""
        behaviour, time_s = self._core.firmware.behaviour, self._core.time_s
        lapse_s = behaviour.lapse_s or (KEEP_NAMED_S if self._name else KEEP_ALIVE_S)
        if time_s >= self._kept_alive_s + lapse_s:
            self._core.note("no keep-alive: teaching ends, the arms hold")
            self.end(ArmInput.EXIT, keep=behaviour.lapse_keeps)
        elif self._name and time_s >= self._began_s + MAX_MOTION_S:
            self._core.note(f"teaching ends after {MAX_MOTION_S:g} s")
            self.end(ArmInput.EXIT, keep=True)

    def may_end_for_play(self, client: Hashable) -> bool:
        """Whether playing may end this client's teaching: only over UDP, where it has no name.

        Raises `RefusalError` if its recording still runs.
        """
        if not self._core.teaching or self.client != client or self._name:
            return False
        if self._recording:
            raise RefusalError(Code.BUSY, _STILL_RECORDS)
        return True

    def make_busy_error(self, client: Hashable) -> RefusalError:
        """Return the refusal for arms in use; its note names the teaching client."""
        if not self._core.teaching:
            return RefusalError(Code.BUSY)
        if self.client == client:
            return RefusalError(Code.BUSY, "you are teaching: end it first")
        return RefusalError(Code.BUSY, _fit_note(f"{_describe_client(self.client)} is teaching"))

    def _require_teacher(self, client: Hashable) -> None:
        if not self._core.teaching or self.client != client:
            raise RefusalError(Code.NOT_TEACHING)

    def move_by_hand(self, client: Hashable, command: m.MoveByHand) -> None:
        """Let a script move the soft arms."""
        core = self._core
        self._require_teacher(client)
        try:
            hand = ScriptedHand(command.script, command.duration_ms / 1000.0, core.build)
        except BadRequestError as error:
            core.note(str(error))
            raise RefusalError(Code.BAD_PAYLOAD) from None
        core.body.attach(hand, core.time_s)

    # ---- the recording --------------------------------------------------------------------------

    def set_recording(self, client: Hashable, command: m.Record) -> None:
        """Begin or end a recording."""
        if command.on:
            self._require_teacher(client)
            if self._recording:
                raise RefusalError(Code.BUSY)
            self._buffer, self._recording = [], True
            self._paused = self._resumed = False
            self._core.note("recording")
        elif self._recording:
            self._require_teacher(client)
            self._recording = False

    def pause_recording(self, client: Hashable, command: m.PauseRecording) -> None:
        """Pause or continue a recording."""
        self._require_teacher(client)
        self._resumed |= self._paused and not command.paused
        self._paused = command.paused

    def record_sample(self) -> None:
        """Append the current joint positions to the recording."""
        pose_rad = self._core.body.joints_rad.copy()
        if self._resumed and self._buffer:
            # Bridge a motion during the pause by a soft move, as in a take.
            self._buffer += list(bridge_poses(self._buffer[-1], pose_rad, STEP_S * RECORD_EVERY))
        self._resumed = False
        self._buffer.append(pose_rad)
        if len(self._buffer) * STEP_S * RECORD_EVERY >= MAX_MOTION_S:
            self._core.note(f"the recording is full ({MAX_MOTION_S:g} s)")
            self._recording = False

    def save_action(self, _: Hashable, command: m.SaveAction) -> str:
        """Store an action from keyframes or from the recording.

        Returns what was stored, if it differs from what the client stated.
        """
        core = self._core
        if not command.save or not 1 <= command.duration_ms <= m.MAX_DURATION_MS:
            raise RefusalError(Code.BAD_PAYLOAD)
        if m.name_problem(command.name):
            raise RefusalError(Code.BAD_PAYLOAD)
        check_keyframes(command.keyframes, core.build)
        if command.keyframes:
            if any(k.time_ms > command.duration_ms for k in command.keyframes):
                raise RefusalError(Code.BAD_PAYLOAD)
            core.store.save(action_from_keyframes(command, core.build), replace=command.replace)
            core.note(f"saved {command.name!r}")
            return ""
        self._require_recorded_samples()
        action = action_from_recording(self._buffer, command, core.build)
        core.store.save(action, replace=command.replace)
        self._buffer = []
        difference = describe_disagreement(action)
        stated = f"; the client stated {command.frames} frames, {command.duration_ms / 1000:.2f} s"
        core.note(f"saved {command.name!r}" + (f": {difference}{stated}" if difference else ""))
        return difference

    def _require_recorded_samples(self) -> None:
        if self._recording:
            raise RefusalError(Code.BUSY, _STILL_RECORDS)
        if len(self._buffer) < 2:
            raise RefusalError(Code.NOTHING_RECORDED)

    def _store_recording(self, name: str) -> None:
        """Store the recording, replacing an older action of that name, as the services do."""
        core = self._core
        length_ms = round(1000 * STEP_S * RECORD_EVERY * (len(self._buffer) - 1))
        save = m.SaveAction(name=name, created_s=0, duration_ms=length_ms)
        try:
            if length_ms > 0:
                is_new = not self._is_stored(name)
                core.store.save(action_from_recording(self._buffer, save, core.build), replace=True)
                self._buffer = []
                self._unlisted = name if is_new else ""
                core.note(f"saved {name!r}")
        except RefusalError as refusal:
            core.note(f"{name!r} could not be saved: {m.explain(refusal.code)[0]}")
        except StoreError as error:
            core.note(f"{name!r} could not be saved: {error}")

    def _is_stored(self, name: str) -> bool:
        return any(entry.name == name for entry in self._core.store.entries())


def _describe_client(client: Hashable) -> str:
    """Return the address or name of a client, for a message to another client."""
    if isinstance(client, tuple) and len(client) >= 2:
        host, port = str(client[0]), client[1]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return client if isinstance(client, str) else "a client of its services"


def _fit_note(note: str) -> str:
    """Shorten a note to fit into a status: the address alone, or no address."""
    address = note.partition(" ")[0]
    for message in (note, address):
        if len(message.encode()) <= m.MAX_NOTE_BYTES:
            return message
    return "another client is teaching"
