"""A G1 by its services: what a person asks, in the words of arm, sport and motion_switcher."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from rote import messages as m
from rote.client.rpc import Dial, RpcPort
from rote.client.watchdog import Watchdog
from rote.errors import NoAnswerError, RefusedError, RoteError, UnsupportedError
from rote.messages import Phase, RobotState
from rote.session.rpc import Timing
from rote.wire import channel, rpc
from rote.wire.lowstate import (
    BMS_TOPIC,
    HAND_TOPIC,
    LOWSTATE_TOPIC,
    SPORT_TOPIC,
    Joints,
    decode_battery,
    decode_fsm,
    decode_lowstate,
)

KEEP_TEACHING_S = 1.0
READ_BACK_S = 0.25
CHANGE_MODE_S = 8.0
RELEASE = 99
"""The preset that lets go of a held pose."""
_LET_GO_S = 1.0

ABILITIES = frozenset(
    {
        "list", "teach", "play", "stop", "mode", "states", "rename", "delete", "presets", "pause",
        "overwrite", "health", "controller", "topics",
    }
)  # fmt: skip
"""What a G1's services can do. How an action is played is the robot's own business."""

_PHASES = {
    rpc.Activity.PLAYING: Phase.PLAYING,
    rpc.Activity.PRESET: Phase.PLAYING,
    rpc.Activity.RELEASING: Phase.RETURN,
}


class ServicesClient(RpcPort):
    """One client's conversation with one G1."""

    def __init__(
        self,
        url: str,
        dial: Dial,
        timing: Timing | None = None,
        *,
        reconnect: bool = True,
    ) -> None:
        super().__init__(url, dial, timing, reconnect=reconnect)
        self.abilities = ABILITIES
        self._keeper: asyncio.TimerHandle | None = None
        self._watchdog = Watchdog(
            self._loop,
            "the arms are soft and the robot must hear of us every second; "
            "after 10 s without it ends the teaching",
        )
        self._arms = rpc.ArmState()
        self._mode = -1
        self._battery: float | None = None
        self._faults: dict[tuple[int, int], str] = {}
        self._teaching = ""
        self._held_by_us = False
        self._stopped = False
        self._topics = {
            LOWSTATE_TOPIC: [self._see_joints],
            SPORT_TOPIC: [self._see_mode],
            rpc.ARM_STATE_TOPIC: [self._see_arms],
            BMS_TOPIC: [self._see_battery],
        }

    async def _greet(self) -> None:
        if self.session.challenge.startswith(channel.SIMULATED):
            self.abilities = ABILITIES | {"hand"}
        # In debug mode nobody answers for the controller; a preflight says so.
        with suppress(NoAnswerError):
            self._mode = rpc.decode_value((await self._request(rpc.GET_FSM, read=True)).data)

    async def close(self) -> None:
        """Let go of the robot, and of a pose it holds for us. Safe to call twice."""
        self._keep_teaching(on=False)
        try:
            if self._held_by_us and self._arms.holding and self._failure is None:
                with suppress(RoteError, TimeoutError):
                    async with asyncio.timeout(_LET_GO_S):
                        await self.call(rpc.execute_preset(RELEASE))
        finally:
            await super().close()

    async def ask(self, command: m.Command) -> m.Reply:
        """Carry out a command in the words of the services."""
        handler = _HANDLERS.get(type(command))
        if handler is None:
            raise UnsupportedError(f"do {type(command).__name__}", f"{self.wire}://")
        return await handler(self, command)

    # ---- commands in the words of the services --------------------------------------------------

    async def _list(self, _: m.ListActions) -> m.Reply:
        response = await self.call(rpc.LIST_ACTIONS, read=True)
        presets, taught = rpc.decode_actions(response.data)
        return m.ActionList(
            tuple(m.ActionEntry(t.name, round(t.seconds * 1000)) for t in taught),
            tuple(m.PresetEntry(p.id, p.name) for p in presets),
        )

    async def _enter(self, command: m.EnterTeaching) -> m.Reply:
        before, self._teaching = self._teaching, command.name
        # Before the answer: if only that is lost, the arms are soft all the same.
        self._keep_teaching(on=True)
        try:
            await self.call(rpc.start_teaching(command.name))
        except RefusedError:
            self._teaching = before
            self._keep_teaching(on=bool(before))
            raise
        return m.Status()

    async def _nothing(self, _: m.Command) -> m.Reply:
        """Recording and saving are one with teaching on this wire."""
        return m.Status()

    async def _pause(self, command: m.PauseRecording) -> m.Reply:
        await self.call(rpc.pause_teaching(paused=command.paused))
        return m.Status()

    async def _exit(self, _: m.ExitTeaching) -> m.Reply:
        self._keep_teaching(on=False)
        if self._teaching:
            self._teaching = ""
            await self.call(rpc.STOP_TEACHING)
        return m.Status()

    async def _play(self, command: m.PlayAction) -> m.Reply:
        self._stopped = False
        await self.call(rpc.play_taught(command.name))
        return m.Status()

    async def _play_preset(self, command: m.PlayPreset) -> m.Reply:
        self._stopped = False
        self._held_by_us = command.id != RELEASE
        await self.call(rpc.execute_preset(command.id))
        return m.Status()

    async def _stop(self, _: m.StopMotion) -> m.Reply:
        self._stopped = True
        if self._teaching:
            await self._exit(m.ExitTeaching())
        await self.call(rpc.STOP_TAUGHT)
        if self._arms.holding:
            await self.call(rpc.execute_preset(RELEASE))
        return m.Status()

    async def _rename(self, command: m.RenameAction) -> m.Reply:
        await self.call(rpc.rename_taught(command.old, command.new))
        return m.Status()

    async def _delete(self, command: m.DeleteAction | m.DiscardRecording) -> m.Reply:
        await self.call(rpc.delete_taught(command.name))
        return m.Status()

    async def _change_mode(self, command: m.ChangeMode) -> m.Reply:
        """Change the mode and read it back: a robot may answer "done" and not have done it."""
        await self.call(rpc.set_fsm(command.mode))
        try:
            async with asyncio.timeout(CHANGE_MODE_S):
                while True:
                    answer = await self.call(rpc.GET_FSM, read=True)
                    self._mode = rpc.decode_value(answer.data)
                    if self._mode == command.mode:
                        return m.Status()
                    await asyncio.sleep(READ_BACK_S)
        except TimeoutError:
            raise NoAnswerError(
                f"the robot accepted mode {command.mode} and is still in mode {self._mode}",
                "Look at the robot; try the buttons of its remote. Robots of 29 joints with newer "
                "software do not know mode 500, but 501.",
            ) from None

    async def _controller(self, _: m.ReadController) -> m.Reply:
        answer = await self.call(rpc.CHECK_MODE, read=True)
        return m.Controller(rpc.decode_mode_check(answer.data))

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

    # ---- while somebody teaches -----------------------------------------------------------------

    def _keep_teaching(self, *, on: bool) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None
        if on and self.session.live:
            self._keeper = self._loop.call_later(KEEP_TEACHING_S, self._keep)
        self._watchdog.watch(on=on)

    def _keep(self) -> None:
        if self.session.live and self._teaching:
            self.session.request(rpc.KEEP_TEACHING, self._loop.time())
            self._flush()
            self._keep_teaching(on=True)

    def _lose(self, silence_s: float) -> None:
        self._keep_teaching(on=False)
        self._teaching, self._arms = "", rpc.ArmState()
        super()._lose(silence_s)

    # ---- what the robot says of itself ----------------------------------------------------------

    def _hear(self, value: channel.Value) -> None:
        if isinstance(value, channel.Faults):
            self._note_faults(value)
        super()._hear(value)

    def _note_faults(self, faults: channel.Faults) -> None:
        if faults.change is channel.Change.ALL:
            self._faults.clear()
        for fault in faults.faults:
            if faults.change is channel.Change.REMOVED:
                self._faults.pop((fault.source, fault.code), None)
            else:
                self._faults[fault.source, fault.code] = fault.words

    def _see_arms(self, message: channel.Message) -> None:
        if isinstance(message.data, str):
            self._arms = rpc.decode_arm_state(message.data)

    def _see_mode(self, message: channel.Message) -> None:
        self._mode = decode_fsm(message.data)

    def _see_battery(self, message: channel.Message) -> None:
        self._battery = decode_battery(message.data)

    def _see_joints(self, message: channel.Message) -> None:
        self._report(self._state(decode_lowstate(message.data)))

    def _state(self, joints: Joints) -> RobotState:
        activity = self._arms.activity
        recording = activity is rpc.Activity.RECORDING
        holding = self._arms.holding
        return RobotState(
            mode=self._mode,
            arms_soft=recording,
            recording=recording,
            phase=Phase.NONE if holding else _PHASES.get(activity, Phase.NONE),
            stopped_early=self._stopped,
            positions_rad=joints.positions_rad,
            velocities_rad_s=joints.velocities_rad_s,
            accelerometer_m_s2=joints.accelerometer_m_s2,
            gyroscope_rad_s=joints.gyroscope_rad_s,
            foot_force_n=(),
            time_us=joints.tick_ms * 1000,
            temperatures_c=joints.temperatures_c,
            battery_percent=self._battery,
            faults=tuple(self._faults.values()),
            holding=holding,
        )


_HANDLERS: dict[type, Callable[..., Awaitable[m.Reply]]] = {
    m.ListActions: ServicesClient._list,
    m.EnterTeaching: ServicesClient._enter,
    m.Record: ServicesClient._nothing,
    m.PauseRecording: ServicesClient._pause,
    m.SaveAction: ServicesClient._nothing,
    m.ExitTeaching: ServicesClient._exit,
    m.DiscardRecording: ServicesClient._delete,
    m.PlayAction: ServicesClient._play,
    m.PlayPreset: ServicesClient._play_preset,
    m.StopMotion: ServicesClient._stop,
    m.RenameAction: ServicesClient._rename,
    m.DeleteAction: ServicesClient._delete,
    m.ChangeMode: ServicesClient._change_mode,
    m.ReadController: ServicesClient._controller,
    m.MoveByHand: ServicesClient._hand,
}
