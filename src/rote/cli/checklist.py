"""rote demo --checklist: the verification list of document 000, step by step, frame by frame.

Each step sends a frame to a simulated robot on a UDP port and checks the answer. It uses no session
of rote, so that only the frames themselves are checked.
"""

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rote import messages as m
from rote.errors import DecodeError
from rote.transport.udp import link as udp
from rote.wire.teaching import codec as teaching
from rote.wire.teaching import state as teaching_state
from rote.wire.teaching.codec import Frame

if TYPE_CHECKING:
    from rote.transport.link import Link

NAME = "checklist_wave"
MOTION_S = 2.0
_ANSWER_TIMEOUT_S = 3.0
_STATE_TIMEOUT_S = 30.0
"""Long enough for a playback with its approach and return."""
_MIN_MOTION_RAD = 0.1
"""Smallest motion of a joint that counts as moving."""


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """One line of the list, and its result."""

    part: str
    """`step` or `sign`."""
    number: int
    text: str
    """What document 000 requires."""
    passed: bool
    found: str

    def document(self) -> dict[str, Any]:
        """Return the JSON document of `--json`."""
        return {
            "number": self.number,
            "text": self.text,
            "passed": self.passed,
            "found": self.found,
        }


@dataclass(slots=True)
class ChecklistResult:
    """Both parts of the list: eight steps and six signs of success."""

    steps: list[ChecklistItem] = field(default_factory=list)
    signs: list[ChecklistItem] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether all steps and signs passed."""
        return all(item.passed for item in (*self.steps, *self.signs))

    def document(self) -> dict[str, Any]:
        """Return the JSON document of `--json`."""
        return {
            "passed": self.passed,
            "steps": [item.document() for item in self.steps],
            "signs": [item.document() for item in self.signs],
        }


class _FrameClient:
    """A client that sends single frames and collects the replies."""

    def __init__(self) -> None:
        self.link: Link | None = None
        self.replies = 0
        self.same_sequence = 0
        """Number of replies with the sequence number of their request."""
        self.damaged = 0
        """Number of frames that could not be decoded."""
        self.states: list[m.RobotState] = []
        """Received since the last request."""
        self._sequence = 0
        self._pending_request: tuple[Frame, asyncio.Future[Frame]] | None = None
        """The last request, and the future for its reply."""
        self._awaited_state: tuple[Callable[[m.RobotState], bool], asyncio.Future[None]] | None = (
            None
        )
        """The test of `wait_for_state`, and the future for a state that passes it."""

    def receive(self, datagram: bytes) -> None:
        """Decode a frame from the robot; keep a state, or pass a reply to its request."""
        try:
            frame = teaching.decode(datagram)
            if frame.type == teaching.MessageType.STATE:
                self._handle_state(teaching_state.decode_state(frame.payload))
                return
        except DecodeError:
            self.damaged += 1
            return
        if frame.type != teaching.MessageType.COMMAND or self._pending_request is None:
            return
        request, answer = self._pending_request
        if frame.command == request.command and not answer.done():
            self.replies += 1
            self.same_sequence += frame.sequence == request.sequence
            answer.set_result(frame)

    def _handle_state(self, state: m.RobotState) -> None:
        self.states.append(state)
        if self._awaited_state is not None:
            matches, reported = self._awaited_state
            if matches(state) and not reported.done():
                reported.set_result(None)

    async def request(self, request: m.Command) -> m.Reply | None:
        """Send one command and return its answer; None on timeout."""
        assert self.link is not None
        command, payload = teaching.encode_command(request)
        frame = Frame(command, self._sequence, payload)
        self._sequence += 1
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._pending_request = frame, answer
        self.states.clear()
        self.link.send(teaching.encode(frame))
        try:
            reply = await asyncio.wait_for(answer, _ANSWER_TIMEOUT_S)
            return teaching.decode_reply(reply.command, reply.payload)
        except (TimeoutError, DecodeError):
            return None

    async def wait_for_state(self, matches: Callable[[m.RobotState], bool]) -> bool:
        """Wait until the robot reports a matching state; return False on timeout."""
        reported: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited_state = matches, reported
        try:
            await asyncio.wait_for(reported, _STATE_TIMEOUT_S)
        except TimeoutError:
            return False
        return True


class Checklist:
    """Runs the verification list of document 000 once, in its order: it plays before it exits."""

    def __init__(self, show: Callable[[ChecklistItem], None]) -> None:
        self.result = ChecklistResult()
        self._show = show
        self._client = _FrameClient()

    async def run(self, url: str) -> ChecklistResult:
        """Run all steps against the robot at a UDP address."""
        client = self._client
        client.link = await udp.open_link(urlsplit(url), client.receive)
        try:
            self._check_encoding()
            await self._check_initialisation()
            names_before = await self._check_list()
            became_soft = await self._check_entering()
            was_recorded = await self._check_recording()
            names_after = await self._check_saving(names_before)
            was_played = await self._check_playing(len(names_after))  # the newest is the last one
            await self._check_exiting()
            self._add_signs(
                became_soft=became_soft,
                was_recorded=was_recorded,
                is_listed=NAME in names_after,
                was_played=was_played,
            )
            await client.request(m.ReleaseControl())
        finally:
            client.link.close()
        return self.result

    def _add_step(self, text: str, passed: bool, found: str) -> bool:
        item = ChecklistItem("step", len(self.result.steps) + 1, text, passed, found)
        self.result.steps.append(item)
        self._show(item)
        return passed

    def _add_sign(self, text: str, passed: bool, found: str) -> None:
        item = ChecklistItem("sign", len(self.result.signs) + 1, text, passed, found)
        self.result.signs.append(item)
        self._show(item)

    def _check_encoding(self) -> None:
        command, payload = teaching.encode_command(m.ListActions())
        data = teaching.encode(Frame(command, 1, payload))
        crc = int.from_bytes(data[-4:], "big")
        passed = crc == zlib.crc32(data[:-4]) and teaching.decode(data).payload == payload
        self._add_step("a packet builder with CRC32", passed, f"{len(data)} bytes, CRC 0x{crc:08x}")

    async def _check_initialisation(self) -> None:
        commands: tuple[m.Command, ...] = (
            m.TakeControl(), m.SyncParameters(), m.Subscribe(all_joints=True), m.SignalReady(),
        )  # fmt: skip
        answers = [await self._client.request(command) for command in commands]
        self._add_step(
            "0x09 to 0x0C: initialisation",
            all(_is_ok(answer) for answer in answers),
            ", ".join(_describe_reply(answer) for answer in answers),
        )

    async def _check_list(self) -> tuple[str, ...]:
        """Return the names of the stored actions."""
        reply = await self._client.request(m.ListActions())
        names = _list_action_names(reply)
        found = f"{len(names)} actions: {', '.join(names)}" if names else _describe_reply(reply)
        self._add_step("0x1A: the list of actions", isinstance(reply, m.ActionList), found)
        return names

    async def _check_entering(self) -> bool:
        """Enter teaching mode; return whether the arms became soft."""
        reply = await self._client.request(m.EnterTeaching(self._get_latest_state()))
        became_soft = _is_ok(reply) and await self._client.wait_for_state(
            lambda state: state.arms_soft
        )
        _, payload = teaching.encode_command(m.EnterTeaching(self._get_latest_state()))
        arms = "soft" if became_soft else "stiff"
        found = f"{_describe_reply(reply)}; {len(payload)} bytes of state; the arms are {arms}"
        self._add_step("0x0D with the full state: teaching mode", became_soft, found)
        return became_soft

    def _get_latest_state(self) -> m.RobotState | None:
        return self._client.states[-1] if self._client.states else None

    async def _check_recording(self) -> bool:
        """Record a motion; return whether the robot began and ended the recording on command."""
        client = self._client
        started = await client.request(m.Record(True))
        started_recording = _is_ok(started) and await client.wait_for_state(
            lambda state: state.recording
        )
        await client.request(m.MoveByHand("wave", round(MOTION_S * 1000)))
        await asyncio.sleep(MOTION_S + 0.3)
        moved = _compute_largest_motion_rad(client.states)
        stopped = await client.request(m.Record(False))
        stopped_recording = _is_ok(stopped) and await client.wait_for_state(
            lambda state: not state.recording
        )
        found = (
            f"start: {_describe_reply(started)}, stop: {_describe_reply(stopped)}; "
            f"moved {moved:.2f} rad"
        )
        return self._add_step(
            "0x0F: recording on and off", started_recording and stopped_recording, found
        )

    async def _check_saving(self, names_before: tuple[str, ...]) -> tuple[str, ...]:
        """Save the recording; return all action names, which must be `names_before` and its own."""
        request = m.SaveAction(name=NAME, created_s=0, duration_ms=round((MOTION_S + 0.3) * 1000))
        reply = await self._client.request(request)
        names = _list_action_names(await self._client.request(m.ListActions()))
        is_listed = names == (*names_before, NAME)
        found = f"{_describe_reply(reply)}; {NAME!r} is {'' if is_listed else 'not '}in the list"
        self._add_step("0x2B: save with a name", _is_ok(reply) and is_listed, found)
        return names

    async def _check_playing(self, number: int) -> bool:
        """Play the action of this number in the robot's list; return whether its joints moved."""
        client = self._client
        reply = await client.request(m.PlayAction(action=max(1, number)))
        played = False
        if _is_ok(reply):
            played = await client.wait_for_state(lambda state: state.phase is m.Phase.PLAYING)
            played &= await client.wait_for_state(lambda state: not state.playing)
            played &= not client.states[-1].stopped_early
        # The approach and the return move the joints, too, and do not count.
        moved = _compute_largest_motion_rad(
            [state for state in client.states if state.phase is m.Phase.PLAYING]
        )
        played &= moved > _MIN_MOTION_RAD
        found = f"{_describe_reply(reply)}; number {number} played, moved {moved:.2f} rad"
        return self._add_step(
            "0x41: replay the saved action", played, found if played else _describe_reply(reply)
        )

    async def _check_exiting(self) -> None:
        reply = await self._client.request(m.ExitTeaching())
        holds = _is_ok(reply) and await self._client.wait_for_state(
            lambda state: not state.arms_soft
        )
        found = f"{_describe_reply(reply)}; the arms {'hold' if holds else 'are soft'}"
        self._add_step("0x0E: exit teaching mode", holds, found)

    def _add_signs(
        self, *, became_soft: bool, was_recorded: bool, is_listed: bool, was_played: bool
    ) -> None:
        """Add the signs of success in the list, which follow from the steps."""
        client = self._client
        same = f"{client.same_sequence} of {client.replies} replies"
        self._add_sign(
            "replies have the header and the sequence number of their request",
            0 < client.same_sequence == client.replies,
            same,
        )
        damaged = f"{client.damaged} damaged frames"
        self._add_sign("CRC32 holds in every answer", client.damaged == 0, damaged)
        self._add_sign("the robot becomes compliant", became_soft, "by its state frames")
        self._add_sign("recording starts and stops on command", was_recorded, "by its state frames")
        self._add_sign("the saved action is in the list", is_listed, "by the reply to 0x1A")
        self._add_sign("the action plays on request", was_played, "by its state frames")


def _is_ok(reply: m.Reply | None) -> bool:
    return isinstance(reply, m.Status) and reply.code == m.Code.OK


def _describe_reply(reply: m.Reply | None) -> str:
    if reply is None:
        return "no answer"
    if isinstance(reply, m.Status) and reply.code:
        return f"refused with {reply.code:d}: {m.explain(reply.code)[0]}"
    return "0"


def _list_action_names(reply: m.Reply | None) -> tuple[str, ...]:
    return tuple(action.name for action in reply.actions) if isinstance(reply, m.ActionList) else ()


def _compute_largest_motion_rad(states: list[m.RobotState]) -> float:
    """Return how far the joint that moved most has moved, in rad."""
    columns = zip(*(state.joints_rad for state in states), strict=True)
    return max((max(column) - min(column) for column in columns), default=0.0)
