"""A G1 EDU by its services on DDS: the same words as over WebRTC, and arms that can be streamed.

What the robot publishes is thinned out to what people watch, except while it records: then every
state counts, and there are hundreds a second. A stream of poses is never cut: it is let go of
softly when it is stopped, when the poses cease, when the robot falls silent, and before we leave.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from rote import messages as m
from rote.carrier import Carrier
from rote.carrier import dds_types as types
from rote.carrier.dds import Bus, Inlet, Outlet, Target
from rote.client.services import ABILITIES as SERVICES_ABILITIES
from rote.client.services import ServicesClient
from rote.errors import DecodeError, LinkError, NoAnswerError, RefusedError
from rote.host.loop import to_the_end
from rote.messages import Code, Phase, RobotState
from rote.model.g1 import G1
from rote.session.arm_stream import FADE_HZ, ArmStream, Setpoint
from rote.session.dds import DdsSession
from rote.session.rpc import State, Timing
from rote.wire import cdr, channel, hg, rpc
from rote.wire.lowstate import BMS_TOPIC, HAND_TOPIC, Joints
from rote.wire.lowstate import SPORT_TOPIC as SLOW_SPORT_TOPIC

ABILITIES = SERVICES_ABILITIES - {"topics"} | {"stream"}
SPORT_TOPIC = "rt/sportmodestate"
ASKED = (rpc.ARM, rpc.SPORT, rpc.MOTION_SWITCHER, rpc.ROBOT_STATE)
"""The services that are asked."""
_NEEDED = (rpc.ARM, rpc.SPORT, rpc.MOTION_SWITCHER)
VERSION_API = 1
"""What every service is asked for the version of its interface."""
OLD_SPORT = "loco"
"""What the service `sport` was called before ai_sport 8.2.0.0."""
_WATCHED_MS = 20
"""States for people: fifty a second."""
_LOOK_S = 0.02
_SETTLE_S = 1.0
"""So long a robot that is heard may take to offer its services; some never do, in debug mode."""
_CEASED_S = 0.1
_REPLIES, _STATES = 256, 64


_STATE_TOPICS = {
    hg.LOWSTATE_TOPIC: types.LOWSTATE,
    SPORT_TOPIC: types.SPORT,
    SLOW_SPORT_TOPIC: types.SPORT,
    BMS_TOPIC: types.BATTERY,
    rpc.ARM_STATE_TOPIC: types.TEXT,
}


def request_topic(service: str) -> str:
    """Return where a service takes requests."""
    return f"rt/api/{service}/request"


def response_topic(service: str) -> str:
    """Return where a service answers."""
    return f"rt/api/{service}/response"


class _Lines:
    """All topics of one conversation."""

    def __init__(self, bus: Bus, receive: Callable[[str, bytes], None]) -> None:
        self.bus = bus
        self._requests: dict[str, Outlet] = {}
        self._responses: dict[str, Inlet] = {}
        for service in ASKED:
            topic = response_topic(service)
            self._responses[service] = bus.reader(
                topic, types.RESPONSE, partial(receive, service), depth=_REPLIES
            )
            self._requests[service] = bus.writer(
                request_topic(service), types.REQUEST, depth=_STATES
            )
        # Hundreds of states a second are not worth repeating: a lost one is old news.
        states = {
            topic: bus.reader(topic, kind, partial(receive, topic), depth=_STATES, reliable=False)
            for topic, kind in _STATE_TOPICS.items()
        }
        self.joints = states[hg.LOWSTATE_TOPIC]
        self.arms = bus.writer(hg.ARM_SDK_TOPIC, types.LOWCMD)
        self.hand = bus.writer(HAND_TOPIC, types.TEXT)

    def offers(self, service: str) -> bool:
        """Whether somebody takes requests to a service, and can answer us."""
        return bool(self._requests[service].matched and self._responses[service].matched)

    def send(self, value: channel.Value) -> None:
        """Write a request, or what a simulated hand is told."""
        if isinstance(value, rpc.Request):
            self._requests[value.service].write(cdr.encode_request(value))
        elif isinstance(value, channel.Message):
            self.hand.write(cdr.encode_text(rpc.write_json(value.data)))


class DdsClient(ServicesClient):
    """One client's conversation with one G1 on DDS."""

    session: DdsSession

    def __init__(
        self, url: str, target: Target, timing: Timing | None = None, *, reconnect: bool = True
    ) -> None:
        super().__init__(url, _no_carrier, timing, reconnect=reconnect)
        self.abilities = ABILITIES
        self.session = DdsSession(timing=timing, now=self._loop.time())
        self._target = target
        self._lines: _Lines | None = None
        self._topics = {}
        self._looker: asyncio.TimerHandle | None = None
        self._first_heard_at: float | None = None
        self._reported_ms = 0
        self._machine = 0
        self._stream: ArmStream | None = None
        self._guard: asyncio.TimerHandle | None = None
        self._fading: asyncio.Future[None] = self._loop.create_future()
        self._fading.set_result(None)
        self._told_at = self._ceased_at = 0.0

    # ---- finding the robot, and letting go of it ------------------------------------------------

    async def _connect(self) -> None:
        now = self._loop.time()
        self._first_heard_at = None
        # Everybody hears everybody's answers: ours must be told from theirs by their numbers.
        first = secrets.randbits(61)
        self.session = DdsSession(timing=self._timing, first_id=first, now=now)
        self._lines = _Lines(Bus(self._target), self._hear_topic)
        self._flush()
        self._look()
        await self._opened
        await self._greet()

    def _look(self) -> None:
        """Look whether the robot is there: it is heard, and its services are."""
        lines, now = self._lines, self._loop.time()
        if lines is None or self.session.state is not State.OPEN:
            return
        self._looker = self._loop.call_later(_LOOK_S, self._look)
        heard_at = self._first_heard_at
        if heard_at is None:
            return
        if now - heard_at >= _SETTLE_S or all(map(lines.offers, _NEEDED)):
            self.session.begin(now)
            self._flush()

    async def _greet(self) -> None:
        assert self._lines is not None
        await super()._greet()
        # Only a simulated robot of ours listens there.
        self.abilities = ABILITIES | ({"hand"} if self._lines.hand.matched else set())

    async def close(self) -> None:
        """Let go of the robot, softly of its arms. Safe to call twice."""
        self._fade()
        try:
            await self._faded()
        finally:
            await super().close()

    async def _let_go(self) -> None:
        try:
            await self._faded()
        finally:
            if self._looker is not None:
                self._looker.cancel()
            lines, self._lines = self._lines, None
            if lines is not None:
                lines.bus.close()

    def _lose(self, silence_s: float) -> None:
        if self._opened.done():
            self._fade()
            super()._lose(silence_s)
        else:
            self._opened.set_exception(self._nobody(silence_s))

    def _nobody(self, waited_s: float) -> NoAnswerError:
        """Say that no robot was found, and what was found instead."""
        assert self._lines is not None
        written, read = self._lines.bus.seen()
        where = f"{self._target.interface}, domain {self._target.domain}"
        seen = f"no robot answered at {self.url} within {waited_s:.0f} s: "
        if hg.LOWSTATE_TOPIC in written:
            seen += f"one announces {hg.LOWSTATE_TOPIC}, and nothing of it arrives"
            remedy = (
                "Its states are longer than one packet: a firewall may drop their fragments (ufw "
                "does). Allow UDP from the robot's network. A simulated one: rote sim --dds."
            )
        elif written | read:
            seen += f"there is DDS on {where}, but no G1 among it"
            remedy = "Check that the robot has started: rote doctor. A simulated one: rote sim."
        else:
            seen += f"nobody else speaks DDS on {where}"
            remedy = (
                "Check the cable, that the robot is on, and that this computer has an address in "
                "its network (192.168.123.x): rote doctor. For a simulated one run: rote sim --dds."
            )
        return NoAnswerError(seen, remedy)

    # ---- asking ---------------------------------------------------------------------------------

    async def _request(self, call: rpc.Call, *, read: bool = False) -> rpc.Response:
        rpc.check_service(call.service)
        if self._lines is None or not self._lines.offers(call.service):
            if self._lines is not None and not self._lines.joints.matched:
                self._gone()  # it has left, and said so to DDS
            raise self._failure or self._unserved(call.service)
        return await super()._request(call, read=read)

    def _unserved(self, service: str) -> NoAnswerError:
        """Say that a service is not there, and why that may be."""
        _, read = self._lines.bus.seen() if self._lines else (set(), set())
        seen = f"nobody takes requests to the service {service!r}, though the robot is there"
        if service == rpc.SPORT and request_topic(OLD_SPORT) in read:
            return NoAnswerError(
                f"{seen}; it has {OLD_SPORT!r}, which older software calls it",
                "Update the robot: rote needs ai_sport 8.2.0.0 or newer.",
            )
        if request_topic(rpc.MOTION_SWITCHER) in read and service in (rpc.ARM, rpc.SPORT):
            return NoAnswerError(
                seen,
                "It is in debug mode, or the service is off: leave debug mode by switching the "
                "robot off and on, or select the controller 'ai'. See: rote doctor.",
            )
        return NoAnswerError(seen, "The robot may still be starting: wait a minute, try again.")

    async def version(self, service: str) -> str:
        """Return which version of its interface a service says it has."""
        return (await self.call(rpc.Call(service, VERSION_API), read=True)).data

    def _send(self) -> None:
        for value in self.session.said():
            if self._lines is not None:
                try:
                    self._lines.send(value)
                except LinkError as error:
                    if isinstance(value, rpc.Request):
                        self._answer(value.id, error)

    # ---- what the robot says --------------------------------------------------------------------

    def _hear_topic(self, source: str, data: bytes) -> None:
        """Take in one sample from a topic, or from a service of that name."""
        now = self._loop.time()
        if self._first_heard_at is None and source == hg.LOWSTATE_TOPIC:
            self._first_heard_at = now
        try:
            reader = _READERS.get(source)
            if reader is None:
                self.session.answer(cdr.decode_response(data, source), now)
                self._flush()
            else:
                self.session.hear(now)
                reader(self, data)
        except DecodeError:
            self.session.dropped["telemetry"] += 1

    def _read_lowstate(self, data: bytes) -> None:
        tick_ms = hg.tick_of(data)
        recording = self._arms.activity is rpc.Activity.RECORDING
        if recording or not 0 <= tick_ms - self._reported_ms < _WATCHED_MS:
            self._reported_ms = tick_ms
            self._report(self._state(hg.joints_of(data)))

    def _read_mode(self, data: bytes) -> None:
        self._mode = cdr.decode_mode(data)

    def _read_battery(self, data: bytes) -> None:
        self._battery = cdr.decode_battery(data)

    def _read_arms(self, data: bytes) -> None:
        self._arms = rpc.decode_arm_state(cdr.decode_text(data))
        stream = self._stream
        let_go = self._arms.activity is rpc.Activity.RELEASING
        if let_go and stream is not None and stream.phase is not Phase.RETURN:
            self._stopped = True  # by somebody else
            self._fade()

    def _state(self, joints: Joints) -> RobotState:
        self._machine = joints.mode_machine
        state = super()._state(joints)
        stream = self._stream
        if stream is None:
            return state
        if stream.astray(state.positions_rad, self._loop.time()):
            self._stopped = True
            self._fade()
        return replace(state, phase=stream.phase, stopped_early=self._stopped)

    # ---- streaming ------------------------------------------------------------------------------

    async def ask(self, command: m.Command) -> m.Reply:
        """Carry out a command in the words of the services, or by the stream."""
        if isinstance(command, m.BeginStream):
            return self._begin_stream()
        if isinstance(command, m.StopMotion) and self._stream is not None:
            self._stopped = True
            self._fade()
            return m.Status()
        return await super().ask(command)

    def _begin_stream(self) -> m.Reply:
        lines, state = self._lines, self.latest
        if self._failure is not None:
            raise self._failure
        if lines is None or state is None or not lines.arms.matched:
            raise self._unobeyed()
        if not G1.modes.balanced(state.mode):
            raise RefusedError(Code.WRONG_STATE, *m.words_for(Code.WRONG_STATE))
        if self._arms.holding:
            raise RefusedError(Code.HOLDING, *m.words_for(Code.HOLDING))
        if self._stream is not None or self._arms.activity is not rpc.Activity.IDLE:
            raise RefusedError(Code.BUSY, *m.words_for(Code.BUSY))
        self._stopped = False
        self._stream = ArmStream(state.positions_rad)
        self._watch_stream()
        return m.Status()

    def _unobeyed(self) -> NoAnswerError:
        seen = f"nobody obeys {hg.ARM_SDK_TOPIC}"
        if self._lines is not None and hg.OLD_ARM_SDK_TOPIC in self._lines.bus.seen()[1]:
            return NoAnswerError(
                f"{seen}; there is {hg.OLD_ARM_SDK_TOPIC}, which older software calls it",
                "Update the robot to stream motions, or teach and play them by the arm service.",
            )
        return NoAnswerError(seen, "The robot must stand balanced, and not in debug mode.")

    def ready(self, poses: Iterable[m.StreamPose]) -> Callable[[int], bool]:
        """Make the poses of the stream that was begun ready; returns what sends one by its place.

        That returns False, and sends nothing, once the stream was ended.
        """
        begun, waiting = self._stream, list(poses)

        def send(place: int) -> bool:
            if begun is None or begun is not self._stream or not begun.following:
                return False
            self._tell_arms(begun.follow(waiting[place], self._loop.time()))
            self._told_at = self._loop.time()
            if place == len(waiting) - 1:
                self._end_stream()
            return True

        return send

    def _tell_arms(self, setpoint: Setpoint) -> None:
        if self._lines is not None:
            data = hg.encode_arm_command(*setpoint, mode_machine=self._machine)
            try:
                self._lines.arms.write(data)
            except LinkError:
                self.session.dropped["arm command"] += 1

    def _watch_stream(self) -> None:
        """Let go softly where the poses cease, whatever the reason."""
        self._told_at = self._loop.time()
        self._guard = self._loop.call_later(_CEASED_S, self._look_at_stream)

    def _look_at_stream(self) -> None:
        ceased_s = self._loop.time() - self._told_at
        if ceased_s < _CEASED_S:
            again_s = _CEASED_S - ceased_s
        elif self._told_at != self._ceased_at:
            # Perhaps the loop was held up, and the next pose is as late as this look: let it pass.
            self._ceased_at, again_s = self._told_at, _LOOK_S
        else:
            self._stopped = True
            self._fade()
            return
        self._guard = self._loop.call_later(again_s, self._look_at_stream)

    def _fade(self) -> None:
        """Let go of the arms softly, from wherever they are; nothing to do without a stream."""
        stream = self._stream
        if stream is not None and stream.following:
            self._stop_watching()
            self._fading = self._loop.create_future()
            self._let_arms_go(iter(stream.fade()), self._loop.time())

    def _let_arms_go(self, setpoints: Iterator[Setpoint], now: float) -> None:
        """Tell the arms the next, and go on by a timer: a task would be cancelled with all others
        where a program is ended."""
        setpoint = next(setpoints, None)
        if setpoint is None:
            self._end_stream()
            self._fading.set_result(None)
        else:
            then = now + 1.0 / FADE_HZ
            self._loop.call_at(then, self._let_arms_go, setpoints, then)
            self._tell_arms(setpoint)

    async def _faded(self) -> None:
        """Wait until the arms are let go of; who is cancelled meanwhile is so afterwards."""
        await to_the_end(self._fading)

    def _end_stream(self) -> None:
        self._stop_watching()
        self._stream = None

    def _stop_watching(self) -> None:
        if self._guard is not None:
            self._guard.cancel()
            self._guard = None


async def _no_carrier() -> Carrier:
    raise NotImplementedError("DDS has topics, and no channel")


_READERS: dict[str, Callable[[DdsClient, bytes], None]] = {
    hg.LOWSTATE_TOPIC: DdsClient._read_lowstate,
    SPORT_TOPIC: DdsClient._read_mode,
    SLOW_SPORT_TOPIC: DdsClient._read_mode,
    BMS_TOPIC: DdsClient._read_battery,
    rpc.ARM_STATE_TOPIC: DdsClient._read_arms,
}
