"""Streamed poses: which of them belong to the stream that was begun, and are news."""

from typing import NamedTuple

from rote import messages as m


class Told(NamedTuple):
    """The client says `command`, and expects no answer."""

    command: m.Command


class PoseStream:
    """The stream of one conversation, as either end knows it: a request that was answered well."""

    def __init__(self) -> None:
        self.begun: int | None = None
        """The request that began it; poses bear its number. None when there is no stream."""
        self._asked: int | None = None
        self._newest = -1

    def heed(self, token: int, message: m.Command) -> None:
        """Something is asked for: maybe a stream, until whose answer an older one goes on; or a
        stop, after which no more poses are taken."""
        if isinstance(message, m.BeginStream):
            self._asked = token
        elif isinstance(message, m.StopMotion):
            self.begun = self._asked = None

    def answer(self, token: int, reply: m.Reply) -> None:
        """A request was answered, maybe the one for a stream."""
        if token == self._asked:
            self._asked = None
            if isinstance(reply, m.Status) and reply.code == m.Code.OK:
                self.begun, self._newest = token, -1

    def problem(self, token: int, number: int) -> str:
        """Return why a pose is not to be followed; "" where it is, which makes older ones stale."""
        if token != self.begun:
            return "pose of no stream"
        if number <= self._newest:
            return "stale pose"
        self._newest = number
        return ""
