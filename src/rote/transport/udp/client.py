"""The asyncio client of a teaching session: links, timers, requests and answers."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from rote import messages as m
from rote.errors import CautionError, LinkError, RefusedError
from rote.model.family import Build, numbered_build
from rote.model.g1 import G1
from rote.session.arm_stream import PoseReceived
from rote.session.events import (
    Event,
    Opened,
    OpenRefused,
    PeerLost,
    Replied,
    Reported,
    Unanswered,
)
from rote.session.teaching import Role, TeachingSession, TeachingTiming
from rote.transport.base_client import (
    BaseClient,
    StateFeed,
    StateListener,
    ThreadSafeSender,
    make_unanswered_error,
)
from rote.transport.link import Link, Receiver
from rote.transport.udp.link import UdpLink
from rote.transport.wires import FRAMES, unsupported
from rote.wire.teaching.codec import encode_pose

ConnectLink = Callable[[Receiver], Awaitable[Link]]


class TeachingClient(BaseClient[m.Reply]):
    """A client of one robot, by teaching frames over any link."""

    abilities = FRAMES
    arms_hold_within_s = 14
    stop_reason = ""

    def __init__(
        self,
        url: str,
        timing: TeachingTiming | None = None,
        *,
        build: Build | None = None,
        reconnect: bool = False,
    ) -> None:
        super().__init__(url, reconnect=reconnect)
        self.latest: m.RobotState | None = None
        """The newest state of the robot."""
        self.build = build or G1.default
        """Which robot it is. If it was not named, the number of joints in the first state decides;
        until then it is the default G1.
        """
        self.recognised = build is not None
        self.build_note = ""
        """How the robot's states contradict the build; empty if they do not."""
        self._states = StateFeed()
        self.session = TeachingSession(Role.CLIENT, timing=timing)
        self._connect_link: ConnectLink | None = None
        self.link: Link | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The joints whose positions the robot does not report: always none on this wire."""
        return ()

    @property
    def clockless(self) -> bool:
        """Whether the robot reports no time, so that states have this computer's time."""
        return self.session.clockless

    async def open(self, connect_link: ConnectLink) -> None:
        """Open the link and the session; raises `NoAnswerError` if no robot answers in time."""
        self._connect_link = connect_link
        try:
            await self._connect()
        except BaseException:
            await self.close()
            raise

    @property
    def sequence(self) -> int:
        """The sequence number of the next frame."""
        return self.session.sequence

    @property
    def socket(self) -> Any:
        """The UDP socket; None for a robot in this process."""
        return getattr(self.link, "socket", None)

    @property
    def _is_live(self) -> bool:
        return self.session.live

    async def _connect(self) -> None:
        assert self._connect_link is not None
        self.session = TeachingSession(Role.CLIENT, timing=self.session.timing)
        self.link = await self._connect_link(self._receive)
        self.session.open(self.now())
        self._flush()
        await self._opened
        if self.stop_pending:
            await self.confirm_stop(self._request(m.StopMotion()))

    async def _disconnect(self) -> None:
        if self.link is not None:
            self.link.close()

    def on_state(self, listener: StateListener) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return self._states.on_state(listener)

    def on_topic(self, topic: str, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Raise `UnsupportedError`: frames have no topics."""
        raise unsupported("listen to topics", self.wire, "topics")

    async def ask(self, command: m.Command) -> m.Reply:
        """Send a command and return the robot's reply."""
        if self._failure is not None:
            if isinstance(command, m.StopMotion):
                self.mark_stop_pending()
            raise self._failure
        if isinstance(command, m.BeginStream | m.ChangeMode) and self.build_note:
            raise CautionError(
                f"rote does not move a machine that it does not know: {self.build_note}",
                "If you know its build, append it to the address: ?build=NAME.",
            )
        if isinstance(command, m.DiscardRecording):
            return m.Status()  # leaving teaching stored nothing, so there is nothing to delete
        if isinstance(command, m.StopMotion):
            return await self.confirm_stop(self._request(command))
        try:
            return await self._request(command)
        except LinkError:
            if isinstance(command, m.ExitTeaching):
                self.mark_stop_pending()  # the arms may still be soft
            raise

    async def _request(self, command: m.Command) -> m.Reply:
        return await self._wait_for_answer(self.session.request(command, self.now()))

    def ready(self, poses: Sequence[m.StreamPose]) -> Callable[[int], bool]:
        """Return a function that sends one of `poses` to the stream that was begun, by its index.

        The function sends nothing and returns False after a stop was requested or the robot was
        lost.
        """
        session, stream, link = self.session, self.session.stream, self.link
        if stream is None or link is None:
            return lambda _: False
        # A UDP socket can send poses from any thread.
        send = link.thread_socket().send if isinstance(link, UdpLink) else link.send

        def send_pose(index: int) -> bool:
            if self.session is not session or session.stream != stream or self._failure is not None:
                return False
            send(encode_pose(poses[index], stream))
            return True

        return ThreadSafeSender(send_pose) if isinstance(link, UdpLink) else send_pose

    async def close(self) -> None:
        """Tell the robot that the client leaves, and close the link. Safe to call twice."""
        await self._stop_reconnecting()
        self.session.close(self.now())
        self._flush()
        self._alarm.clear()
        self._fail(LinkError("the connection was closed", "Connect again."))
        await self._disconnect()

    # ---- the loop around the session ------------------------------------------------------------

    def _receive(self, datagram: bytes) -> None:
        self.session.receive(datagram, self.now())
        self._flush()

    def _tick(self) -> None:
        self.session.tick(self.now())
        self._flush()

    def _flush(self) -> None:
        for event in self.session.events():
            self._handle_event(event)
        datagrams = self.session.outgoing()
        if self.link is not None:
            for datagram in datagrams:
                self.link.send(datagram)
        # Setting the timer costs more than one idle tick of a timer that fires too early. So it is
        # set again only if a message sent just now may have to be repeated before it fires.
        first_retry_at = self._loop.time() + self.session.timing.retry_s
        is_set = self._alarm.due != float("inf")
        if not is_set or (datagrams and self._alarm.due > first_retry_at):
            self._set_alarm(self.session.due)

    def _handle_event(self, event: Event | PoseReceived) -> None:
        if isinstance(event, Reported):
            self._publish_state(event.state)
        elif isinstance(event, Replied):
            self._resolve_request(event.token, event.reply)
        elif isinstance(event, Unanswered):
            self._resolve_request(event.token, make_unanswered_error(event.waited_s))
        elif isinstance(event, Opened):
            self._mark_opened()
        elif isinstance(event, OpenRefused):
            self._fail(RefusedError(event.code, *m.explain(event.code)))
        elif isinstance(event, PeerLost):
            self._handle_loss(event.silence_s)

    def _handle_loss(self, silence_s: float) -> None:
        if self.session.keeps_teaching:
            self.mark_stop_pending()  # the arms may still be soft
        was_connected = self._opened.done()
        self._fail(self._make_loss_error(silence_s))
        if was_connected:
            self._start_reconnecting()

    def _publish_state(self, state: m.RobotState) -> None:
        if self.latest is None:
            self._recognise(len(state.joints_rad))
        self.latest = state
        self._states.notify(state)

    def _recognise(self, joint_count: int) -> None:
        """Choose the build by the number of joints, because teaching frames do not name it.

        If the URL names a build, only note whether it contradicts the number.
        """
        if not self.recognised:
            matching = [build for build in G1.builds if len(build.names) == joint_count]
            self.build = matching[0] if matching else numbered_build(joint_count, 0)
            self.recognised = bool(matching)
            self.build_note = "" if matching else f"no G1 has {joint_count} joints"
        elif len(self.build.names) != joint_count:
            named = f"{self.build.name} has {len(self.build.names)} joints"
            self.build_note = f"{named}, but the robot reports {joint_count}"
