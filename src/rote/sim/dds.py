"""The simulated robot on DDS: its services, its state topics, and arms that follow a stream.

Hands exist only on DDS, as on a real robot: they have their own topics for states and commands.

A G1 cannot distinguish its DDS clients and treats them as one: any client's keep-alive keeps the
arms soft. A service that is off, or not running in debug mode, has no reader for its requests.
"""

import asyncio
from collections.abc import Callable, Hashable
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
from rote.sim.fingers import HAND_HZ, SimulatedHand
from rote.sim.fsm import ArmActivity
from rote.sim.services import ServiceAnswer, Services
from rote.sim.world import World
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
"""The api with which every service reports its version."""
VERSIONS = {
    rpc.ARM: "1.0.0.14",
    rpc.SPORT: "1.0.0.0",
    rpc.MOTION_SWITCHER: "1.0.0.1",
    rpc.ROBOT_STATE: "1.0.0.2",
    voice.SERVICE: voice.VERSION,
}
"""The version that each service reports, as Unitree's clients expect it."""
SPORT_TOPIC = "rt/sportmodestate"
_BATTERY_S = 1.0
"""Seconds between two reports of the battery."""
_NEW_STREAM_GAP_S = 0.5
"""After this many seconds without a command, the next one may begin a new stream."""
GAP_S = 0.1
"""After this many seconds without a command, the arms return to the robot's own pose."""
RAMP_S = 1.0
"""Shortest duration of that return; a guess, since it is not documented."""
_RAMP_SHARE = 0.7
"""Speed of that return, and of the move to the commanded pose when commands resume, as a share of
the family's soft speed: the arms overshoot when they start or reverse.
"""
_REPEAT_S = 0.04
"""After this many seconds without a command, the last pose is followed again."""
_REQUEST_DEPTH, _REPLY_DEPTH, _COMMAND_DEPTH = 256, 64, 16
"""Samples that a topic keeps until they are read."""


class _Network:
    """A bad network as seen through DDS: in order, and reliable samples are resent."""

    def __init__(self, impairment: Impairment) -> None:
        # UDP's checksum removes damaged packets, and sequence numbers remove repeated and overtaken
        # ones.
        lost = 1.0 - (1.0 - impairment.loss) * (1.0 - impairment.corrupt)
        ordered = replace(impairment, loss=lost, corrupt=0.0, duplicate=0.0, reorder=0.0)
        self._lossy = Disturber(ordered)
        self._reliable = Disturber(replace(ordered, loss=0.0))

    def pass_on(
        self, sample_type: types.Type, data: bytes, deliver: Callable[[bytes], None]
    ) -> None:
        """Deliver a sample, possibly late; samples of unreliable topics may be lost."""
        is_reliable = sample_type in (types.REQUEST, types.RESPONSE)
        (self._reliable if is_reliable else self._lossy).pass_on(data, deliver)


class _ArmStream:
    """Arms that follow commands on a DDS topic, and bridge gaps between the commands."""

    def __init__(self, world: World, client: Hashable) -> None:
        """`client` identifies all DDS clients to the world."""
        build = world.build
        self._world, self._client = world, client
        self.topic = (build.stream.topic if build.stream else "") or dds_lowlevel.ARM_SDK_TOPIC
        self._is_possible = build.stream is not None and build.stream.weight_slot is not None
        # Indices of the taught joints among the streamed ones; a joint that is not streamed stays
        # at rest.
        self._taught_indices = [
            (*build.streamed, *build.taught).index(name) for name in build.taught
        ]
        self._rest_rad = tuple(build.rest.get(name, 0.0) for name in build.taught)
        self._pose_number = 0
        self._used_up = False
        """Whether these commands have begun a stream already, or were refused."""
        self._last_command_s = float("-inf")
        self._pose: m.StreamPose | None = None
        """The last commanded pose; None if no stream is followed."""
        self._follow_share = 1.0
        """Share of the commanded weight that the arms follow; reduced in a gap."""
        self._bridged_s = 0.0
        """The robot's time at the last call of `bridge_gap`."""
        self._resuming_rad: Array | None = None
        """Setpoint of the arms while they move to the commanded pose after a gap."""
        family = family_of(build)
        self._ramp_rad_s = _RAMP_SHARE * (1.0 if family is None else family.soft_rad_s)

    def obey(self, data: bytes) -> None:
        """Follow an arm command by its weight; the first one with a weight begins a stream.

        A stream that was refused, or ended by another client, does not begin again by itself: first
        the weight must go back to 0, or the commands must stop.
        """
        world = self._world
        is_after_pause = world.time_s - self._last_command_s > _NEW_STREAM_GAP_S
        pose = self._decode_pose(data) if self._is_possible else None
        self._last_command_s = world.time_s
        if pose is None:
            if is_after_pause:
                world.note(world.no_stream)
            return
        if is_after_pause or pose.weight == 0.0:
            self._used_up = False
        self._end_gap(pose.weight)
        if self._follow_pose(pose):
            return
        self._pose = None
        if pose.weight != 0.0 and not self._used_up:
            self._used_up = True
            self._begin_stream(pose)

    def _decode_pose(self, data: bytes) -> m.StreamPose:
        """Return the commanded positions of the taught joints, with their weight."""
        command = dds_lowlevel.decode_arm_command(data, self._world.build)
        all_joints_rad = command.joints_rad + self._rest_rad
        taught_rad = tuple([all_joints_rad[index] for index in self._taught_indices])
        return m.StreamPose(0, command.weight, taught_rad)

    def _end_gap(self, weight: float) -> None:
        """Let the arms follow the new command in full; after a gap they first move to its pose."""
        if weight == 0.0:
            self._follow_share, self._resuming_rad = 1.0, None
        elif self._follow_share < 1.0:
            self._follow_share = 1.0
            world = self._world
            self._resuming_rad = world.body.setpoint_rad[list(world.build.taught_columns)]
            world.note("commands resume: the arms follow from where they are")

    def _begin_stream(self, pose: m.StreamPose) -> None:
        reply = self._world.obey(self._client, m.BeginStream())
        if reply == m.Status():
            self._follow_pose(pose)
        elif isinstance(reply, m.Status):
            message, _ = m.explain(reply.code)
            self._world.note(f"the arms do not follow {self.topic}: {message}")

    def _follow_pose(self, pose: m.StreamPose) -> bool:
        """Follow a pose by its weight and the current share; return False if no stream runs."""
        self._pose_number += 1
        shared = replace(pose, number=self._pose_number, weight=pose.weight * self._follow_share)
        if self._resuming_rad is not None:
            joints_rad = tuple(self._resuming_rad.tolist())
            shared = replace(shared, weight=self._follow_share, joints_rad=joints_rad)
        is_followed = self._world.obey(self._client, shared) != m.Status(m.Code.SUPERSEDED)
        self._pose = pose if is_followed and pose.weight > 0.0 else None
        return is_followed

    def bridge_gap(self) -> None:
        """Ramp down while no commands arrive, and back to the commanded pose when they resume.

        After ramping down to 0 no more poses are passed on, so the stream ends itself.
        """
        now_s = self._world.time_s
        elapsed_s, self._bridged_s = now_s - self._bridged_s, now_s
        if self._pose is None:
            return
        silent_s, share_before = now_s - self._last_command_s, self._follow_share
        was_resuming = self._resuming_rad is not None
        if silent_s > GAP_S:
            self._ramp_down(self._pose, elapsed_s)
        if self._resuming_rad is not None:
            self._resuming_rad = self._approach_pose(self._pose, self._resuming_rad, elapsed_s)
        if self._follow_share == 0.0:
            self._pose = self._resuming_rad = None
        elif silent_s > _REPEAT_S or self._follow_share != share_before or was_resuming:
            self._follow_pose(self._pose)

    def _ramp_down(self, pose: m.StreamPose, elapsed_s: float) -> None:
        """Reduce the share that the arms follow, slowly enough for the farthest joint."""
        share_before = self._follow_share
        distance_rad = float(np.abs(np.array(pose.joints_rad) - np.array(self._rest_rad)).max())
        ramp_s = max(RAMP_S, distance_rad / self._ramp_rad_s)
        self._follow_share = max(0.0, share_before - elapsed_s / ramp_s)
        if share_before == 1.0 > self._follow_share:
            self._world.note(f"no command for {GAP_S:g} s: the arms ramp down")

    def _approach_pose(
        self, pose: m.StreamPose, resuming_rad: Array, elapsed_s: float
    ) -> Array | None:
        """Return a setpoint nearer to the commanded pose; None if it is reached."""
        rest_rad = np.array(self._rest_rad)
        offset_rad = np.array(pose.joints_rad) - rest_rad
        remaining_rad = rest_rad + pose.weight * offset_rad - resuming_rad
        max_step_rad = self._ramp_rad_s * elapsed_s
        if np.abs(remaining_rad).max() <= max_step_rad:
            return None
        setpoint_rad: Array = resuming_rad + np.clip(remaining_rad, -max_step_rad, max_step_rad)
        return setpoint_rad


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
        self.services = services
        self._world = services.world
        self._quirks = services.world.firmware.quirks
        self.network = None if impairment is None else _Network(impairment)
        self._loop = asyncio.get_running_loop()
        self.target = target
        self.period_s = max(STEP_S, round(1.0 / lowstate_hz / STEP_S) * STEP_S)
        """The time between two states of the robot, in whole steps of its body."""
        self._bus = Bus(target)
        self._requests: dict[str, Inlet] = {}
        self._responses = {
            service: self._create_writer(f"rt/api/{service}/response", types.RESPONSE, _REPLY_DEPTH)
            for service in VERSIONS
        }
        self._lowstate_writer = self._create_writer(dds_lowlevel.LOWSTATE_TOPIC, types.LOWSTATE)
        self._mode_writer = self._create_writer(SPORT_TOPIC, types.SPORT)
        self._battery_writer = self._create_writer(BMS_TOPIC, types.BATTERY)
        self._arm_state_writer = self._create_writer(rpc.ARM_STATE_TOPIC, types.TEXT)
        self._audio_writer = self._create_writer(rpc.AUDIO_TOPIC, types.TEXT, _COMMAND_DEPTH)
        # A G1 cannot tell its DDS clients apart, so one key stands for all of them.
        self._arm_stream = _ArmStream(self._world, client=self)
        self._create_reader(HAND_TOPIC, types.TEXT, self._handle_scripted_hand, _COMMAND_DEPTH)
        self._create_reader(
            self._arm_stream.topic, types.LOWCMD, self._arm_stream.obey, _COMMAND_DEPTH
        )
        self._attach_hands(hands)
        self._waiting: list[tuple[rpc.RpcRequest, ServiceAnswer]] = []
        """Requests that are answered when a preset has ended."""
        self._has_lowstate_readers = False
        self._arms_due_s = self._battery_due_s = self._joints_due_s = self._world.time_s
        self._hands_due_s = self._world.time_s
        self._update_request_readers()

    def _attach_hands(self, hands: tuple[Hand, ...]) -> None:
        """Create the state writers and command readers of the attached hands."""
        self.simulated_hands = tuple(map(SimulatedHand, hands))
        """The attached hands."""
        self.hands_are_reporting = True
        """Whether they send their states; a hand with a loose cable does not."""
        self._hand_writers = [
            self._create_writer(hand.state_topic, types.HAND_STATE) for hand in hands
        ]
        for simulated_hand in self.simulated_hands:
            obey = partial(self._obey_hand_command, simulated_hand)
            self._create_reader(
                simulated_hand.hand.command_topic, types.HAND_COMMAND, obey, _COMMAND_DEPTH
            )

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

    def _create_writer(self, topic: str, sample_type: types.Type, depth: int = 1) -> Outlet:
        return self._bus.writer(topic, sample_type, depth=depth)

    def _create_reader(
        self, topic: str, sample_type: types.Type, handle: Callable[[bytes], None], depth: int
    ) -> Inlet:
        """Create a reader that passes each sample to `handle`, through the simulated network."""

        def receive(data: bytes) -> None:
            self._pass_through_network(sample_type, data, partial(self._handle_sample, handle))

        return self._bus.reader(topic, sample_type, receive, depth=depth)

    def _pass_through_network(
        self, sample_type: types.Type, data: bytes, deliver: Callable[[bytes], None]
    ) -> None:
        """Deliver a sample at once, or as late as the simulated bad network does, if at all."""
        if self.network is None:
            deliver(data)
        else:
            self.network.pass_on(sample_type, data, deliver)

    def _handle_sample(self, handle: Callable[[bytes], None], data: bytes) -> None:
        """Handle a sample; one that cannot be decoded is only reported to the operator."""
        try:
            handle(data)
        except DecodeError as error:
            self._world.note(f"a DDS sample could not be read: {error}")

    def _write_sample(self, sample_type: types.Type, outlet: Outlet, data: bytes) -> None:
        """Write a sample through the simulated network, unless the bus is closed by then."""

        def write(arriving: bytes) -> None:
            if not self._bus.closed:
                try:
                    outlet.write(arriving)
                except LinkError as error:
                    self._world.note(str(error))

        self._pass_through_network(sample_type, data, write)

    # ---- publishing -----------------------------------------------------------------------------

    def publish(self) -> None:
        """Publish what is due at the robot's time; called after each of its ticks."""
        if self._bus.closed:
            return
        now_s = self._world.time_s + STEP_S / 2  # half a step of tolerance for rounding
        if now_s >= self._arms_due_s:
            self._arms_due_s += self._world.firmware.behaviour.arm_state_s
            # Which readers exist and which services run is only checked at this low rate.
            self._has_lowstate_readers = self._lowstate_writer.matched > 0
            self._update_request_readers()
            self._publish_arms_and_mode()
        # After a delay of the process, missed states are not sent in a burst.
        if self._has_lowstate_readers and now_s >= self._joints_due_s:
            self._joints_due_s = max(self._joints_due_s + self.period_s, now_s - self.period_s)
            self._publish_joints()
        if now_s >= self._battery_due_s:
            self._battery_due_s += _BATTERY_S
            percent = self._world.health.battery_percent
            self._write_sample(types.BATTERY, self._battery_writer, cdr.encode_battery(percent))
        if self.simulated_hands and now_s >= self._hands_due_s:
            self._hands_due_s = max(self._hands_due_s, now_s - 1.0 / HAND_HZ) + 1.0 / HAND_HZ
            self._publish_hands()
        for text in self._world.voice.take_messages(self._world.time_s):
            self._write_sample(types.TEXT, self._audio_writer, cdr.encode_text(text))
        self._answer_finished_requests()
        self._arm_stream.bridge_gap()

    def _publish_joints(self) -> None:
        state = self._quirks.change_state(self._world.state())
        if state is not None:
            data = dds_lowlevel.encode_lowstate(state, build=self._world.build)
            self._write_sample(types.LOWSTATE, self._lowstate_writer, data)

    def _publish_hands(self) -> None:
        world = self._world
        moved_by_hand = world.machine.activity is ArmActivity.TEACHING and world.body.held_by_hand
        for simulated_hand, outlet in zip(self.simulated_hands, self._hand_writers, strict=True):
            if simulated_hand.advance(world.time_s, moved_by_hand=moved_by_hand):
                world.note(f"commands to the {simulated_hand.hand.side} hand stopped: it relaxes")
            if self.hands_are_reporting:
                data = dds_hands.encode_state(simulated_hand.read(), simulated_hand.hand)
                self._write_sample(types.HAND_STATE, outlet, data)

    def _publish_arms_and_mode(self) -> None:
        if self.services.is_running(rpc.ARM):
            arms = self.services.encode_arm_state()
            if arms is not None:
                self._write_sample(types.TEXT, self._arm_state_writer, cdr.encode_text(arms))
        if self.services.is_running(rpc.SPORT):
            # On DDS the mode is an unsigned 32-bit integer; other types cannot be published.
            mode = self.services.read_mode()
            if isinstance(mode, int):
                self._write_sample(
                    types.SPORT, self._mode_writer, cdr.encode_mode(mode & 0xFFFFFFFF)
                )

    def _update_request_readers(self) -> None:
        """Open the request readers of services that run, and close all others."""
        for service in VERSIONS:
            if not self.services.is_running(service):
                inlet = self._requests.pop(service, None)
                if inlet is not None:
                    inlet.close()
            elif service not in self._requests:
                self._requests[service] = self._create_reader(
                    f"rt/api/{service}/request",
                    types.REQUEST,
                    partial(self._handle_request, service),
                    _REQUEST_DEPTH,
                )

    # ---- requests -------------------------------------------------------------------------------

    def _handle_request(self, service: str, data: bytes) -> None:
        request = cdr.decode_request(data, service)
        if request.api_id == VERSION_API:
            answer = ServiceAnswer(data=VERSIONS[service])
        else:
            answer = self.services.answer(self, request)
        if not answer.silent:
            self._schedule_answer(request, answer)

    def _schedule_answer(self, request: rpc.RpcRequest, answer: ServiceAnswer) -> None:
        """Send an answer now, after its delay, or when the preset it waits for has ended."""
        if answer.after_preset:
            self._waiting.append((request, answer))
        elif answer.delay_s > 0:
            self._loop.call_later(answer.delay_s, self._send_response, request, answer)
        else:
            self._send_response(request, answer)

    def _answer_finished_requests(self) -> None:
        for request, answer in list(self._waiting):
            if self.services.can_send(answer):
                self._waiting.remove((request, answer))
                self._schedule_answer(request, answer._replace(after_preset=0))

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
        script = rpc.read_field(message, "script", str)
        duration_ms = rpc.read_field(message, "duration_ms", int)
        self._world.obey(self, m.MoveByHand(script, duration_ms))

    def _obey_hand_command(self, simulated_hand: SimulatedHand, data: bytes) -> None:
        was_relaxed = simulated_hand.relaxed
        simulated_hand.obey(dds_hands.decode_command(data, simulated_hand.hand), self._world.time_s)
        if was_relaxed != simulated_hand.relaxed:
            action = "relaxes" if simulated_hand.relaxed else "follows commands"
            self._world.note(f"the {simulated_hand.hand.side} hand {action}")
