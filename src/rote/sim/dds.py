"""The simulated robot on DDS: its services, its state topics, and arms that follow a stream.

Hands exist only on DDS, as on a real robot: they report and obey on their own topics.

A G1 cannot distinguish its DDS clients, so to the robot they are one: any client's keep-alive keeps
the arms soft. A service that is off, or not running in debug mode, has no reader for its requests.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from rote import messages as m
from rote.errors import DecodeError, LinkError
from rote.model.family import Hand
from rote.model.registry import family_of
from rote.motion.track import Array
from rote.sim import voice
from rote.sim.body import STEP_S
from rote.sim.fingers import HAND_HZ, Fingers
from rote.sim.fsm import ArmActivity
from rote.sim.services import ServiceAnswer, Services
from rote.transport.dds import types
from rote.transport.dds.participant import Bus, DdsTarget, Inlet, Outlet
from rote.transport.impair import Disturber, Impairment
from rote.wire.dds import cdr
from rote.wire.dds import hands as dds_hands
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc
from rote.wire.services.lowstate import BMS_TOPIC, HAND_TOPIC

LOWSTATE_HZ = 500.0
VERSION_API = 1
VERSIONS = {
    rpc.ARM: "1.0.0.14",
    rpc.SPORT: "1.0.0.0",
    rpc.MOTION_SWITCHER: "1.0.0.1",
    rpc.ROBOT_STATE: "1.0.0.2",
    voice.SERVICE: voice.VERSION,
}
"""The versions that the services report, as Unitree's clients expect them."""
SPORT_TOPIC = "rt/sportmodestate"
_BATTERY_S, _CEASED_S = 1.0, 0.5
GAP_S = 0.1
"""After this long without a command, the arms return to the robot's own pose."""
RAMP_S = 1.0
"""Shortest duration of that return; a guess, since it is not documented."""
_RAMP_SHARE = 0.7
"""Speed of that return, and of the move to the commanded pose when commands resume, as a share of
the family's soft speed: the arms overshoot when they start or reverse.
"""
_REPEAT_S = 0.04
_REQUESTS, _REPLIES, _COMMANDS = 256, 64, 16


class _Network:
    """A bad network as seen through DDS: in order, and reliable samples are resent."""

    def __init__(self, bad: Impairment) -> None:
        # UDP's checksum removes damaged packets, and sequence numbers remove repeated and overtaken
        # ones.
        lost = 1.0 - (1.0 - bad.loss) * (1.0 - bad.corrupt)
        ordered = replace(bad, loss=lost, corrupt=0.0, duplicate=0.0, reorder=0.0)
        self._lossy = Disturber(ordered)
        self._reliable = Disturber(replace(ordered, loss=0.0))

    def pass_on(self, kind: types.Type, data: bytes, deliver: Callable[[bytes], None]) -> None:
        """Deliver a sample, possibly late; samples of unreliable topics may be lost."""
        reliable = kind in (types.REQUEST, types.RESPONSE)
        (self._reliable if reliable else self._lossy).pass_on(data, deliver)


class DdsDoor:
    """Serves the robot's services and states to all participants of a DDS domain."""

    def __init__(
        self,
        services: Services,
        target: DdsTarget,
        *,
        lowstate_hz: float = LOWSTATE_HZ,
        impairment: Impairment | None = None,
        hands: tuple[Hand, ...] = (),
    ) -> None:
        self._services = services
        self._world = services.world
        self._quirks = services.world.firmware.quirks
        self._network = None if impairment is None else _Network(impairment)
        self._loop = asyncio.get_running_loop()
        self.target = target
        self.period_s = max(STEP_S, round(1.0 / lowstate_hz / STEP_S) * STEP_S)
        """The time between two states of the robot, in whole steps of its body."""
        self._bus = Bus(target)
        self._requests: dict[str, Inlet] = {}
        self._responses = {
            service: self._create_writer(f"rt/api/{service}/response", types.RESPONSE, _REPLIES)
            for service in VERSIONS
        }
        self._lowstate = self._create_writer(dds_lowlevel.LOWSTATE_TOPIC, types.LOWSTATE)
        self._mode = self._create_writer(SPORT_TOPIC, types.SPORT)
        self._battery = self._create_writer(BMS_TOPIC, types.BATTERY)
        self._arms = self._create_writer(rpc.ARM_STATE_TOPIC, types.TEXT)
        self._audio = self._create_writer(rpc.AUDIO_TOPIC, types.TEXT, _COMMANDS)
        build = self._world.build
        self._stream_topic = (
            build.stream.topic if build.stream else ""
        ) or dds_lowlevel.ARM_SDK_TOPIC
        # Indices of the taught joints among the streamed ones; a joint that is not streamed stays
        # at rest.
        self._taught_indices = [
            (*build.streamed, *build.taught).index(name) for name in build.taught
        ]
        self._rest_rad = tuple(build.rest.get(name, 0.0) for name in build.taught)
        self._create_reader(HAND_TOPIC, types.TEXT, self._handle_scripted_hand, _COMMANDS)
        self._create_reader(self._stream_topic, types.LOWCMD, self._obey_arms, _COMMANDS)
        self._attach_hands(hands)
        self._waiting: list[tuple[rpc.RpcRequest, ServiceAnswer]] = []
        self._numbers = 0
        self._stream_used_up = False
        self._commanded_s = float("-inf")
        self._pose: m.StreamPose | None = None
        """The last pose of the stream that is followed."""
        self._share = 1.0
        """Share of the commanded weight that the arms follow; reduced in a gap."""
        self._share_at = 0.0
        self._resuming_rad: Array | None = None
        """Setpoint of the arms while they move to the commanded pose after a gap."""
        family = family_of(build)
        self._ramp_rad_s = _RAMP_SHARE * (1.0 if family is None else family.soft_rad_s)
        self._has_lowstate_readers = False
        self._slow_at = self._battery_at = self._joints_at = self._world.time_s
        self._hands_at = self._world.time_s
        self._open_services()

    def _attach_hands(self, hands: tuple[Hand, ...]) -> None:
        """Create the state writers and command readers of the attached hands."""
        self.fingers = tuple(map(Fingers, hands))
        """The attached hands."""
        self.hands_report = True
        """Whether they report; a hand with a loose cable does not."""
        self._hand_states = [
            self._create_writer(hand.state_topic, types.HAND_STATE) for hand in hands
        ]
        for each in self.fingers:
            obey = partial(self._obey_hand, each)
            self._create_reader(each.hand.command_topic, types.HAND_COMMAND, obey, _COMMANDS)

    @property
    def url(self) -> str:
        """The URL for clients."""
        domain = f"?domain={self.target.domain}" if self.target.domain else ""
        return f"dds://{self.target.interface}{domain}"

    @property
    def clients(self) -> int:
        """Number of clients, counted on the service that reports whether the others run."""
        return self._requests[rpc.MOTION_SWITCHER].matched if not self._bus.closed else 0

    async def close(self) -> None:
        """Leave the domain. Safe to call twice."""
        self._bus.close()

    def _create_writer(self, topic: str, kind: types.Type, depth: int = 1) -> Outlet:
        return self._bus.writer(topic, kind, depth=depth)

    def _create_reader(
        self, topic: str, kind: types.Type, take: Callable[[bytes], None], depth: int
    ) -> Inlet:
        def receive(data: bytes) -> None:
            self._pass_on(kind, data, partial(self._handle_sample, take))

        return self._bus.reader(topic, kind, receive, depth=depth)

    def _pass_on(self, kind: types.Type, data: bytes, deliver: Callable[[bytes], None]) -> None:
        if self._network is None:
            deliver(data)
        else:
            self._network.pass_on(kind, data, deliver)

    def _handle_sample(self, take: Callable[[bytes], None], data: bytes) -> None:
        try:
            take(data)
        except DecodeError as error:
            self._world.note(f"a DDS sample could not be read: {error}")

    def _write_sample(self, kind: types.Type, outlet: Outlet, data: bytes) -> None:
        def write(arriving: bytes) -> None:
            if not self._bus.closed:
                try:
                    outlet.write(arriving)
                except LinkError as error:
                    self._world.note(str(error))

        self._pass_on(kind, data, write)

    # ---- publishing -----------------------------------------------------------------------------

    def publish(self) -> None:
        """Publish what is due at the robot's time; called after each of its ticks."""
        if self._bus.closed:
            return
        now_s = self._world.time_s + STEP_S / 2
        if now_s >= self._slow_at:
            self._slow_at += self._world.firmware.behaviour.arm_state_s
            self._publish_slowly()
        if self._has_lowstate_readers and now_s >= self._joints_at:
            self._joints_at = max(self._joints_at + self.period_s, now_s - self.period_s)
            self._publish_joints()
        if now_s >= self._battery_at:
            self._battery_at += _BATTERY_S
            percent = self._world.health.battery_percent
            self._write_sample(types.BATTERY, self._battery, cdr.encode_battery(percent))
        if self.fingers and now_s >= self._hands_at:
            self._hands_at = max(self._hands_at, now_s - 1.0 / HAND_HZ) + 1.0 / HAND_HZ
            self._publish_hands()
        for text in self._world.voice.take_messages(self._world.time_s):
            self._write_sample(types.TEXT, self._audio, cdr.encode_text(text))
        self._answer_finished_requests()
        self._bridge_gaps()

    def _publish_joints(self) -> None:
        state = self._quirks.state(self._world.state())
        if state is not None:
            data = dds_lowlevel.encode_lowstate(state, build=self._world.build)
            self._write_sample(types.LOWSTATE, self._lowstate, data)

    def _publish_hands(self) -> None:
        world = self._world
        led = world.machine.activity is ArmActivity.TEACHING and world.body.held_by_hand
        for fingers, outlet in zip(self.fingers, self._hand_states, strict=True):
            if fingers.advance(world.time_s, led=led):
                world.note(f"commands to the {fingers.hand.side} hand stopped: it relaxes")
            if self.hands_report:
                data = dds_hands.encode_state(fingers.reading(), fingers.hand)
                self._write_sample(types.HAND_STATE, outlet, data)

    def _publish_slowly(self) -> None:
        self._has_lowstate_readers = self._lowstate.matched > 0
        self._open_services()
        if self._services.alive(rpc.ARM):
            arms = self._services.arm_state()
            if arms is not None:
                self._write_sample(types.TEXT, self._arms, cdr.encode_text(arms))
        if self._services.alive(rpc.SPORT):
            # DDS has a 32-bit integer for the mode: other types are not published.
            mode = self._services.mode()
            if isinstance(mode, int):
                self._write_sample(types.SPORT, self._mode, cdr.encode_mode(mode & 0xFFFFFFFF))

    def _open_services(self) -> None:
        """Open readers for the services that run, and close all others."""
        for service in VERSIONS:
            if not self._services.alive(service):
                inlet = self._requests.pop(service, None)
                if inlet is not None:
                    inlet.close()
            elif service not in self._requests:
                self._requests[service] = self._create_reader(
                    f"rt/api/{service}/request",
                    types.REQUEST,
                    partial(self._handle_request, service),
                    _REQUESTS,
                )

    # ---- requests -------------------------------------------------------------------------------

    def _handle_request(self, service: str, data: bytes) -> None:
        request = cdr.decode_request(data, service)
        if request.api_id == VERSION_API:
            answer = ServiceAnswer(data=VERSIONS[service])
        else:
            answer = self._services.answer(self, request)
        if not answer.silent:
            self._schedule_answer(request, answer)

    def _schedule_answer(self, request: rpc.RpcRequest, answer: ServiceAnswer) -> None:
        if answer.after:
            self._waiting.append((request, answer))
        elif answer.delay_s > 0:
            self._loop.call_later(answer.delay_s, self._send_response, request, answer)
        else:
            self._send_response(request, answer)

    def _answer_finished_requests(self) -> None:
        for waiting in [w for w in self._waiting if self._services.is_over(w[1])]:
            self._waiting.remove(waiting)
            request, answer = waiting
            self._schedule_answer(request, answer._replace(after=0))

    def _send_response(self, request: rpc.RpcRequest, answer: ServiceAnswer) -> None:
        if request.noreply:
            return
        response = rpc.RpcResponse(
            service=request.service,
            api_id=request.api_id,
            id=request.id,
            code=answer.code,
            data=answer.data,
        )
        reply = cdr.encode_response(response)
        self._write_sample(types.RESPONSE, self._responses[request.service], reply)

    def _handle_scripted_hand(self, data: bytes) -> None:
        """Start the scripted hand that a rote client requests."""
        message = rpc.read_json(cdr.decode_text(data))
        script, duration_ms = (
            rpc.read(message, "script", str),
            rpc.read(message, "duration_ms", int),
        )
        self._world.obey(self, m.MoveByHand(script, duration_ms))

    # ---- streamed hands and arms ----------------------------------------------------------------

    def _obey_hand(self, fingers: Fingers, data: bytes) -> None:
        was_relaxed = fingers.relaxed
        fingers.obey(dds_hands.decode_command(data, fingers.hand), self._world.time_s)
        if was_relaxed != fingers.relaxed:
            does = "relaxes" if fingers.relaxed else "follows commands"
            self._world.note(f"the {fingers.hand.side} hand {does}")

    def _obey_arms(self, data: bytes) -> None:
        """Follow a command according to its weight; the first one with a weight begins a stream.

        A stream that was refused, or ended by another client, does not begin again by itself: first
        the weight must go back to 0, or the commands must stop.
        """
        build = self._world.build
        if build.stream is None or build.stream.weight_slot is None:
            if self._world.time_s - self._commanded_s > _CEASED_S:
                self._world.note(self._world.no_stream)
            self._commanded_s = self._world.time_s
            return
        command = dds_lowlevel.decode_arm_command(data, build)
        all_joints_rad = command.joints_rad + self._rest_rad
        taught = tuple([all_joints_rad[index] for index in self._taught_indices])
        pose = m.StreamPose(0, command.weight, taught)
        if self._world.time_s - self._commanded_s > _CEASED_S or command.weight == 0.0:
            self._stream_used_up = False
        self._commanded_s = self._world.time_s
        if command.weight == 0.0:
            self._share, self._resuming_rad = 1.0, None
        elif self._share < 1.0:
            self._share = 1.0
            self._resuming_rad = self._world.body.setpoint_rad[list(build.taught_columns)]
            self._world.note("commands come again: the arms follow from where they are")
        if self._follow_pose(pose):
            return
        self._pose = None
        if command.weight == 0.0 or self._stream_used_up:
            return
        self._stream_used_up = True
        begun = self._world.obey(self, m.BeginStream())
        if begun == m.Status():
            self._follow_pose(pose)
        elif isinstance(begun, m.Status):
            message, _ = m.explain(begun.code)
            self._world.note(f"the arms do not follow {self._stream_topic}: {message}")

    def _follow_pose(self, pose: m.StreamPose) -> bool:
        """Follow a pose by its weight and the current share; return False if no stream runs."""
        self._numbers += 1
        shared = replace(pose, number=self._numbers, weight=pose.weight * self._share)
        if self._resuming_rad is not None:
            joints_rad = tuple(self._resuming_rad.tolist())
            shared = replace(shared, weight=self._share, joints_rad=joints_rad)
        followed = self._world.obey(self, shared) != m.Status(m.Code.SUPERSEDED)
        self._pose = pose if followed and pose.weight > 0.0 else None
        return followed

    def _bridge_gaps(self) -> None:
        """Ramp down while no commands arrive, and back to the commanded pose when they resume.

        After ramping down to 0 no more poses are passed on, so the stream ends itself.
        """
        now_s = self._world.time_s
        passed_s, self._share_at = now_s - self._share_at, now_s
        if self._pose is None:
            return
        silent_s, before = now_s - self._commanded_s, self._share
        rest_rad = np.array(self._rest_rad)
        far_rad = np.array(self._pose.joints_rad) - rest_rad
        if silent_s > GAP_S:
            ramp_s = max(RAMP_S, float(np.abs(far_rad).max()) / self._ramp_rad_s)
            self._share = max(0.0, before - passed_s / ramp_s)
        if before == 1.0 > self._share:
            self._world.note(f"no command for {GAP_S:g} s: the arms ramp down")
        resuming = self._resuming_rad is not None
        if self._resuming_rad is not None:
            left_rad = rest_rad + self._pose.weight * far_rad - self._resuming_rad
            most_rad = self._ramp_rad_s * passed_s
            self._resuming_rad = self._resuming_rad + np.clip(left_rad, -most_rad, most_rad)
            if np.abs(left_rad).max() <= most_rad:
                self._resuming_rad = None
        if self._share == 0.0:
            self._pose = self._resuming_rad = None
        elif silent_s > _REPEAT_S or self._share != before or resuming:
            self._follow_pose(self._pose)
