"""The services of a G1 (arm, sport, motion_switcher, robot_state, voice) on the simulated robot.

They use the same world as the UDP frames: an action taught on one wire plays on the other. Answers
have the delays and codes observed on a real robot; codes specific to this project are not sent.
"""

import json
from collections import deque
from collections.abc import Callable, Hashable
from functools import partial
from typing import NamedTuple

from rote import messages as m
from rote.errors import DecodeError, PayloadError
from rote.messages import Code
from rote.sim import voice
from rote.sim.presets import RELEASE, presets_of
from rote.sim.quirks import Missing, Refused
from rote.sim.world import CONTROLLER, World
from rote.wire.services import rpc
from rote.wire.services.faults import Fault
from rote.wire.services.rpc import ArmApi, MotionSwitcherApi, RobotStateApi, RpcRequest, SportApi

_QUICK_S, _CHANGE_S, _SLOW_S, _SCRIPT_S = 0.02, 0.035, 0.33, 0.23
"""Usual delays of answers: most; renaming and modes; playing and teaching; scripts."""
_UNKNOWN_API, _BAD_PARAMETER = 3203, 3204
_SWITCH_FAILED, _PROTECTED = 5201, 5202
_NO_SUCH_CONTROLLER, _NOT_AVAILABLE, _INVALID_FSM, _INVALID_TASK = 7004, 7301, 7302, 7303
_FAILED, _NO_SUCH_ACTION, _UNREADABLE = 7399, 7402, 7403
_ROTE_CODES = range(7410, 7420)
"""Codes of rote that a real robot does not send."""

_TASKS = {0: 26, 1: 1, 2: 27, 3: RELEASE}
"""Presets by arm task of `sport`: wave, turn and wave, offer a hand, take it back."""

_BASH = "bashrunner"
# Robots run scripts on request. rote never requests it; other clients request this script.
_VERSION_SCRIPT = "get_software_version.sh"

_PROCESSES = {rpc.SPORT: "ai_sport", rpc.ARM: "g1_arm_example"}
"""The process that must run for a service to answer."""
_BASIC_SERVICE = "basic_service"


class ServiceAnswer(NamedTuple):
    """A service's answer and when to send it."""

    code: int = 0
    data: str = ""
    delay_s: float = _QUICK_S
    after_preset: int = 0
    """Id of the preset that must end before the answer is sent; 0 for none."""
    silent: bool = False
    """Never answer, like a service that does not exist."""


class Services:
    """Answers requests through the world; without `latency`, immediately."""

    def __init__(self, world: World, *, latency: bool = True) -> None:
        self.world = world
        self._latency = latency
        self._stopped_processes: set[str] = set()
        self._quirks = world.firmware.quirks
        self._arm_states: deque[tuple[float, object]] = deque()
        self._measured_delay_s: float | None = None
        """Delay of the current answer as drawn from measurements; None without measurements."""
        self._sport_numbers: dict[int, float] = {  # by the api that returns it
            SportApi.GET_BALANCE_MODE: 0,
            SportApi.GET_SWING_HEIGHT: 0.08,
            SportApi.GET_STAND_HEIGHT: 0.0,
        }

    def answer(self, client: Hashable, request: RpcRequest) -> ServiceAnswer:
        """Carry out a request, or refuse it; never raises."""
        if not self.is_running(request.service):
            return ServiceAnswer(silent=True)
        handler = _HANDLERS.get((request.service, request.api_id))
        api, firmware = f"{request.service}/{request.api_id}", self.world.firmware
        refusal_code = firmware.codes.get((api, Code.OK))
        if refusal_code:
            handler = partial(_refuse_always, refusal_code)
        measured_s = firmware.delays_s.get(api)
        self._measured_delay_s = None if measured_s is None else self.world.draw(measured_s)
        try:
            answer = (
                ServiceAnswer(_UNKNOWN_API) if handler is None else handler(self, client, request)
            )
        except DecodeError:
            answer = ServiceAnswer(_BAD_PARAMETER)
        usual_s = answer.delay_s if self._measured_delay_s is None else self._measured_delay_s
        delay_s = usual_s if self._latency and not answer.after_preset else 0.0
        return answer._replace(
            code=firmware.codes.get((api, answer.code), answer.code),
            delay_s=delay_s + self._quirks.answer_late_s,
            data=self._quirks.change_data(answer.data),
        )

    def is_running(self, service: str) -> bool:
        """Whether a service answers requests: some do not in debug mode, or if switched off."""
        process = _PROCESSES.get(service)
        return process is None or bool(
            self.world.controller and process not in self._stopped_processes
        )

    def can_send(self, answer: ServiceAnswer) -> bool:
        """Whether an answer can be sent, because the preset that it waits for has ended."""
        return self.world.doing.id != answer.after_preset or self.world.holding

    def encode_arm_state(self) -> str | None:
        """Return the arm state to publish, as JSON with quirks; None if it is not published."""
        doing = self.world.doing
        state = rpc.ArmState(holding=self.world.holding, id=doing.id, name=doing.name)
        if not self._quirks:
            return rpc.encode_arm_state(state)
        now_s, late_s = self.world.time_s, self._quirks.arm_state_late_s
        fields = {"holding": state.holding, "id": state.id, "name": state.name}
        self._arm_states.append((now_s, self._quirks.change_arm_state(fields)))
        # The newest state that is at least `late_s` old comes first.
        while len(self._arm_states) > 1 and self._arm_states[1][0] <= now_s - late_s:
            self._arm_states.popleft()
        state_s, delayed = self._arm_states[0]
        return None if delayed is None or state_s > now_s - late_s else rpc.write_json(delayed)

    def read_mode(self) -> object:
        """Return the value to send as the mode: usually a number, or `Refused` or `Missing`."""
        machine = self.world.machine
        if machine.mode in machine.modes.silent:
            return Refused
        return self._quirks.change_mode(machine.mode)

    def faults(self) -> tuple[Fault, ...]:
        """Return the robot's faults."""
        return self.world.health.faults

    def _obey_with_service_codes(
        self, client: Hashable, command: m.Command, *, store_failed: int = _FAILED
    ) -> int:
        """Let the world obey a command; return its code as the services number it."""
        reply = self.world.obey(client, command)
        assert isinstance(reply, m.Status)
        if reply.code == Code.STORE_FAILED:
            return store_failed
        return _FAILED if reply.code in _ROTE_CODES else reply.code

    # ---- arm ------------------------------------------------------------------------------------

    def _list_taught(self, client: Hashable) -> tuple[m.ActionEntry, ...] | None:
        reply = self.world.obey(client, m.ListActions())
        return reply.actions if isinstance(reply, m.ActionList) else None

    def _list_actions(self, client: Hashable, _: RpcRequest) -> ServiceAnswer:
        actions = self._list_taught(client)
        if actions is None or self._quirks.list_refused:
            return ServiceAnswer(_FAILED)
        unlisted = self.world.unlisted
        presets = tuple(
            rpc.RpcPreset(preset.id, preset.name, preset.fsm, preset.mode_machine)
            for preset in presets_of(self.world.build)
        )
        taught = tuple(
            rpc.RpcTaughtAction(action.name, round(action.duration_ms / 1000, 1))
            for action in actions
            if action.name != unlisted
        )
        data = rpc.encode_actions(presets, taught)
        if self._quirks:
            data = json.dumps(self._quirks.change_actions(json.loads(data)))
        return ServiceAnswer(data=data)

    def _play_preset(self, client: Hashable, request: RpcRequest) -> ServiceAnswer:
        preset = rpc.decode_preset(request.parameter)
        code = self._obey_with_service_codes(client, m.PlayPreset(preset))
        # A release that waits for the end of another preset is answered at once.
        has_begun = code == Code.OK and self.world.doing.id == preset
        return ServiceAnswer(code, after_preset=preset if has_begun else 0)

    def _play_taught(self, client: Hashable, request: RpcRequest) -> ServiceAnswer:
        name = rpc.decode_name(request.parameter)
        actions = self._list_taught(client)
        if actions is None:
            return ServiceAnswer(_UNREADABLE)
        names = [action.name for action in actions]
        if name not in names:
            return ServiceAnswer(_NO_SUCH_ACTION)
        play = m.PlayAction(action=names.index(name) + 1, name=name)
        code = self._obey_with_service_codes(client, play, store_failed=_UNREADABLE)
        if code == Code.OK:
            answer_s = _SLOW_S if self._measured_delay_s is None else self._measured_delay_s
            self.world.postpone(answer_s if self._latency else 0.0)
        return ServiceAnswer(code, delay_s=_SLOW_S)

    def _rename_taught(self, client: Hashable, request: RpcRequest) -> ServiceAnswer:
        command = m.RenameAction(*rpc.decode_rename(request.parameter))
        if self._is_too_long(command.new):
            return ServiceAnswer(_BAD_PARAMETER, delay_s=_CHANGE_S)
        return ServiceAnswer(self._obey_with_service_codes(client, command), delay_s=_CHANGE_S)

    def _delete_taught(self, client: Hashable, request: RpcRequest) -> ServiceAnswer:
        command = m.DeleteAction(rpc.decode_name(request.parameter))
        return ServiceAnswer(self._obey_with_service_codes(client, command), delay_s=_CHANGE_S)

    def _stop_taught(self, client: Hashable, _: RpcRequest) -> ServiceAnswer:
        if self.world.teaching or self.world.holding:
            return ServiceAnswer()  # this request stops only taught actions
        return ServiceAnswer(self._obey_with_service_codes(client, m.StopMotion()))

    def _handle_teach(self, client: Hashable, request: RpcRequest) -> ServiceAnswer:
        """Begin teaching under a name; without a name keep teaching, and with None end it."""
        name = rpc.decode_teach(request.parameter)
        if name is None:
            self.world.end_teaching()  # the service does not know which client began it
            return ServiceAnswer()  # a real robot always answers 0
        if not name:
            return ServiceAnswer(self._obey_with_service_codes(client, m.KeepTeaching()))
        if m.name_problem(name, in_use=True) or self._is_too_long(name):
            return ServiceAnswer(_BAD_PARAMETER)
        return ServiceAnswer(
            self._obey_with_service_codes(client, m.EnterTeaching(name=name)), delay_s=_SLOW_S
        )

    def _is_too_long(self, name: str) -> bool:
        longest = self.world.firmware.longest_name
        return longest is not None and len(name.encode(errors="replace")) > longest

    def _pause_recording(self, client: Hashable, request: RpcRequest) -> ServiceAnswer:
        self._obey_with_service_codes(client, m.PauseRecording(rpc.decode_pause(request.parameter)))
        return ServiceAnswer()  # a real robot always answers 0

    # ---- sport ----------------------------------------------------------------------------------

    def _get_fsm(self, _: Hashable, __: RpcRequest) -> ServiceAnswer:
        mode = self.read_mode()
        if mode is Refused:
            return ServiceAnswer(_UNKNOWN_API)
        return ServiceAnswer(data=rpc.write_json({} if mode is Missing else {"data": mode}))

    def _get_fsm_mode(self, _: Hashable, __: RpcRequest) -> ServiceAnswer:
        return ServiceAnswer(data=rpc.encode_value(0))  # it never walks

    def _set_fsm(self, client: Hashable, request: RpcRequest) -> ServiceAnswer:
        """Change the mode, and answer with the code that the robot's firmware would give."""
        mode, firmware = rpc.decode_value(request.parameter), self.world.firmware
        if firmware.refuses_current_mode and mode == self.world.machine.mode:
            return ServiceAnswer(Code.WRONG_STATE)
        code = self._obey_with_service_codes(client, m.ChangeMode(mode))
        if firmware.confirms_any_mode:
            return ServiceAnswer()
        return ServiceAnswer(_INVALID_FSM if code == Code.BAD_PAYLOAD else code)

    def _get_sport_number(self, _: Hashable, request: RpcRequest) -> ServiceAnswer:
        return ServiceAnswer(data=rpc.write_json({"data": self._sport_numbers[request.api_id]}))

    def _set_sport_number(self, _: Hashable, request: RpcRequest) -> ServiceAnswer:
        value = rpc.read_field(rpc.read_json(request.parameter), "data", float)
        self._sport_numbers[_GETTERS[request.api_id]] = value
        return ServiceAnswer()

    def _set_velocity(self, _: Hashable, request: RpcRequest) -> ServiceAnswer:
        """Accept a velocity without moving: this robot's legs are not simulated."""
        parameters = rpc.read_json(request.parameter)
        velocity = rpc.read_field(parameters, "velocity", list)
        for part in velocity:
            rpc.read_field({"velocity": part}, "velocity", float)  # raises if it is not a number
        if len(velocity) != 3 or rpc.read_field(parameters, "duration", float, 1.0) < 0:
            raise PayloadError("a velocity needs three numbers and a duration of 0 or more")
        return ServiceAnswer()

    def _set_task(self, client: Hashable, request: RpcRequest) -> ServiceAnswer:
        """Wave or shake hands by a preset; answered when the motion begins."""
        preset = _TASKS.get(rpc.decode_value(request.parameter))
        if preset is None:
            return ServiceAnswer(_INVALID_TASK)
        code = self._obey_with_service_codes(client, m.PlayPreset(preset))
        return ServiceAnswer(0 if code == Code.OK else _NOT_AVAILABLE)

    def _set_speed_mode(self, _: Hashable, request: RpcRequest) -> ServiceAnswer:
        is_known = rpc.decode_value(request.parameter) in range(4)
        return ServiceAnswer(0 if is_known else _BAD_PARAMETER)

    # ---- the others -----------------------------------------------------------------------------

    def _report_controller(self, _: Hashable, __: RpcRequest) -> ServiceAnswer:
        data = rpc.encode_mode_check(self.world.controller)
        return ServiceAnswer(data=data, delay_s=_CHANGE_S)

    def _select_controller(self, _: Hashable, request: RpcRequest) -> ServiceAnswer:
        if rpc.decode_name(request.parameter, "name") != CONTROLLER:
            return ServiceAnswer(_NO_SUCH_CONTROLLER)
        if not self.world.controller:
            self.world.drive(CONTROLLER)
        return ServiceAnswer(delay_s=_CHANGE_S)

    def _release_controller(self, _: Hashable, __: RpcRequest) -> ServiceAnswer:
        self.world.drive("")
        return ServiceAnswer(delay_s=_CHANGE_S)

    def _switch_service(self, _: Hashable, request: RpcRequest) -> ServiceAnswer:
        parameters = rpc.read_json(request.parameter)
        name, on = (
            rpc.read_field(parameters, "name", str),
            rpc.read_field(parameters, "switch", int),
        )
        # A switch is 1 for on, but a status is 0 for running.
        if name == _BASIC_SERVICE:
            return ServiceAnswer(_PROTECTED)
        if name not in _PROCESSES.values() or on not in (0, 1):
            return ServiceAnswer(_SWITCH_FAILED)
        (self._stopped_processes.discard if on else self._stopped_processes.add)(name)
        return ServiceAnswer(data=rpc.write_json({"name": name, "status": 1 - on}))

    def _accept_report_rate(self, _: Hashable, __: RpcRequest) -> ServiceAnswer:
        """Accept any rate of the service's own reports, which are not simulated."""
        return ServiceAnswer()

    def _list_services(self, _: Hashable, __: RpcRequest) -> ServiceAnswer:
        services = [
            {
                "name": name,
                "status": int(name in self._stopped_processes),
                "protect": int(name == _BASIC_SERVICE),
            }
            for name in (*_PROCESSES.values(), _BASIC_SERVICE)
        ]
        return ServiceAnswer(data=rpc.write_json(services))

    def _handle_voice_request(self, _: Hashable, request: RpcRequest) -> ServiceAnswer:
        try:
            data, message = self.world.voice.handle_request(
                request.api_id, request.parameter, request.binary, self.world.time_s
            )
        except PayloadError:
            return ServiceAnswer(voice.BAD_VALUE)
        if message:
            self.world.note(message)
        return ServiceAnswer(data=data)

    def _run_script(self, _: Hashable, request: RpcRequest) -> ServiceAnswer:
        """Report the version; no other script exists, and none is executed."""
        if rpc.read_field(rpc.read_json(request.parameter), "script", str) != _VERSION_SCRIPT:
            return ServiceAnswer(_BAD_PARAMETER)
        answer = {"type": "content acquisition", "info": self.world.firmware.version}
        return ServiceAnswer(data=rpc.write_json(answer), delay_s=_SCRIPT_S)


def _refuse_always(code: int, *_: object) -> ServiceAnswer:
    return ServiceAnswer(code)


_GETTERS: dict[int, int] = {
    SportApi.SET_BALANCE_MODE: SportApi.GET_BALANCE_MODE,
    SportApi.SET_SWING_HEIGHT: SportApi.GET_SWING_HEIGHT,
    SportApi.SET_STAND_HEIGHT: SportApi.GET_STAND_HEIGHT,
}
_HANDLERS: dict[tuple[str, int], Callable[[Services, Hashable, RpcRequest], ServiceAnswer]] = {
    (rpc.ARM, ArmApi.EXECUTE_PRESET): Services._play_preset,
    (rpc.ARM, ArmApi.LIST_ACTIONS): Services._list_actions,
    (rpc.ARM, ArmApi.PLAY_TAUGHT): Services._play_taught,
    (rpc.ARM, ArmApi.RENAME_TAUGHT): Services._rename_taught,
    (rpc.ARM, ArmApi.TEACH): Services._handle_teach,
    (rpc.ARM, ArmApi.PAUSE_TEACHING): Services._pause_recording,
    (rpc.ARM, ArmApi.DELETE_TAUGHT): Services._delete_taught,
    (rpc.ARM, ArmApi.STOP_TAUGHT): Services._stop_taught,
    (rpc.SPORT, SportApi.GET_FSM): Services._get_fsm,
    (rpc.SPORT, SportApi.GET_FSM_MODE): Services._get_fsm_mode,
    (rpc.SPORT, SportApi.SET_FSM): Services._set_fsm,
    (rpc.SPORT, SportApi.SET_VELOCITY): Services._set_velocity,
    (rpc.SPORT, SportApi.SET_SPEED_MODE): Services._set_speed_mode,
    (rpc.SPORT, SportApi.SET_ARM_TASK): Services._set_task,
    **{(rpc.SPORT, setter): Services._set_sport_number for setter in _GETTERS},
    **{(rpc.SPORT, getter): Services._get_sport_number for getter in _GETTERS.values()},
    (rpc.MOTION_SWITCHER, MotionSwitcherApi.CHECK_MODE): Services._report_controller,
    (rpc.MOTION_SWITCHER, MotionSwitcherApi.SELECT_MODE): Services._select_controller,
    (rpc.MOTION_SWITCHER, MotionSwitcherApi.RELEASE_MODE): Services._release_controller,
    (rpc.ROBOT_STATE, RobotStateApi.SWITCH_SERVICE): Services._switch_service,
    (rpc.ROBOT_STATE, RobotStateApi.SET_REPORT_FREQUENCY): Services._accept_report_rate,
    (rpc.ROBOT_STATE, RobotStateApi.LIST_SERVICES): Services._list_services,
    **{(voice.SERVICE, api): Services._handle_voice_request for api in rpc.VoiceApi},
    (_BASH, 1001): Services._run_script,
}
