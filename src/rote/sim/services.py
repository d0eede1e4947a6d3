"""The services of a G1 (arm, sport, motion_switcher, robot_state) on the simulated robot.

The same world as on the UDP frames, asked in other words: an action taught on one wire plays on the
other. Answers come with the delay a real robot was seen to take.
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from rote import messages as m
from rote.errors import DecodeError
from rote.messages import Code
from rote.sim.presets import PRESETS
from rote.sim.world import World
from rote.wire import rpc
from rote.wire.rpc import ArmApi, MotionSwitcherApi, Request, RobotStateApi, SportApi

_QUICK_S, _SLOW_S = 0.02, 0.33
_UNKNOWN_API, _BAD_PARAMETER = 3203, 3204
_INVALID_FSM, _NO_SUCH_ACTION = 7302, 7402


class Answer(NamedTuple):
    """What a service answers, and when."""

    code: int = 0
    data: str = ""
    delay_s: float = _QUICK_S
    when_over: bool = False
    """Answer only when the arms have come to rest, as presets do."""


class Services:
    """Answers requests by asking the world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._teaching = ""
        self._began_s = 0.0

    def answer(self, client: Hashable, request: Request) -> Answer:
        """Carry out a request, or refuse it; never raises."""
        handler = _HANDLERS.get((request.service, request.api_id))
        if handler is None:
            return Answer(_UNKNOWN_API)
        try:
            return handler(self, client, request.parameter)
        except DecodeError:
            return Answer(_BAD_PARAMETER)

    def arm_state(self) -> str:
        """Return what the arms do, as it is published ten times a second."""
        doing = self.world.doing
        return rpc.encode_arm_state(rpc.ArmState(id=doing.id, name=doing.name))

    def _obey(self, client: Hashable, command: m.Command) -> int:
        reply = self.world.obey(client, command)
        assert isinstance(reply, m.Status)
        return reply.code

    # ---- arm ------------------------------------------------------------------------------------

    def _list(self, client: Hashable, _: str) -> Answer:
        reply = self.world.obey(client, m.ListActions())
        if isinstance(reply, m.Status):
            return Answer(reply.code)
        presets = tuple(rpc.Preset(p.id, p.name, p.fsm) for p in PRESETS.values())
        taught = tuple(rpc.Taught(a.name, round(a.duration_ms / 1000, 1)) for a in reply.actions)
        return Answer(data=rpc.encode_actions(presets, taught))

    def _preset(self, client: Hashable, parameter: str) -> Answer:
        code = self._obey(client, m.PlayPreset(rpc.decode_preset(parameter)))
        return Answer(code, when_over=code == Code.OK)

    def _play(self, client: Hashable, parameter: str) -> Answer:
        name = rpc.decode_name(parameter)
        reply = self.world.obey(client, m.ListActions())
        names = [a.name for a in reply.actions] if isinstance(reply, m.ActionList) else []
        if name not in names:
            return Answer(_NO_SUCH_ACTION)
        play = m.PlayAction(action=names.index(name) + 1, name=name)
        return Answer(self._obey(client, play), delay_s=_SLOW_S)

    def _rename(self, client: Hashable, parameter: str) -> Answer:
        return Answer(self._obey(client, m.RenameAction(*rpc.decode_rename(parameter))))

    def _delete(self, client: Hashable, parameter: str) -> Answer:
        return Answer(self._obey(client, m.DeleteAction(rpc.decode_name(parameter))))

    def _stop(self, client: Hashable, _: str) -> Answer:
        return Answer(self._obey(client, m.StopMotion()))

    def _teach(self, client: Hashable, parameter: str) -> Answer:
        name = rpc.decode_teach(parameter)
        if name is None:
            self._keep(client)
            return Answer()  # the real one always answers 0
        if name == "":
            return Answer(self._obey(client, m.KeepTeaching()))
        if m.name_problem(name):
            return Answer(_BAD_PARAMETER)
        code = self._obey(client, m.EnterTeaching(name=name))
        if code == Code.OK:
            code = self._obey(client, m.Record(on=True))
            self._teaching, self._began_s = name, self.world.time_s
        return Answer(code, delay_s=_SLOW_S)

    def _keep(self, client: Hashable) -> None:
        """End a teaching and store it, over an older action of the same name."""
        self._obey(client, m.ExitTeaching())
        name, self._teaching = self._teaching, ""
        lasted_ms = round((self.world.time_s - self._began_s) * 1000)
        if name:
            duration_ms = min(max(1, lasted_ms), m.MAX_DURATION_MS)
            save = m.SaveAction(name=name, created_s=0, duration_ms=duration_ms)
            self.world.overwrite(save)

    # ---- the others -----------------------------------------------------------------------------

    def _get_fsm(self, _: Hashable, __: str) -> Answer:
        return Answer(data=rpc.encode_value(self.world.machine.mode))

    def _get_fsm_mode(self, _: Hashable, __: str) -> Answer:
        return Answer(data=rpc.encode_value(0))  # it never walks

    def _set_fsm(self, client: Hashable, parameter: str) -> Answer:
        code = self._obey(client, m.ChangeMode(rpc.decode_value(parameter)))
        return Answer(_INVALID_FSM if code == Code.BAD_PAYLOAD else code)

    def _check_mode(self, _: Hashable, __: str) -> Answer:
        return Answer(data=rpc.encode_mode_check("ai"))

    def _list_services(self, _: Hashable, __: str) -> Answer:
        names = ("ai_sport", "g1_arm_example", "basic_service")
        return Answer(data=rpc.write_json([{"name": n, "status": 0, "protect": 0} for n in names]))


_HANDLERS: dict[tuple[str, int], Callable[[Services, Hashable, str], Answer]] = {
    (rpc.ARM, ArmApi.EXECUTE_PRESET): Services._preset,
    (rpc.ARM, ArmApi.LIST_ACTIONS): Services._list,
    (rpc.ARM, ArmApi.PLAY_TAUGHT): Services._play,
    (rpc.ARM, ArmApi.RENAME_TAUGHT): Services._rename,
    (rpc.ARM, ArmApi.TEACH): Services._teach,
    (rpc.ARM, ArmApi.DELETE_TAUGHT): Services._delete,
    (rpc.ARM, ArmApi.STOP_TAUGHT): Services._stop,
    (rpc.SPORT, SportApi.GET_FSM): Services._get_fsm,
    (rpc.SPORT, SportApi.GET_FSM_MODE): Services._get_fsm_mode,
    (rpc.SPORT, SportApi.SET_FSM): Services._set_fsm,
    (rpc.MOTION_SWITCHER, MotionSwitcherApi.CHECK_MODE): Services._check_mode,
    (rpc.ROBOT_STATE, RobotStateApi.LIST_SERVICES): Services._list_services,
}
