"""A client of the robot's services arm, sport and motion_switcher: commands become requests.

It owns its connection, a data channel or DDS. The robot reports joints by motor slot; the client
recognises the build from these reports and converts them to states in the build's joint order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from rote import messages as m
from rote.errors import (
    CautionError,
    DecodeError,
    NoAnswerError,
    RefusedError,
    RoteError,
    UnsupportedError,
)
from rote.messages import RobotState
from rote.model.family import Build
from rote.session.recognition import Identity
from rote.session.rpc import RpcSession
from rote.text import Act, Text
from rote.transport.base_client import AudioListener, LossListener, StateListener
from rote.transport.services.connection import (
    CallService,
    MessageTransport,
    RpcConnection,
    TopicListener,
)
from rote.transport.services.reports import ChannelReports, RobotReports
from rote.transport.services.stops import ServiceStops
from rote.transport.services.teaching import ServiceTeaching
from rote.transport.wires import SERVICES, unsupported
from rote.wire.services import rpc
from rote.wire.services.lowstate import HAND_TOPIC
from rote.wire.services.rpc import NO_STATUS
from rote.wire.webrtc import channel

# ---- the service arm -----------------------------------------------------------------------------

_RELEASE_TIMEOUT_S = 1.0
"""Timeout for releasing a held pose before the connection is closed."""


class ArmActions:
    """The actions that one robot stores."""

    def __init__(self, connection: RpcConnection, reports: RobotReports) -> None:
        self._connection, self._reports = connection, reports
        self._may_hold_pose = False
        """Whether the robot may hold the last pose of a preset that this client played."""

    async def list_actions(self, _: m.ListActions) -> m.Reply:
        """Return the taught actions and the presets."""
        response = await self._connection.call(rpc.LIST_ACTIONS, read=True)
        presets, taught, notes = rpc.decode_actions(response.text)
        return m.ActionList(
            tuple(m.ActionEntry(t.name, round(t.seconds * 1000)) for t in taught),
            tuple(m.PresetEntry(p.id, p.name) for p in presets),
            notes,
        )

    async def play_action(self, command: m.PlayAction) -> m.Reply:
        """Play a taught action."""
        self._reports.note_motion()
        await self._connection.call(rpc.play_taught(command.name), verified=True)
        return m.Status()

    async def play_preset(self, command: m.PlayPreset) -> m.Reply:
        """Play a factory action; some of them hold their last pose until they are released."""
        self._reports.note_motion()
        self._may_hold_pose = command.id != m.RELEASE_PRESET
        await self._connection.call(rpc.execute_preset(command.id), verified=True)
        return m.Status()

    async def release_held_pose(self) -> None:
        """Release a pose that the robot holds for this client, if it is connected."""
        is_holding = self._may_hold_pose and self._reports.arms.holding
        if is_holding and self._connection.failure is None:
            with suppress(RoteError, TimeoutError):
                async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                    await self._connection.call(rpc.execute_preset(m.RELEASE_PRESET))

    async def rename_action(self, command: m.RenameAction) -> m.Reply:
        """Rename a taught action."""
        call = rpc.rename_taught(command.old, command.new)
        answer = await self._connection.call(call, verified=True)
        if answer.code == NO_STATUS and command.new not in await self._read_names():
            raise _make_unknown_outcome_error(f"{command.old!r} is not renamed")
        return m.Status()

    async def delete_action(self, command: m.DeleteAction | m.DiscardRecording) -> m.Reply:
        """Delete a taught action."""
        answer = await self._connection.call(rpc.delete_taught(command.name), verified=True)
        if answer.code == NO_STATUS and command.name in await self._read_names():
            raise _make_unknown_outcome_error(f"{command.name!r} is still there")
        return m.Status()

    async def _read_names(self) -> set[str]:
        """Return the names of the taught actions, to verify a request answered without a status."""
        try:
            response = await self._connection.call(rpc.LIST_ACTIONS, read=True)
        except RoteError as error:
            raise _make_unknown_outcome_error(str(error)) from error
        return {action.name for action in rpc.decode_actions(response.text).taught}


def _make_unknown_outcome_error(detail: str) -> NoAnswerError:
    return NoAnswerError(
        f"the robot answered without a status, so the result is unknown: {detail}",
        Text("List the actions ({list}), then repeat the request if needed.", list=Act.LIST),
    )


# ---- the service sport, and which controller is selected -----------------------------------------

READ_BACK_S = 0.25
"""Interval at which a requested mode is read back."""
CHANGE_MODE_S = 8.0
"""Timeout for the robot to reach a requested mode."""
MODE_TIMEOUT_S = 1.5
"""Timeout for reading the mode on a new connection; short, because a stop waits for it."""


class ServiceModes:
    """Reads and changes one robot's mode by its services."""

    def __init__(self, connection: RpcConnection, reports: RobotReports) -> None:
        self._connection, self._reports = connection, reports

    async def read_mode_if_answered(self) -> None:
        """Request the mode; no answer within `MODE_TIMEOUT_S` is not an error."""
        # In debug mode no service answers for the controller, and some robots send invalid answers.
        # The preflight reports that. The robot can be stopped nevertheless.
        with suppress(TimeoutError, NoAnswerError, RefusedError, DecodeError):
            async with asyncio.timeout(MODE_TIMEOUT_S):
                await self._read_mode(self._connection.request)

    async def change_mode(self, command: m.ChangeMode) -> m.Reply:
        """Change the mode and read it back: a robot may confirm a change that it did not make."""
        reports = self._reports
        await reports.wait_for_recognition()
        if problem := reports.identity.find_mode_problem():
            raise CautionError(*problem)
        try:
            await self._connection.call(rpc.set_fsm(command.mode), verified=True)
        except RefusedError as refused:
            # An R1 refuses the mode that it is in.
            if refused.code != rpc.MODE_REFUSED or not await self._is_in_mode(command.mode):
                raise
        try:
            async with asyncio.timeout(CHANGE_MODE_S):
                while True:
                    if await self._is_in_mode(command.mode):
                        return m.Status()
                    await asyncio.sleep(READ_BACK_S)
        except TimeoutError:
            mode = reports.mode
            outcome = "does not report its mode" if mode < 0 else f"is still in mode {mode:d}"
            raise NoAnswerError(
                f"the robot accepted mode {command.mode:d}, but {outcome}",
                "Look at the robot; try the buttons of its remote. A G1 with 29 joints stands in "
                "mode 501, one with fewer joints in 500.",
            ) from None

    async def publish_mode(self, _: m.ReadMode) -> m.Reply:
        """Read the mode and publish a state with it."""
        await self._read_mode(self._connection.call)
        self._reports.publish_state()
        return m.Status()

    async def read_controller(self, _: m.ReadController) -> m.Reply:
        """Return which controller is selected."""
        answer = await self._connection.call(rpc.CHECK_MODE, read=True)
        return m.Controller(rpc.decode_mode_check(answer.text))

    async def _is_in_mode(self, mode: int) -> bool:
        """Whether the robot answers that it is in `mode`; False if it refuses to answer."""
        try:
            await self._read_mode(self._connection.call)
        except RefusedError:
            return False  # the newest report may be from before the change
        return self._reports.mode == mode

    async def refresh_mode(self) -> None:
        """Request the mode if it was not reported lately; no answer in time is not an error."""
        if self._reports.mode == m.UNREPORTED_MODE:
            await self.read_mode_if_answered()
            self._reports.publish_state()

    async def _read_mode(self, call_service: CallService) -> None:
        answer = await call_service(rpc.GET_FSM, read=True)
        self._reports.note_mode(rpc.decode_value(answer.text))


# ---- the service voice ---------------------------------------------------------------------------

_APP = "rote"
"""The name under which rote plays sounds; a stop ends only those of this name."""


class ServiceAudio:
    """One robot's loudspeaker and light."""

    def __init__(self, connection: RpcConnection, *, plays_sounds: bool) -> None:
        self._connection = connection
        self._plays_sounds = plays_sounds
        self._speech_number = 0

    async def say_text(self, command: m.Say) -> m.Reply:
        """Say a text."""
        self._speech_number += 1
        language = m.LANGUAGES[command.language]
        await self._connection.call(rpc.speak(command.text, language, self._speech_number))
        return m.Status()

    async def set_light(self, command: m.SetLight) -> m.Reply:
        """Set the colour of the light."""
        await self._connection.call(rpc.set_light(command.red, command.green, command.blue))
        return m.Status()

    async def play_sound(self, command: m.PlaySound) -> m.Reply:
        """Play a part of a sound. Raises `UnsupportedError` if the wire does not carry sounds."""
        if not self._plays_sounds:
            raise unsupported("play a sound", self._connection.wire, "sound")
        await self._connection.call(rpc.play_sound(_APP, command.stream, command.pcm))
        return m.Status()

    async def stop_sound(self, _: m.StopSound) -> m.Reply:
        """Stop the sound that this client plays."""
        await self._connection.call(rpc.stop_sound(_APP))
        return m.Status()


# ---- the client ----------------------------------------------------------------------------------

PULSE_S = 0.5
"""Interval of the states for a robot that does not report its joints, so that callers never wait
for a state forever.
"""


class ServicesClient:
    """A client of one robot's services."""

    reports: RobotReports
    """What the robot reports."""

    def __init__(
        self,
        url: str,
        connection: MessageTransport,
        *,
        reconnect: bool = True,
        build: Build | None = None,
        serial: str = "",
        reports: RobotReports | None = None,
        abilities: frozenset[str] = SERVICES,
    ) -> None:
        """`reports` reads what the robot publishes; by default the topics of a data channel."""
        self.connection = RpcConnection(
            url,
            connection,
            reconnect=reconnect,
            on_connected=self._on_connected,
            before_loss=self._before_loss,
        )
        self.url, self.wire = self.connection.url, self.connection.wire
        self.reports = reports or ChannelReports(Identity(build, serial), self.connection)
        self.teaching = ServiceTeaching(self.connection, self.reports)
        self.stop_reason = ""
        """Why the last stream ended early."""
        self._abilities = abilities
        self._has_scripted_hand = False
        self._stops = ServiceStops(self.connection, self.reports, self.teaching)
        self._actions = ArmActions(self.connection, self.reports)
        self._modes = ServiceModes(self.connection, self.reports)
        self._audio = ServiceAudio(self.connection, plays_sounds="sound" in abilities)
        self._loop = asyncio.get_running_loop()
        self._pulse_timer: asyncio.TimerHandle | None = None
        self._handlers: dict[type, Callable[..., Awaitable[m.Reply]]] = {
            m.ListActions: self._actions.list_actions,
            m.EnterTeaching: self.teaching.enter_teaching,
            m.Record: self._do_nothing,
            m.PauseRecording: self.teaching.pause_recording,
            m.SaveAction: self._do_nothing,
            m.ExitTeaching: self.teaching.exit_teaching,
            m.DiscardRecording: self._actions.delete_action,
            m.PlayAction: self._actions.play_action,
            m.PlayPreset: self._actions.play_preset,
            m.Say: self._audio.say_text,
            m.SetLight: self._audio.set_light,
            m.PlaySound: self._audio.play_sound,
            m.StopSound: self._audio.stop_sound,
            m.StopMotion: self._stops.stop_motion,
            m.RenameAction: self._actions.rename_action,
            m.DeleteAction: self._actions.delete_action,
            m.ChangeMode: self._modes.change_mode,
            m.ReadMode: self._modes.publish_mode,
            m.ReadController: self._modes.read_controller,
            m.MoveByHand: self._move_by_hand,
        }

    # ---- properties and listeners ---------------------------------------------------------------

    @property
    def abilities(self) -> frozenset[str]:
        """What this robot can do over this wire."""
        scripted = {"hand"} if self._has_scripted_hand else frozenset[str]()
        return self._abilities | scripted | self.reports.abilities

    @property
    def session(self) -> RpcSession:
        """The current session."""
        return self.connection.session

    @property
    def reconnects(self) -> int:
        """Number of reconnects so far."""
        return self.connection.reconnects

    @property
    def stop_pending(self) -> bool:
        """Whether a stop was requested, or is required because the arms may be soft, and the robot
        has not confirmed it.
        """
        return self.connection.stop_pending

    @stop_pending.setter
    def stop_pending(self, pending: bool) -> None:
        self.connection.stop_pending = pending

    @property
    def latest(self) -> RobotState | None:
        """The newest state of the robot."""
        return self.reports.latest

    @property
    def identity(self) -> Identity:
        """What is known about the machine."""
        return self.reports.identity

    @property
    def build(self) -> Build:
        """Which robot it is. Before it has reported its joints: the named build, or the
        default G1.
        """
        return self.reports.build

    @property
    def recognised(self) -> bool:
        """Whether the robot has reported which machine it is, and rote knows it."""
        return self.identity.recognised

    @property
    def build_note(self) -> str:
        """What is unusual about the machine; empty if nothing is."""
        return self.identity.note

    @property
    def clockless(self) -> bool:
        """Whether the robot reports no time, so that states have this computer's time."""
        return self.reports.clockless

    @property
    def missing(self) -> tuple[str, ...]:
        """The joints of the build whose positions the robot does not report; states hold them at
        rest.
        """
        return self.identity.missing

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return self.reports.on_state(listener)

    def on_audio(self, listener: AudioListener) -> Callable[[], None]:
        """Call `listener` with recognised speech, and when a sound begins and ends.

        Return a function that removes it.
        """
        return self.reports.on_audio(listener)

    def on_loss(self, listener: LossListener) -> Callable[[], None]:
        """Call `listener` with the error when the robot is lost. Return a function that
        removes it.
        """
        return self.connection.on_loss(listener)

    def on_topic(self, topic: str, listener: TopicListener) -> Callable[[], None]:
        """Call `listener` with what is published on `topic`. Return a function that removes it."""
        return self.connection.on_topic(topic, listener)

    def ready(self, poses: Sequence[m.StreamPose]) -> Callable[[int], bool]:
        """Raise `UnsupportedError`: the robot's services do not accept single poses."""
        raise unsupported("stream a motion", self.wire, "stream")

    async def call(
        self, call: rpc.Call, *, read: bool = False, verified: bool = False
    ) -> rpc.RpcResponse:
        """Call a service and return its response. See `RpcConnection.call`."""
        return await self.connection.call(call, read=read, verified=verified)

    # ---- opening and closing --------------------------------------------------------------------

    async def open(self) -> None:
        """Connect; raises what went wrong, and at which stage."""
        try:
            await self.connection.open()
        except BaseException:
            await self.close()
            raise
        self._pulse_timer = self._loop.call_later(PULSE_S, self._on_pulse)

    async def _on_connected(self) -> None:
        await self._stops.send_pending_stop()
        if self.session.challenge.startswith(channel.SIMULATED):
            self._has_scripted_hand = True
        await self._modes.read_mode_if_answered()

    async def close(self) -> None:
        """Release a pose that the robot holds for us, then close the connection. Safe to call
        twice.
        """
        self.teaching.keep_alive(on=False)
        if self._pulse_timer is not None:
            self._pulse_timer.cancel()
            self._pulse_timer = None
        try:
            await self._actions.release_held_pose()
        finally:
            await self.connection.close()

    def _before_loss(self) -> None:
        """End the keep-alives, and forget the arm state: the robot is lost."""
        self.teaching.on_loss()
        self.reports.forget_arms()

    def _on_pulse(self) -> None:
        """Publish a state if the robot reported none for `PULSE_S`, and schedule the next check."""
        self._pulse_timer = self._loop.call_later(PULSE_S, self._on_pulse)
        if self.session.live and self.connection.failure is None:
            self.reports.publish_if_older(PULSE_S)

    # ---- commands -------------------------------------------------------------------------------

    async def ask(self, command: m.Command) -> m.Reply:
        """Carry out a command by requests to the services."""
        handler = self._handlers.get(type(command))
        if handler is None:
            raise UnsupportedError(f"do {type(command).__name__}", f"{self.wire}://")
        return await handler(command)

    async def _do_nothing(self, _: m.Command) -> m.Reply:
        """Return success at once: on a robot with services, teaching itself records and saves."""
        return m.Status()

    async def _move_by_hand(self, command: m.MoveByHand) -> m.Reply:
        if "hand" not in self.abilities:
            raise UnsupportedError(
                "move a robot's arms by a script", f"{self.wire}://", ("sim://",)
            )
        self.session.publish(
            HAND_TOPIC, {"script": command.script, "duration_ms": command.duration_ms}
        )
        self.connection.flush()
        return m.Status()
