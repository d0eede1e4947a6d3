"""The asyncio shell of a client's conversation with a G1's services, over any message carrier."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from rote import messages as m
from rote.errors import DecodeError, LinkError, RefusedError, UnsupportedError
from rote.messages import Phase, RobotState
from rote.session.events import Opened, PeerLost, Unanswered
from rote.session.rpc import Answered, Event, Heard, RpcSession, Timing
from rote.session.teaching import Role
from rote.transport.shell import Shell, unanswered
from rote.wire import channel, rpc
from rote.wire.lowstate import (
    HAND_TOPIC,
    LOWSTATE_TOPIC,
    SPORT_TOPIC,
    Joints,
    decode_fsm,
    decode_lowstate,
)

Message = str | bytes
KEEP_TEACHING_S = 1.0

ABILITIES = frozenset({"list", "teach", "play", "stop", "mode", "states", "rename", "delete"})
"""What a G1's services can do. How an action is played is the robot's own business."""

_PHASES = {
    rpc.Activity.PLAYING: Phase.PLAYING,
    rpc.Activity.PRESET: Phase.PLAYING,
    rpc.Activity.RELEASING: Phase.RETURN,
}


class Carrier:
    """A way to one robot for messages: what a shell sends with, and closes."""

    def send(self, message: Message) -> None:
        """Send one message."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of the carrier."""
        raise NotImplementedError


class RpcPort(Shell[rpc.Response]):
    """One client's conversation with one robot's services."""

    arms_hold_within_s = 10

    def __init__(self, url: str, timing: Timing | None = None, *, simulated: bool = False) -> None:
        super().__init__(url)
        self.abilities = ABILITIES | {"hand"} if simulated else ABILITIES
        self.session = RpcSession(Role.CLIENT, timing=timing)
        self._carrier: Carrier | None = None
        self._keeper: asyncio.TimerHandle | None = None
        self._arms = rpc.ArmState()
        self._mode = -1
        self._teaching = ""
        self._stopped = False

    # ---- what a robot needs of a wire -----------------------------------------------------------

    async def open(self, dial: Callable[[Callable[[Message], None]], Awaitable[Carrier]]) -> None:
        """Open the carrier and the conversation; raises `NoAnswerError` when nobody answers."""
        try:
            self.session.open(self._loop.time(), unix_s=time.time())
            self._carrier = await dial(self._receive)
            self._flush()
            await self._opened
            self._mode = rpc.decode_value((await self.call(rpc.GET_FSM, read=True)).data)
        except BaseException:
            await self.close()
            raise

    async def ask(self, command: m.Command) -> m.Reply:
        """Carry out a command in the words of the services."""
        handler = _HANDLERS.get(type(command))
        if handler is None:
            raise UnsupportedError(f"do {type(command).__name__}", f"{self.wire}://")
        return await handler(self, command)

    async def call(self, call: rpc.Call, *, read: bool = False) -> rpc.Response:
        """Ask a service; its refusal is raised with words and remedy."""
        if self._failure is not None:
            raise self._failure
        token = self.session.request(call, self._loop.time(), read=read)
        response = await self._answer_to(token)
        if response.code:
            raise RefusedError(response.code, *rpc.explain(call.service, response.code))
        return response

    async def close(self) -> None:
        """Let go of the robot. Safe to call twice."""
        self._keep_teaching(on=False)
        self.session.close(self._loop.time())
        self._flush()
        self._disarm()
        self._fail(LinkError("the connection was closed", "Connect again."))
        if self._carrier is not None:
            await self._carrier.close()

    # ---- commands in the words of the services --------------------------------------------------

    async def _list(self, _: m.ListActions) -> m.Reply:
        response = await self.call(rpc.LIST_ACTIONS, read=True)
        presets, taught = rpc.decode_actions(response.data)
        return m.ActionList(
            tuple(m.ActionEntry(t.name, round(t.seconds * 1000)) for t in taught),
            tuple(m.PresetEntry(p.id, p.name) for p in presets),
        )

    async def _enter(self, command: m.EnterTeaching) -> m.Reply:
        self._teaching = command.name
        # Before the answer: if only that is lost, the arms are soft all the same.
        self._keep_teaching(on=True)
        try:
            await self.call(rpc.start_teaching(command.name))
        except RefusedError:
            self._keep_teaching(on=False)
            self._teaching = ""
            raise
        return m.Status()

    async def _nothing(self, _: m.Command) -> m.Reply:
        """Recording and saving are one with teaching on this wire."""
        return m.Status()

    async def _exit(self, _: m.ExitTeaching) -> m.Reply:
        self._keep_teaching(on=False)
        if self._teaching:
            self._teaching = ""
            await self.call(rpc.STOP_TEACHING)
        return m.Status()

    async def _discard(self, command: m.DiscardRecording) -> m.Reply:
        await self.call(rpc.delete_taught(command.name))
        return m.Status()

    async def _play(self, command: m.PlayAction) -> m.Reply:
        self._stopped = False
        await self.call(rpc.play_taught(command.name))
        return m.Status()

    async def _play_preset(self, command: m.PlayPreset) -> m.Reply:
        await self.call(rpc.execute_preset(command.id))
        return m.Status()

    async def _stop(self, _: m.StopMotion) -> m.Reply:
        self._stopped = True
        if self._teaching:
            await self._exit(m.ExitTeaching())
        await self.call(rpc.STOP_TAUGHT)
        return m.Status()

    async def _rename(self, command: m.RenameAction) -> m.Reply:
        await self.call(rpc.rename_taught(command.old, command.new))
        return m.Status()

    async def _delete(self, command: m.DeleteAction) -> m.Reply:
        await self.call(rpc.delete_taught(command.name))
        return m.Status()

    async def _change_mode(self, command: m.ChangeMode) -> m.Reply:
        await self.call(rpc.set_fsm(command.mode))
        return m.Status()

    async def _hand(self, command: m.MoveByHand) -> m.Reply:
        if "hand" not in self.abilities:
            raise UnsupportedError(
                "move a robot's arms by a script", f"{self.wire}://", ("sim://",)
            )
        self.session.publish(
            HAND_TOPIC, {"script": command.script, "duration_ms": command.duration_ms}
        )
        self._flush()
        return m.Status()

    def _keep_teaching(self, *, on: bool) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None
        if on and self.session.live:
            self._keeper = self._loop.call_later(KEEP_TEACHING_S, self._keep)

    def _keep(self) -> None:
        if self.session.live and self._teaching:
            self.session.request(rpc.KEEP_TEACHING, self._loop.time())
            self._flush()
            self._keep_teaching(on=True)

    # ---- the loop around the session ------------------------------------------------------------

    def _receive(self, message: Message) -> None:
        self.session.receive(message, self._loop.time())
        self._flush()

    def _tick(self) -> None:
        self._timer = None
        self.session.tick(self._loop.time())
        self._flush()

    def _flush(self) -> None:
        for event in self.session.events():
            self._handle(event)
        for message in self.session.outgoing():
            if self._carrier is not None:
                self._carrier.send(message)
        self._arm(self.session.due)

    def _handle(self, event: Event) -> None:
        if isinstance(event, Heard):
            self._hear(event.value)
        elif isinstance(event, Answered):
            self._answer(event.token, event.response)
        elif isinstance(event, Unanswered):
            self._answer(event.token, self._failure or unanswered(event.waited_s))
        elif isinstance(event, Opened):
            for topic in (LOWSTATE_TOPIC, SPORT_TOPIC, rpc.ARM_STATE_TOPIC):
                self.session.subscribe(topic)
            self._has_opened()
        elif isinstance(event, PeerLost):
            self._keep_teaching(on=False)
            self._fail(self._lost(event.silence_s))

    def _hear(self, value: channel.Value) -> None:
        if not isinstance(value, channel.Message):
            return
        try:
            if value.topic == rpc.ARM_STATE_TOPIC and isinstance(value.data, str):
                self._arms = rpc.decode_arm_state(value.data)
            elif value.topic == SPORT_TOPIC:
                self._mode = decode_fsm(value.data)
            elif value.topic == LOWSTATE_TOPIC:
                self._report(self._state(decode_lowstate(value.data)))
        except DecodeError:
            self.session.dropped["telemetry"] += 1

    def _state(self, joints: Joints) -> RobotState:
        activity = self._arms.activity
        recording = activity is rpc.Activity.RECORDING
        return RobotState(
            mode=self._mode,
            arms_soft=recording,
            recording=recording,
            phase=_PHASES.get(activity, Phase.NONE),
            stopped_early=self._stopped,
            positions_rad=joints.positions_rad,
            velocities_rad_s=joints.velocities_rad_s,
            accelerometer_m_s2=joints.accelerometer_m_s2,
            gyroscope_rad_s=joints.gyroscope_rad_s,
            time_us=joints.tick_ms * 1000,
        )


_HANDLERS: dict[type, Callable[..., Awaitable[m.Reply]]] = {
    m.ListActions: RpcPort._list,
    m.EnterTeaching: RpcPort._enter,
    m.Record: RpcPort._nothing,
    m.SaveAction: RpcPort._nothing,
    m.ExitTeaching: RpcPort._exit,
    m.DiscardRecording: RpcPort._discard,
    m.PlayAction: RpcPort._play,
    m.PlayPreset: RpcPort._play_preset,
    m.StopMotion: RpcPort._stop,
    m.RenameAction: RpcPort._rename,
    m.DeleteAction: RpcPort._delete,
    m.ChangeMode: RpcPort._change_mode,
    m.MoveByHand: RpcPort._hand,
}
