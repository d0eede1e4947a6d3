"""The simulated robot's services for one client, over any message carrier."""

import asyncio
import json
from collections.abc import Callable

from rote import messages as m
from rote.errors import DecodeError
from rote.session.events import Opened, PeerLost
from rote.session.rpc import (
    MAX_TEXT_LENGTH,
    ChannelTiming,
    Event,
    MessageReceived,
    RequestReceived,
    RpcSession,
)
from rote.session.teaching import Role
from rote.sim.quirks import Missing, Refused
from rote.sim.services import ServiceAnswer, Services
from rote.wire.services import faults, rpc
from rote.wire.services.faults import Change, Faults
from rote.wire.services.lowstate import (
    BMS_TOPIC,
    HAND_TOPIC,
    LOWSTATE_TOPIC,
    SPORT_TOPIC,
    encode_battery,
    encode_fsm,
    encode_lowstate,
)
from rote.wire.webrtc import channel

LOWSTATE_S = 0.02
"""The time between two states of the joints."""
_BATTERY_S, _FAULTS_S = 1.0, 5.0
_RESPONSE_START = '{"type":"res"'

Send = Callable[[str | bytes], None]


class RpcClientSession:
    """One client of the simulated robot's services.

    `on_close` is called once, when the client has left or was silent too long; the carrier can then
    be closed.
    """

    def __init__(
        self,
        services: Services,
        send: Send,
        *,
        challenge: str,
        timing: ChannelTiming | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._services = services
        self._world = services.world
        self.send = send
        self._on_close = on_close
        self._loop = asyncio.get_running_loop()
        quirks = self.quirks = services.world.firmware.quirks
        lowstate_s = 1.0 / quirks.lowstate_hz if quirks.lowstate_hz else LOWSTATE_S
        self._tick_s = min(lowstate_s, LOWSTATE_S)
        self._ticks_per_lowstate = round(lowstate_s / self._tick_s)
        self.session = RpcSession(
            Role.ROBOT,
            timing=timing,
            now=self._loop.time(),
            max_text_length=quirks.max_chars or MAX_TEXT_LENGTH,
        )
        self.session.open(self._loop.time(), challenge=challenge)
        self._waiting: dict[int, ServiceAnswer] = {}
        """Answers that wait for the end of a preset, by the token of their request."""
        self._ticks = 0
        self._published_faults: dict[tuple[int, int], faults.Fault] = {}
        self._published_changes = -1
        """`Health.changes` when faults were last published; -1 before the first time."""
        self._next_at = self._loop.time() + self._tick_s
        self._timer: asyncio.TimerHandle | None = self._loop.call_at(self._next_at, self._tick)
        self._process_session()

    def receive(self, message: str | bytes) -> None:
        """Process one message from the client."""
        self.session.receive(message, self._loop.time())
        self._process_session()

    def close(self) -> None:
        """End the session: the client has left, or the robot ends. Safe to call twice."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        if self.session.live:
            self.session.close(self._loop.time())
        self._world.forget(self)
        if self._on_close is not None:
            self._on_close()

    # ---- publishing -----------------------------------------------------------------------------

    def _tick(self) -> None:
        """Publish what is due, and send the answers for which the client has waited."""
        now = self._loop.time()
        # Absolute times keep the rate; reports that a busy process missed are skipped.
        self._next_at = max(self._next_at + self._tick_s, now)
        self._timer = self._loop.call_at(self._next_at, self._tick)
        self._ticks += 1
        self.session.tick(now)
        self._publish_states()
        self._publish_faults()
        for token, answer in list(self._waiting.items()):
            if self._services.can_send(answer):
                del self._waiting[token]
                self._schedule_answer(token, answer._replace(after_preset=0))
        self._process_session()

    def _publish_states(self) -> None:
        """Publish the states of joints, arms, mode and battery that are due at this tick."""
        session, world = self.session, self._world
        if session.is_subscribed(LOWSTATE_TOPIC) and self._ticks % self._ticks_per_lowstate == 0:
            slots = world.firmware.slots
            state = encode_lowstate(world.state(), build=world.build, slots=slots)
            value = self.quirks.change_lowstate(state) if self.quirks else state
            if value is not None:
                session.publish(LOWSTATE_TOPIC, value)
        if self._is_due(world.firmware.behaviour.arm_state_s):
            if self._services.is_running(rpc.ARM):
                arms = self._services.encode_arm_state()
                if arms is not None:
                    session.publish(rpc.ARM_STATE_TOPIC, arms)
            if self._services.is_running(rpc.SPORT):
                self._publish_mode(self._services.read_mode())
        if self._is_due(_BATTERY_S):
            session.publish(BMS_TOPIC, encode_battery(world.health.battery_percent))

    def _is_due(self, period_s: float) -> bool:
        return self._ticks % round(period_s / self._tick_s) == 0

    def _publish_mode(self, value: object) -> None:
        """Publish the mode as `value`, a result of `Services.read_mode`."""
        if value is Refused:
            return
        message = encode_fsm(self._world.machine.mode)
        del message["fsm_id"]
        self.session.publish(
            SPORT_TOPIC, message if value is Missing else {"fsm_id": value, **message}
        )

    def _publish_faults(self) -> None:
        """Publish new and removed faults, and periodically all of them."""
        if self._published_changes < 0 or not self.session.live:
            return
        if self._published_changes != self._world.health.changes:
            current = {(fault.source, fault.code): fault for fault in self._services.faults()}
            for key in self._published_faults.keys() - current.keys():
                self.session.send(Faults(Change.REMOVED, (self._published_faults[key],)))
            for key in current.keys() - self._published_faults.keys():
                self.session.send(Faults(Change.ADDED, (current[key],)))
            self._remember_published_faults()
        if self._is_due(_FAULTS_S):
            self._publish_all_faults()

    def _publish_all_faults(self) -> None:
        self.session.send(Faults(Change.ALL, self._services.faults()))
        self._remember_published_faults()

    def _remember_published_faults(self) -> None:
        self._published_faults = {
            (fault.source, fault.code): fault for fault in self._services.faults()
        }
        self._published_changes = self._world.health.changes

    # ---- requests -------------------------------------------------------------------------------

    def _process_session(self) -> None:
        for event in self.session.events():
            self._handle_event(event)
        for message in self.session.outgoing():
            if self.quirks:
                self._send_with_quirks(message)
            else:
                self.send(message)

    def _send_with_quirks(self, message: str | bytes) -> None:
        """Send a message with the robot's quirks applied; binary messages have none."""
        quirks, payload = self.quirks, b""
        if isinstance(message, bytes):
            self.send(message)
            return
        is_response = message.startswith(_RESPONSE_START)
        if is_response:
            for text in quirks.extra:
                self.send(text)
            document = quirks.change_response(json.loads(message))
            if quirks.binary and isinstance(document["data"]["data"], str):
                # The text of the answer follows its header as the payload of a binary frame.
                payload = document["data"].pop("data").encode(errors="surrogatepass")
            message = json.dumps(document)
        text = quirks.change_message(message)
        is_framed = quirks.binary and is_response
        self.send(channel.encode_frame(text, payload) if is_framed else text)

    def _handle_event(self, event: Event) -> None:
        if isinstance(event, RequestReceived):
            self._schedule_answer(event.token, self._services.answer(self, event.request))
        elif isinstance(event, MessageReceived):
            self._handle_message(event.value)
        elif isinstance(event, Opened):
            self._publish_all_faults()
        elif isinstance(event, PeerLost):
            self.close()

    def _schedule_answer(self, token: int, answer: ServiceAnswer) -> None:
        """Send an answer now, after its delay, when its preset has ended, or never."""
        if answer.silent:
            self.session.ignore(token)
        elif answer.after_preset:
            self._waiting[token] = answer
        elif answer.delay_s > 0:
            self._loop.call_later(answer.delay_s, self._send_delayed_answer, token, answer)
        else:
            self.session.reply(token, answer.code, answer.data)

    def _send_delayed_answer(self, token: int, answer: ServiceAnswer) -> None:
        self.session.reply(token, answer.code, answer.data)
        self._process_session()

    def _handle_message(self, value: channel.Value) -> None:
        if isinstance(value, channel.Inner):
            self._answer_webrtc_service(value.data)
        elif isinstance(value, channel.ChannelMessage) and value.topic == HAND_TOPIC:
            self._handle_scripted_hand(value)

    def _answer_webrtc_service(self, request: dict[str, object]) -> None:
        """Answer a request to the WebRTC service itself; unknown ones are not answered."""
        request_type = request.get("req_type")
        if request_type == "public_network_status":
            status = "NetworkStatus.ON_WIFI_CONNECTED"
            message = {"req_type": request_type, "uuid": request.get("uuid"), "status": status}
        elif request_type == "disable_traffic_saving":
            message = {"req_type": request_type, "execution": "ok"}
        else:
            return
        self.session.send(channel.Inner(message, answer=True))

    def _handle_scripted_hand(self, message: channel.ChannelMessage) -> None:
        """Start the scripted hand that a rote client requests."""
        try:
            script = rpc.read_field(message.data, "script", str)
            duration_ms = rpc.read_field(message.data, "duration_ms", int)
        except DecodeError:
            return
        self._world.obey(self, m.MoveByHand(script, duration_ms))
