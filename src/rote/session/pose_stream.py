"""Streamed poses: accepts those of the current stream that are newer than the last."""

from typing import NamedTuple

from rote import messages as m


class PoseReceived(NamedTuple):
    """The client sent a streamed pose; no answer is expected."""

    command: m.Command


class PoseStream:
    """The stream of one session, on either end: a request that was accepted."""

    def __init__(self) -> None:
        self.begun: int | None = None
        """The request that began it; its poses carry the same number. None if there is no
        stream.
        """
        self._requested: int | None = None
        self._newest = -1

    def on_request(self, token: int, message: m.Command) -> None:
        """Process a request. It may request a stream: an older one continues until the reply. It
        may be a stop: then no more poses are accepted.
        """
        if isinstance(message, m.BeginStream):
            self._requested = token
        elif isinstance(message, m.StopMotion):
            self.begun = self._requested = None

    def on_reply(self, token: int, reply: m.Reply) -> None:
        """Process a reply, which may accept a stream."""
        if token == self._requested:
            self._requested = None
            if isinstance(reply, m.Status) and reply.code == m.Code.OK:
                self.begun, self._newest = token, -1

    def reject_reason(self, token: int, number: int) -> str:
        """Return why a pose is rejected; "" if it is accepted, and older ones become stale."""
        if token != self.begun:
            return "pose of no stream"
        if number <= self._newest:
            return "stale pose"
        self._newest = number
        return ""
