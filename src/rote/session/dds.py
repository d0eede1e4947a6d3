"""A client's session over DDS: the requests and answers of a data channel, without the channel.

DDS has no challenge and no heartbeat. A robot is present once a message arrives, and lost when it
goes silent: it publishes its joints hundreds of times per second, or answers requests. Values
are not encoded here, because DDS encodes them itself.
"""

from rote.session.rpc import ChannelInput, ChannelState, ChannelTiming, RpcSession
from rote.session.teaching import Role
from rote.wire.services import rpc
from rote.wire.webrtc import channel


class DdsSession(RpcSession):
    """The client's end of a session; `take_values` returns what it has to write."""

    def __init__(
        self, *, timing: ChannelTiming | None = None, first_id: int = 1, now: float
    ) -> None:
        super().__init__(Role.CLIENT, timing=timing, first_id=first_id, now=now)
        self._values: list[channel.Value] = []
        self.open(now)

    def take_values(self) -> list[channel.Value]:
        """Return the values to write, once."""
        values, self._values = self._values, []
        return values

    def begin(self, now: float) -> None:
        """Make the session ready, once the robot and its services are present; emit `Opened`."""
        self._received_at = now
        # DDS has no challenge, so the session goes straight to READY.
        self._transition(ChannelInput.RIGHT_ANSWER)

    def note_received(self, now: float) -> None:
        """Record that a message of the robot arrived."""
        self._received_at = now

    def silent_s(self, now: float) -> float:
        """Return for how many seconds the robot has been silent; 0 if the session is not ready."""
        return now - self._received_at if self.state is ChannelState.READY else 0.0

    def answer(self, response: rpc.RpcResponse, now: float) -> None:
        """Process a response. It may answer another client: all clients receive all responses."""
        if self.state is ChannelState.READY:
            self._received_at = now
            self._receive_answer(response, now)
        else:
            self.dropped["before the beginning or after the end"] += 1

    def _send_value(self, value: channel.Value) -> None:
        self._values.append(value)

    def _compute_loss_time(self) -> float:
        """Return when the peer counts as lost if nothing more arrives."""
        if self.state is ChannelState.READY:
            return self._received_at + self.timing.silence_s
        return self._opened_at + self.timing.connect_s
