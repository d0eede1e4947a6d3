"""Streamed poses: which of them belong to the current stream, and are newer than the last."""

from typing import NamedTuple

from rote import messages as m


class PoseReceived(NamedTuple):
    """The client sends `command` and expects no answer."""

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
        """Note a request. It may ask for a stream: an older one goes on until the answer. It may be
        a stop: then no more poses are accepted.
        """
        if isinstance(message, m.BeginStream):
            self._requested = token
        elif isinstance(message, m.StopMotion):
            self.begun = self._requested = None

    def on_reply(self, token: int, reply: m.Reply) -> None:
        """Note an answer, which may accept a stream."""
        if token == self._requested:
            self._requested = None
            if isinstance(reply, m.Status) and reply.code == m.Code.OK:
                self.begun, self._newest = token, -1

    def reject_reason(self, token: int, number: int) -> str:
        """Return why a pose is not followed; "" if it is, and then older ones are stale."""
        if token != self.begun:
            return "pose of no stream"
        if number <= self._newest:
            return "stale pose"
        self._newest = number
        return ""
