"""A client of the robot's services arm, sport and motion_switcher: commands become requests.

It owns its connection, a data channel or DDS. The robot reports joints by motor slot; the client
recognises the build from these reports and converts them to states in the build's joint order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from rote import messages as m
from rote.errors import UnsupportedError
from rote.messages import RobotState
from rote.model.family import Build
from rote.session.recognition import Identity
from rote.session.rpc import RpcSession
from rote.transport.base_client import AudioListener, LossListener, StateListener
from rote.transport.services.actions import ArmActions
from rote.transport.services.audio import ServiceAudio
from rote.transport.services.channel_reports import ChannelReports
from rote.transport.services.connection import MessageTransport, RpcConnection, TopicListener
from rote.transport.services.modes import ServiceModes
from rote.transport.services.reports import RobotReports
from rote.transport.services.stops import ServiceStops
from rote.transport.services.teaching import ServiceTeaching
from rote.transport.wires import SERVICES, unsupported
from rote.wire.services import rpc
from rote.wire.services.lowstate import HAND_TOPIC
from rote.wire.webrtc import channel

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
            m.ReadMode: self._modes.request_mode,
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
        await self._modes.read_first_mode()

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
        """Called when the robot is lost."""
        self.teaching.on_loss()
        self.reports.forget_arms()

    def _on_pulse(self) -> None:
        """Publish a state for a robot that reports too few itself."""
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
        """Do nothing: with the services, teaching includes recording and saving."""
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
