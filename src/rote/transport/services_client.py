"""A client of the robot's services arm, sport and motion_switcher: commands become requests.

It owns its connection, a data channel or DDS. The robot reports joints by motor slot; the client
recognises the build from these reports and converts them to states in the build's joint order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

from rote import messages as m
from rote.errors import (
    CautionError,
    DecodeError,
    LinkError,
    NoAnswerError,
    RefusedError,
    RoteError,
    UnsupportedError,
)
from rote.messages import Phase, RobotState
from rote.model.family import Build
from rote.session.recognition import Identity
from rote.session.rpc import ChannelState, RpcSession
from rote.session.teaching import ClockWatch
from rote.text import Act, Text
from rote.transport.base_client import (
    AudioListener,
    LossListener,
    StateFeed,
    StateListener,
    add_listener,
    notify_listeners,
)
from rote.transport.rpc_connection import MessageTransport, RpcConnection, TopicListener
from rote.transport.watchdog import Watchdog
from rote.transport.wires import SERVICES, unsupported
from rote.wire.services import faults as wire_faults
from rote.wire.services import rpc
from rote.wire.services.lowstate import (
    BMS_TOPIC,
    HAND_TOPIC,
    LOWSTATE_TOPIC,
    SPORT_TOPIC,
    JointColumns,
    decode_battery,
    decode_fsm,
    decode_lowstate,
    select,
)
from rote.wire.services.rpc import NO_STATUS
from rote.wire.webrtc import channel

KEEP_TEACHING_S = 1.0
READ_BACK_S = 0.25
CHANGE_MODE_S = 8.0
PULSE_S = 0.5
"""Interval of the states for a robot that does not report its joints, so that callers never wait
for a state forever.
"""
JOINTS_OLD_S = 2.5
"""Positions older than this are marked as not measured: a robot silent for this long counts as
lost.
"""
ARMS_OLD_S = 3.0
"""The robot reports its arm state ten times per second; an older report is not used."""
STOPPED_S = 2.0
"""Timeout for the report that the robot has stopped, if its answer has no status."""
MODE_TIMEOUT_S = 1.5
"""Timeout for reading the mode on a new connection; short, because a stop waits for it."""
_FRESH_S = 0.15
"""Joint reports newer than this arrive many times per second; states are then made from them."""
_RELEASE_TIMEOUT_S = 1.0
_RECOGNISE_S = 1.0
"""Timeout for a newly connected robot to report which machine it is."""

_APP = "rote"
"""The name under which we play sounds."""

_PHASES = {
    rpc.RpcActivity.PLAYING: Phase.PLAYING,
    rpc.RpcActivity.PRESET: Phase.PLAYING,
    rpc.RpcActivity.RELEASING: Phase.RETURN,
}


class _Ask(Protocol):
    """Calls a service: `RpcConnection.call`, or `request` before a reconnect is complete."""

    async def __call__(
        self, call: rpc.Call, *, read: bool = False, verified: bool = False
    ) -> rpc.RpcResponse: ...


class ServicesClient:
    """A client of one robot's services."""

    def __init__(
        self,
        url: str,
        connection: MessageTransport,
        *,
        reconnect: bool = True,
        build: Build | None = None,
        serial: str = "",
    ) -> None:
        self.connection = RpcConnection(url, connection, reconnect=reconnect)
        self.connection.on_connected = self._on_connected
        self.connection.on_value = self._on_value
        self.connection.before_loss = self._before_loss
        self.url, self.wire = self.connection.url, self.connection.wire
        self.abilities = SERVICES
        self.latest: RobotState | None = None
        """The newest state of the robot."""
        self.identity = Identity(build, serial)
        self.build = self.identity.build
        """Which robot it is. Before it has reported its joints: the named build, or the
        default G1.
        """
        self._loop = asyncio.get_running_loop()
        self._states = StateFeed()
        self._motors_reported = asyncio.Event()
        self._keep_teaching_timer: asyncio.TimerHandle | None = None
        self._watchdog = Watchdog(
            self._loop,
            "the arms are soft and the robot must receive a message every second; "
            "it ends the teaching after 10 s without one",
        )
        self._pulse_timer: asyncio.TimerHandle | None = None
        self._arms = rpc.ArmState()
        self._arms_at: float | None = None
        self._joints: JointColumns | None = None
        self._joints_at = self._reported_at = 0.0
        self._mode = -1
        self._battery: float | None = None
        self._faults: dict[tuple[int, int], str] = {}
        self._teaching = ""
        self._held_by_us = False
        self._stopped = False
        self.stop_reason = ""
        """Why the last stream ended early."""
        self._has_no_clock = False
        self._ticks = ClockWatch()
        self._speech_number = 0
        self._audio_listeners: list[AudioListener] = []
        self._subscribe_topics()

    def _subscribe_topics(self) -> None:
        """Subscribe to the topics that states are made from."""
        self.on_topic(LOWSTATE_TOPIC, self._on_joints)
        self.on_topic(SPORT_TOPIC, self._on_mode)
        self.on_topic(rpc.ARM_STATE_TOPIC, self._on_arm_state)
        self.on_topic(BMS_TOPIC, self._on_battery)

    # ---- properties and listeners ---------------------------------------------------------------

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
        return self._has_no_clock

    @property
    def missing(self) -> tuple[str, ...]:
        """The joints of the build whose positions the robot does not report; states hold them at
        rest.
        """
        return self.identity.missing

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return self._states.on_state(listener)

    def on_audio(self, listener: AudioListener) -> Callable[[], None]:
        """Call `listener` with recognised speech, and when a sound begins and ends.

        Return a function that removes it.
        """
        return add_listener(self._audio_listeners, listener)

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
        if self.stop_pending:
            with suppress(RefusedError):  # final: a repeated request would be refused again
                await self.connection.confirm_stop(self._stop_all(self.connection.request))
        if self.session.challenge.startswith(channel.SIMULATED):
            self.abilities = SERVICES | {"hand"}
        # In debug mode no service answers for the controller, and some robots send odd answers; the
        # preflight reports that. In any case the robot can still be stopped.
        with suppress(TimeoutError, NoAnswerError, RefusedError, DecodeError):
            async with asyncio.timeout(MODE_TIMEOUT_S):
                answer = await self.connection.request(rpc.GET_FSM, read=True)
            self._note_mode(rpc.decode_value(answer.text))

    async def close(self) -> None:
        """Release a pose that the robot holds for us, then close the connection. Safe to call
        twice.
        """
        self._keep_teaching(on=False)
        if self._pulse_timer is not None:
            self._pulse_timer.cancel()
            self._pulse_timer = None
        try:
            if self._held_by_us and self._arms.holding and self.connection.failure is None:
                with suppress(RoteError, TimeoutError):
                    async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                        await self.call(rpc.execute_preset(m.RELEASE_PRESET))
        finally:
            await self.connection.close()

    async def ask(self, command: m.Command) -> m.Reply:
        """Carry out a command by requests to the services."""
        handler = _HANDLERS.get(type(command))
        if handler is None:
            raise UnsupportedError(f"do {type(command).__name__}", f"{self.wire}://")
        return await handler(self, command)

    # ---- commands as service requests -----------------------------------------------------------

    async def _list_actions(self, _: m.ListActions) -> m.Reply:
        response = await self.call(rpc.LIST_ACTIONS, read=True)
        presets, taught, notes = rpc.decode_actions(response.text)
        return m.ActionList(
            tuple(m.ActionEntry(t.name, round(t.seconds * 1000)) for t in taught),
            tuple(m.PresetEntry(p.id, p.name) for p in presets),
            notes,
        )

    async def _enter_teaching(self, command: m.EnterTeaching) -> m.Reply:
        before, self._teaching = self._teaching, command.name
        # Before the answer: if only the answer is lost, the arms are soft nevertheless.
        self._keep_teaching(on=True)
        try:
            # The states, and finally the list of actions, show whether the robot records.
            await self.call(rpc.start_teaching(command.name), verified=True)
        except RefusedError:
            self._teaching = before
            self._keep_teaching(on=bool(before))
            raise
        return m.Status()

    async def _do_nothing(self, _: m.Command) -> m.Reply:
        """Do nothing: with the services, teaching includes recording and saving."""
        return m.Status()

    async def _pause_recording(self, command: m.PauseRecording) -> m.Reply:
        await self.call(rpc.pause_teaching(paused=command.paused))
        return m.Status()

    async def _exit_teaching(self, _: m.ExitTeaching) -> m.Reply:
        if self._teaching:
            await self._end_teaching(self.call)
        return m.Status()

    async def _end_teaching(self, ask: _Ask) -> None:
        """Make soft arms hold, whichever client made them soft."""
        self._keep_teaching(on=False)
        ended = self._teaching
        try:
            await ask(rpc.STOP_TEACHING, verified=True)
        except LinkError:
            self.connection.owe_stop()  # the arms may still be soft
            raise
        except RefusedError:
            self._teaching = ""
            if ended or self._reports_teaching:
                raise
        if self._teaching == ended:
            self._teaching = ""

    async def _play_action(self, command: m.PlayAction) -> m.Reply:
        self._stopped = False
        await self.call(rpc.play_taught(command.name), verified=True)
        return m.Status()

    async def _play_preset(self, command: m.PlayPreset) -> m.Reply:
        self._stopped = False
        self._held_by_us = command.id != m.RELEASE_PRESET
        await self.call(rpc.execute_preset(command.id), verified=True)
        return m.Status()

    async def _say_text(self, command: m.Say) -> m.Reply:
        self._speech_number += 1
        await self.call(rpc.speak(command.text, m.LANGUAGES[command.language], self._speech_number))
        return m.Status()

    async def _set_light(self, command: m.SetLight) -> m.Reply:
        await self.call(rpc.set_light(command.red, command.green, command.blue))
        return m.Status()

    async def _play_sound(self, command: m.PlaySound) -> m.Reply:
        if "sound" not in self.abilities:
            raise unsupported("play a sound", self.wire, "sound")
        await self.call(rpc.play_sound(_APP, command.stream, command.pcm))
        return m.Status()

    async def _stop_sound(self, _: m.StopSound) -> m.Reply:
        await self.call(rpc.stop_sound(_APP))
        return m.Status()

    def _notify_audio(self, audio: m.HeardSpeech | m.SoundState) -> None:
        notify_listeners(self._audio_listeners, audio, self._loop)

    async def _stop_motion(self, _: m.StopMotion) -> m.Reply:
        # A reconnected robot takes a stop before it counts as ready; the pending stop that opens a
        # session may have been sent already.
        is_open = self.session.state is ChannelState.READY
        ask = self.connection.request if is_open else self.call
        return await self.connection.confirm_stop(self._stop_all(ask))

    async def _stop_all(self, ask: _Ask) -> m.Reply:
        """Stop everything. All requests are sent at once: none waits for the answer to another."""
        self._stopped = True
        stops = [self._stop_taught(ask)]
        if self._may_be_soft:
            stops.append(self._end_teaching(ask))
        if self._arms.holding:
            stops.append(self._release_arms(ask))
        problems = [each for each in await asyncio.gather(*map(self._catch_error, stops)) if each]
        if problems:
            # A missing answer outranks a refusal: the robot may not have received the request.
            raise min(problems, key=lambda each: not isinstance(each, LinkError))
        return m.Status()

    @property
    def _may_be_soft(self) -> bool:
        """Whether this client teaches, or the robot reports soft arms or nothing about its arms."""
        return bool(self._teaching) or self._reports_teaching or self._arms_at is None

    @property
    def _reports_teaching(self) -> bool:
        return self._arms.activity is rpc.RpcActivity.RECORDING

    async def _release_arms(self, ask: _Ask) -> None:
        await ask(rpc.execute_preset(m.RELEASE_PRESET))

    async def _stop_taught(self, ask: _Ask) -> None:
        answer = await ask(rpc.STOP_TAUGHT, verified=True)
        if answer.code == NO_STATUS and not await self._wait_until(self._reports_idle, STOPPED_S):
            raise NoAnswerError(
                "the stop was sent, but the robot does not report whether it stopped",
                "Look at the robot; if it moves, use its remote: L2+B.",
            )

    def _reports_idle(self) -> bool:
        """Whether the robot reported that its arms neither play nor record."""
        state = self.latest
        idle = state is not None and state.phase in (Phase.NONE, Phase.RETURN)
        return state is not None and idle and state.phase_told and not state.recording

    async def _wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait at most `seconds` until `condition()` is true; return whether it is."""
        state_arrived = asyncio.Event()
        remove_listener = self.on_state(lambda _: state_arrived.set())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while not condition():
                        state_arrived.clear()
                        await state_arrived.wait()
        finally:
            remove_listener()
        return condition()

    async def _read_action_names(self) -> set[str]:
        """Return the names of the taught actions, to verify a request answered without a status."""
        try:
            response = await self.call(rpc.LIST_ACTIONS, read=True)
        except RoteError as error:
            raise _make_unknown_outcome_error(str(error)) from error
        return {action.name for action in rpc.decode_actions(response.text).taught}

    async def _catch_error(self, work: Awaitable[object]) -> RoteError | None:
        try:
            await work
        except RoteError as error:
            return error
        return None

    async def _rename_action(self, command: m.RenameAction) -> m.Reply:
        answer = await self.call(rpc.rename_taught(command.old, command.new), verified=True)
        if answer.code == NO_STATUS and command.new not in await self._read_action_names():
            raise _make_unknown_outcome_error(f"{command.old!r} is not renamed")
        return m.Status()

    async def _delete_action(self, command: m.DeleteAction | m.DiscardRecording) -> m.Reply:
        answer = await self.call(rpc.delete_taught(command.name), verified=True)
        if answer.code == NO_STATUS and command.name in await self._read_action_names():
            raise _make_unknown_outcome_error(f"{command.name!r} is still there")
        return m.Status()

    async def _change_mode(self, command: m.ChangeMode) -> m.Reply:
        """Change the mode and read it back: a robot may confirm a change that it did not make."""
        await self._wait_for_recognition()
        if problem := self.identity.mode_problem():
            raise CautionError(*problem)
        await self.call(rpc.set_fsm(command.mode), verified=True)
        try:
            async with asyncio.timeout(CHANGE_MODE_S):
                while True:
                    answer = await self.call(rpc.GET_FSM, read=True)
                    self._note_mode(rpc.decode_value(answer.text))
                    if self._mode == command.mode:
                        return m.Status()
                    await asyncio.sleep(READ_BACK_S)
        except TimeoutError:
            raise NoAnswerError(
                f"the robot accepted mode {command.mode:d} and is still in mode {self._mode:d}",
                "Look at the robot; try the buttons of its remote. Robots of 29 joints with newer "
                "software do not know mode 500, but 501.",
            ) from None

    async def _request_mode(self, _: m.ReadMode) -> m.Reply:
        answer = await self.call(rpc.GET_FSM, read=True)
        self._note_mode(rpc.decode_value(answer.text))
        self._publish_state(self._make_state(None))
        return m.Status()

    async def _wait_for_recognition(self) -> None:
        """Wait until the robot has reported its joints, which many do within milliseconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_RECOGNISE_S):
                await self._motors_reported.wait()

    async def _read_controller(self, _: m.ReadController) -> m.Reply:
        answer = await self.call(rpc.CHECK_MODE, read=True)
        return m.Controller(rpc.decode_mode_check(answer.text))

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

    # ---- keeping a teaching alive ---------------------------------------------------------------

    def _keep_teaching(self, *, on: bool) -> None:
        if self._keep_teaching_timer is not None:
            self._keep_teaching_timer.cancel()
            self._keep_teaching_timer = None
        if on and self.session.live:
            self._keep_teaching_timer = self._loop.call_later(
                KEEP_TEACHING_S, self._send_keep_teaching
            )
        self._watchdog.watch(on=on)

    def _send_keep_teaching(self) -> None:
        if self.session.live and self._teaching:
            self.session.request(rpc.KEEP_TEACHING, self.connection.now())
            self.connection.flush()
            self._keep_teaching(on=True)

    def _before_loss(self) -> None:
        """Called when the robot is lost: stop the repeated requests."""
        self._keep_teaching(on=False)
        if self._teaching:
            self.connection.owe_stop()  # the arms may still be soft
        self._teaching, self._arms, self._arms_at = "", rpc.ArmState(), None

    # ---- reports of the robot -------------------------------------------------------------------

    def _on_value(self, value: channel.Value) -> None:
        if isinstance(value, wire_faults.Faults):
            self._note_faults(value)

    def _note_faults(self, faults: wire_faults.Faults) -> None:
        if faults.change is wire_faults.Change.ALL:
            self._faults.clear()
        for fault in faults.faults:
            if faults.change is wire_faults.Change.REMOVED:
                self._faults.pop((fault.source, fault.code), None)
            else:
                self._faults[fault.source, fault.code] = fault.message

    def _on_arm_state(self, message: channel.ChannelMessage) -> None:
        data = message.data
        self._note_arms(
            rpc.decode_arm_state(data) if isinstance(data, str) else rpc.read_arm_state(data)
        )

    def _note_arms(self, arms: rpc.ArmState) -> None:
        """Process the arm state; if the robot reports no joints, publish a state from it."""
        now = self._loop.time()
        self._arms, self._arms_at = arms, now
        if now - self._joints_at > _FRESH_S:
            self._publish_state(self._make_state(None))

    def _on_pulse(self) -> None:
        """Publish a state for a robot that reports too few itself."""
        self._pulse_timer = self._loop.call_later(PULSE_S, self._on_pulse)
        here = self.session.live and self.connection.failure is None
        if here and self._loop.time() - self._reported_at >= PULSE_S:
            self._publish_state(self._make_state(None))

    def _on_mode(self, message: channel.ChannelMessage) -> None:
        self._note_mode(decode_fsm(message.data))

    def _note_mode(self, mode: int) -> None:
        self._mode = mode
        if self.identity.on_mode(mode):
            self._on_build_changed()

    def _on_battery(self, message: channel.ChannelMessage) -> None:
        self._battery = decode_battery(message.data)

    def _on_joints(self, message: channel.ChannelMessage) -> None:
        slots = decode_lowstate(message.data)
        self._recognise_motors(slots.mode_machine, len(slots.joints_rad))
        joints = select(slots, self.build)
        self.identity.on_missing_columns(joints.missing)
        self._publish_state(self._make_state(joints))

    def _recognise_motors(self, machine: int, slots: int) -> None:
        """Process the machine number, and the number of motor slots in the report."""
        if self.identity.on_motors(machine, slots):
            self._on_build_changed()
        self._motors_reported.set()

    def _on_build_changed(self) -> None:
        """Called when the robot turns out to be a different build."""
        self.build = self.identity.build

    def _publish_state(self, state: RobotState) -> None:
        self.latest, self._reported_at = state, self._loop.time()
        self._states.notify(state)

    def _time_us(self, joints: JointColumns | None, now: float) -> int:
        """Return the robot's clock, or this computer's if the robot reports none that advances."""
        if joints is not None:
            self._has_no_clock |= joints.tick_ms is None or self._ticks.update(joints.tick_ms, now)
        last = joints or self._joints
        if self._has_no_clock or last is None or last.tick_ms is None:
            return int(now * 1e6)
        return last.tick_ms * 1000 + (0 if joints is last else int((now - self._joints_at) * 1e6))

    def _make_state(self, measured: JointColumns | None) -> RobotState:
        """Return the current state; `measured` are joints that were just reported, if any."""
        now = self._loop.time()
        time_us = self._time_us(measured, now)
        if measured is not None:
            self._joints, self._joints_at = measured, now
        elif now - self._joints_at > JOINTS_OLD_S:
            self._joints = None
        joints = self._joints or _NO_JOINTS
        activity = self._arms.activity
        recording = self._reports_teaching
        holding = self._arms.holding
        return RobotState(
            mode=self._mode,
            arms_soft=recording,
            recording=recording,
            phase=Phase.NONE if holding else _PHASES.get(activity, Phase.NONE),
            stopped_early=self._stopped,
            joints_rad=joints.joints_rad,
            velocities_rad_s=joints.velocities_rad_s,
            accelerometer_m_s2=joints.accelerometer_m_s2,
            gyroscope_rad_s=joints.gyroscope_rad_s,
            foot_force_n=(),
            time_us=time_us,
            temperatures_c=joints.temperatures_c,
            battery_percent=self._battery,
            faults=tuple(self._faults.values()),
            holding=holding,
            joints_told=measured is not None,
            phase_told=self._arms_at is not None and now - self._arms_at <= ARMS_OLD_S,
        )


def _make_unknown_outcome_error(detail: str) -> NoAnswerError:
    return NoAnswerError(
        f"the robot's answer does not say whether it was done: it has no status; {detail}",
        Text("Look what there is ({list}), then ask again.", list=Act.LIST),
    )


_NO_JOINTS = JointColumns(None, (), (), (), ())
_HANDLERS: dict[type, Callable[..., Awaitable[m.Reply]]] = {
    m.ListActions: ServicesClient._list_actions,
    m.EnterTeaching: ServicesClient._enter_teaching,
    m.Record: ServicesClient._do_nothing,
    m.PauseRecording: ServicesClient._pause_recording,
    m.SaveAction: ServicesClient._do_nothing,
    m.ExitTeaching: ServicesClient._exit_teaching,
    m.DiscardRecording: ServicesClient._delete_action,
    m.PlayAction: ServicesClient._play_action,
    m.PlayPreset: ServicesClient._play_preset,
    m.Say: ServicesClient._say_text,
    m.SetLight: ServicesClient._set_light,
    m.PlaySound: ServicesClient._play_sound,
    m.StopSound: ServicesClient._stop_sound,
    m.StopMotion: ServicesClient._stop_motion,
    m.RenameAction: ServicesClient._rename_action,
    m.DeleteAction: ServicesClient._delete_action,
    m.ChangeMode: ServicesClient._change_mode,
    m.ReadMode: ServicesClient._request_mode,
    m.ReadController: ServicesClient._read_controller,
    m.MoveByHand: ServicesClient._move_by_hand,
}
