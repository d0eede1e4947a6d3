"""The connection to a robot's services over DDS: by topics, without a channel.

DDS has no connection set-up. A robot counts as present once it publishes, or once its services are
discovered. Samples other than answers are passed on as bytes, by topic.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from rote.errors import DecodeError, LinkError, NoAnswerError, RoteError
from rote.model.family import Hand
from rote.platform.clock import stall_clock
from rote.session.dds import DdsSession
from rote.session.rpc import ChannelState, ChannelTiming
from rote.text import Act, Text
from rote.transport.dds import types
from rote.transport.dds.participant import Bus, DdsTarget, Inlet, Outlet
from rote.transport.tap import Tap
from rote.wire.dds import cdr
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc
from rote.wire.services.lowstate import BMS_TOPIC, HAND_TOPIC
from rote.wire.services.lowstate import SPORT_TOPIC as SLOW_SPORT_TOPIC
from rote.wire.webrtc import channel

SPORT_TOPIC = "rt/sportmodestate"
REQUESTED_SERVICES = (rpc.ARM, rpc.SPORT, rpc.MOTION_SWITCHER, rpc.ROBOT_STATE, rpc.VOICE)
"""The services to which rote sends requests."""
_REQUIRED_SERVICES = (rpc.ARM, rpc.SPORT, rpc.MOTION_SWITCHER)
OLD_SPORT = "loco"
"""The name of the service `sport` before ai_sport 8.2.0.0."""
_CHECK_S = 0.02
"""Interval of the check whether the robot is present."""
_SETTLE_S = 1.0
"""Timeout for a robot that publishes to offer its services, and for one that offers them to report
its joints. Some robots never do; in debug mode they do not offer the services.
"""
_REPLY_DEPTH, _STATE_DEPTH = 256, 64
"""Maximum numbers of samples that wait in a reader."""

STATE_TOPICS = {
    dds_lowlevel.LOWSTATE_TOPIC: types.LOWSTATE,
    SPORT_TOPIC: types.SPORT,
    SLOW_SPORT_TOPIC: types.SPORT,
    BMS_TOPIC: types.BATTERY,
    rpc.ARM_STATE_TOPIC: types.TEXT,
    rpc.AUDIO_TOPIC: types.TEXT,
}
"""The type of each topic on which a robot publishes."""
SampleCallback = Callable[[str, bytes], None]
"""Called with the topic and the sample."""


def request_topic(service: str) -> str:
    """Return the topic on which a service takes requests."""
    return f"rt/api/{service}/request"


def response_topic(service: str) -> str:
    """Return the topic on which a service answers."""
    return f"rt/api/{service}/response"


class DdsTopics:
    """The readers and writers of one connection, for all topics."""

    def __init__(self, bus: Bus, receive: Callable[[str, bytes], None]) -> None:
        """`receive` is called with each sample, and with its service or topic before it."""
        self.bus = bus
        self._receive = receive
        self.hands: dict[Hand, Inlet] = {}
        """The readers of the hands that are subscribed to."""
        self._hand_writers: dict[Hand, Outlet] = {}
        self._requests: dict[str, Outlet] = {}
        self._responses: dict[str, Inlet] = {}
        for service in REQUESTED_SERVICES:
            topic = response_topic(service)
            self._responses[service] = bus.reader(
                topic, types.RESPONSE, partial(receive, service), depth=_REPLY_DEPTH
            )
            self._requests[service] = bus.writer(
                request_topic(service), types.REQUEST, depth=_STATE_DEPTH
            )
        # States are not sent again if they get lost: the next one arrives some milliseconds later.
        states = {
            topic: bus.reader(
                topic, kind, partial(receive, topic), depth=_STATE_DEPTH, reliable=False
            )
            for topic, kind in STATE_TOPICS.items()
        }
        self.joints = states[dds_lowlevel.LOWSTATE_TOPIC]
        self.arms = bus.writer(dds_lowlevel.ARM_SDK_TOPIC, types.LOWCMD)
        self.hand = bus.writer(HAND_TOPIC, types.TEXT)

    def subscribe_to_hands(self, hands: Iterable[Hand]) -> None:
        """Subscribe to these hands, in case the robot has them."""
        for hand in hands:
            if hand not in self.hands:
                receive = partial(self._receive, hand.state_topic)
                self.hands[hand] = self.bus.reader(
                    hand.state_topic, types.HAND_STATE, receive, depth=_STATE_DEPTH, reliable=False
                )

    def hand_writer(self, hand: Hand) -> Outlet:
        """Return the writer for commands to a hand; it is opened at the first call."""
        if hand not in self._hand_writers:
            self._hand_writers[hand] = self.bus.writer(hand.command_topic, types.HAND_COMMAND)
        return self._hand_writers[hand]

    def offers(self, service: str) -> bool:
        """Whether the robot accepts requests to a service and can answer them."""
        return bool(self._requests[service].matched and self._responses[service].matched)

    def send(self, value: channel.Value) -> None:
        """Write a request, or a command to a simulated hand."""
        if isinstance(value, rpc.RpcRequest):
            self._requests[value.service].write(cdr.encode_request(value))
        elif isinstance(value, channel.ChannelMessage):
            self.hand.write(cdr.encode_text(rpc.write_json(value.data)))


class DdsConnection:
    """A connection to a robot's services by DDS, with a new participant for each session."""

    session: DdsSession

    def __init__(
        self,
        target: DdsTarget,
        timing: ChannelTiming | None = None,
        *,
        before_close: Callable[[], Awaitable[None]],
        tap: Tap | None = None,
    ) -> None:
        """`before_close` is awaited before anything is closed."""
        self._tap = tap
        self._loop = asyncio.get_running_loop()
        self._now = stall_clock(self._loop)
        self.session = DdsSession(timing=timing, now=self._now())
        self.topics: DdsTopics | None = None
        self.target = target
        self._timing = timing
        self._sample_listeners: list[SampleCallback] = []
        self._hands: dict[str, Hand] = {}
        self._before_close = before_close
        self._flush: Callable[[], None] = lambda: None
        self._check_timer: asyncio.TimerHandle | None = None
        self._first_state_at: float | None = None
        self._offered_at: float | None = None
        """When the robot offered all required services."""
        self._any_offered_at: float | None = None
        """When the robot offered any service."""

    def on_sample(self, listener: SampleCallback) -> None:
        """Call `listener` with every sample other than an answer."""
        self._sample_listeners.append(listener)

    async def open(self, flush: Callable[[], None], topics: Iterable[str]) -> None:
        """Join the domain and search for the robot.

        `topics` is ignored: on DDS, all known topics are always read.
        """
        self._flush = flush
        self._first_state_at = self._offered_at = self._any_offered_at = None
        # Every client receives every client's answers. A random first id makes ours recognisable.
        first_id = secrets.randbits(61)
        self.session = DdsSession(timing=self._timing, first_id=first_id, now=self._now())
        if self._tap is not None:
            self._tap.begin_stage("domain")
        self.topics = DdsTopics(Bus(self.target), self._on_data)
        if self._tap is not None:
            self._tap.begin_stage("services")
        self.topics.subscribe_to_hands(self._hands.values())
        self._loop.call_soon(self._check_presence)

    def subscribe_to_hands(self, hands: Iterable[Hand]) -> None:
        """Subscribe to these hands; their samples are passed on like those of other topics."""
        self._hands |= {hand.state_topic: hand for hand in hands}
        if self.topics is not None:
            self.topics.subscribe_to_hands(self._hands.values())

    def _check_presence(self) -> None:
        """Begin the session once the robot is present; otherwise check again soon.

        It is present if it publishes and offers its services, or has done either for `_SETTLE_S`.
        One service is enough after twice that time: a robot that has no more can be stopped by it.
        """
        topics, now = self.topics, self._now()
        if topics is None or self.session.state is not ChannelState.OPEN:
            return
        self._check_timer = self._loop.call_later(_CHECK_S, self._check_presence)
        offered = all(map(topics.offers, _REQUIRED_SERVICES))
        if offered and self._offered_at is None:
            self._offered_at = now
        if self._any_offered_at is None and any(map(topics.offers, REQUESTED_SERVICES)):
            self._any_offered_at = now
        publishes = self._first_state_at is not None
        has_both = publishes and self._offered_at is not None
        either_at = self._first_state_at if publishes else self._offered_at
        has_settled = either_at is not None and now - either_at >= _SETTLE_S
        any_offered_at = self._any_offered_at
        offers_few = any_offered_at is not None and now - any_offered_at >= 2 * _SETTLE_S
        if has_both or has_settled or offers_few:
            self.session.begin(now)
            self._flush()

    async def close(self) -> None:
        """Leave the domain."""
        try:
            await self._before_close()
        finally:
            if self._check_timer is not None:
                self._check_timer.cancel()
            topics, self.topics = self.topics, None
            if topics is not None:
                topics.bus.close()

    # ---- requests -------------------------------------------------------------------------------

    def send(self) -> Iterable[tuple[int, RoteError]]:
        """Write the session's outgoing requests; return the ids of those that could not be written,
        each with its error.
        """
        failed: list[tuple[int, RoteError]] = []
        for value in self.session.take_values():
            if self.topics is not None and self._may_send(value):
                try:
                    self.topics.send(value)
                except LinkError as error:
                    if isinstance(value, rpc.RpcRequest):
                        failed.append((value.id, error))
        return failed

    def _may_send(self, value: channel.Value) -> bool:
        """Pass a request to the tap, if there is one; return whether a message may be sent."""
        if self._tap is None or not isinstance(value, rpc.RpcRequest):
            return True
        return self._tap.note_sending(cdr.encode_request(value), request_topic(value.service))

    def find_problem(self, call: rpc.Call) -> RoteError | None:
        """Return why a service cannot be called; None if it can.

        If DDS no longer finds the robot's states nor any of its services, the session is lost.
        """
        rpc.check_service(call.service)
        topics = self.topics
        if topics is not None and topics.offers(call.service):
            return None
        is_gone = (
            topics is not None
            and not topics.joints.matched
            and not any(map(topics.offers, REQUESTED_SERVICES))
        )
        if is_gone:
            self.session.lose(self._now())
            self._flush()
        return self._make_no_service_error(call.service)

    def _make_no_service_error(self, service: str) -> NoAnswerError:
        """Return the error for a service that is not offered, with likely reasons."""
        _, read = self.topics.bus.discovered_topics() if self.topics else (set(), set())
        problem = (
            f"the robot is connected, but no program takes requests to the service {service!r}"
        )
        if service == rpc.SPORT and request_topic(OLD_SPORT) in read:
            return NoAnswerError(
                f"{problem}; it has {OLD_SPORT!r}, the name in older software",
                "Update the robot: rote needs ai_sport 8.2.0.0 or newer.",
            )
        if request_topic(rpc.MOTION_SWITCHER) in read and service in (rpc.ARM, rpc.SPORT):
            return NoAnswerError(
                problem,
                Text(
                    "The robot is in debug mode, or the service is off. To leave debug mode, "
                    "switch the robot off and on, or select the controller 'ai'. To find the "
                    "cause: {doctor}.",
                    doctor=Act.DOCTOR,
                ),
            )
        return NoAnswerError(
            problem, "The robot may still be starting: wait a minute, then try again."
        )

    # ---- samples from the robot -----------------------------------------------------------------

    def _on_data(self, source: str, data: bytes) -> None:
        """Process a sample; `source` is its topic, or for an answer the name of the service."""
        now = self._now()
        is_topic = source in self._hands or source in STATE_TOPICS
        if self._tap is not None:
            self._tap.note_received(data, source if is_topic else response_topic(source))
        if self._first_state_at is None and source == dds_lowlevel.LOWSTATE_TOPIC:
            self._first_state_at = now
        try:
            if is_topic:
                if source in STATE_TOPICS:  # hands may report without the robot
                    self.session.note_received(now)
                for listener in self._sample_listeners:
                    listener(source, data)
            else:
                self.session.answer(cdr.decode_response(data, source), now)
                self._flush()
        except DecodeError:
            self.session.dropped["telemetry"] += 1

    def make_open_error(self, url: str, waited_s: float) -> RoteError:
        """Return the error for a robot that was not found, with what was found instead."""
        written, read = (
            self.topics.bus.discovered_topics() if self.topics is not None else (set(), set())
        )
        where = f"{self.target.interface}, domain {self.target.domain}"
        problem = f"no robot answered at {url} within {waited_s:.0f} s: "
        if dds_lowlevel.LOWSTATE_TOPIC in written:
            problem += (
                f"a robot announces {dds_lowlevel.LOWSTATE_TOPIC}, but no sample of it arrives"
            )
            remedy = Text(
                "Its states are longer than one packet, and a firewall may drop their fragments "
                "(ufw does). Allow UDP from the robot's network. To use a simulated robot: "
                "{simulate}.",
                simulate=Act.SIMULATE_DDS,
            )
        elif written | read:
            problem += f"there are DDS programs on {where}, but no G1"
            remedy = Text(
                "Check that the robot has started: {doctor}. To use a simulated robot: {simulate}.",
                doctor=Act.DOCTOR,
                simulate=Act.SIMULATE_DDS,
            )
        else:
            problem += f"there is no other DDS program on {where}"
            remedy = Text(
                "Check the cable, that the robot is on, and that this computer has an address "
                "in its network (192.168.123.x): {doctor}. To use a simulated robot: {simulate}.",
                doctor=Act.DOCTOR,
                simulate=Act.SIMULATE_DDS,
            )
        return NoAnswerError(problem, remedy)
