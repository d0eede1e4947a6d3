"""rote demo --checklist: the verification list of document 000, step by step, frame by frame.

A simulated robot listens on a UDP port; each step is a frame that is sent to it and an answer that
is looked at. No session of rote is in between: what is checked is the wire.
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
_ANSWER_S = 3.0
_STATE_S = 30.0
"""Timeout for a state: a playback with its approach and return."""
_MOVED_RAD = 0.1
"""What a joint must move at least to count as moving."""


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """One line of the list, and what was found."""

    part: str
    """`step` or `sign`."""
    number: int
    text: str
    """What document 000 asks for, in our words."""
    passed: bool
    found: str

    def document(self) -> dict[str, Any]:
        """Return what `--json` shows."""
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
        """Whether all of it passed."""
        return all(one.passed for one in (*self.steps, *self.signs))

    def document(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        return {
            "passed": self.passed,
            "steps": [one.document() for one in self.steps],
            "signs": [one.document() for one in self.signs],
        }


class _Talk:
    """A client that sends single frames and collects the replies."""

    def __init__(self) -> None:
        self.link: Link | None = None
        self.replies = self.same_sequence = self.damaged = 0
        self.states: list[m.RobotState] = []
        """Since the last question."""
        self._sequence = 0
        self._asked: tuple[Frame, asyncio.Future[Frame]] | None = None
        self._wanted: tuple[Callable[[m.RobotState], bool], asyncio.Future[None]] | None = None

    def receive(self, datagram: bytes) -> None:
        """Take in a frame of the robot."""
        try:
            frame = teaching.decode(datagram)
            if frame.type == teaching.MessageType.STATE:
                self._report(teaching_state.decode_state(frame.payload))
                return
        except DecodeError:
            self.damaged += 1
            return
        if frame.type != teaching.MessageType.COMMAND or self._asked is None:
            return
        asked, answer = self._asked
        if frame.command == asked.command and not answer.done():
            self.replies += 1
            self.same_sequence += frame.sequence == asked.sequence
            answer.set_result(frame)

    def _report(self, state: m.RobotState) -> None:
        self.states.append(state)
        if self._wanted is not None and self._wanted[0](state) and not self._wanted[1].done():
            self._wanted[1].set_result(None)

    async def ask(self, request: m.Command) -> m.Reply | None:
        """Send one command and return its answer; None if there was none."""
        assert self.link is not None
        command, payload = teaching.encode_command(request)
        frame = Frame(command, self._sequence, payload)
        self._sequence += 1
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._asked = frame, answer
        self.states.clear()
        self.link.send(teaching.encode(frame))
        try:
            reply = await asyncio.wait_for(answer, _ANSWER_S)
            return teaching.decode_reply(reply.command, reply.payload)
        except (TimeoutError, DecodeError):
            return None

    async def see(self, matches: Callable[[m.RobotState], bool]) -> bool:
        """Wait until the robot reports such a state; False if it never does."""
        seen: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._wanted = matches, seen
        try:
            await asyncio.wait_for(seen, _STATE_S)
        except TimeoutError:
            return False
        return True


class Checklist:
    """Runs the list once, in the order of document 000: the action is played before 0x0E."""

    def __init__(self, show: Callable[[ChecklistItem], None]) -> None:
        self.result = ChecklistResult()
        self._show = show
        self._talk = _Talk()

    async def run(self, url: str) -> ChecklistResult:
        """Run all steps against the robot at a UDP address."""
        talk = self._talk
        talk.link = await udp.open_link(urlsplit(url), talk.receive)
        try:
            self._builder()
            await self._initialise()
            before = await self._list()
            soft = await self._enter()
            recorded = await self._record()
            listed = await self._save(before)
            played = await self._play(len(listed))
            await self._exit()
            self._signs(soft, recorded, NAME in listed, played)
            await talk.ask(m.ReleaseControl())
        finally:
            talk.link.close()
        return self.result

    def _step(self, text: str, passed: bool, found: str) -> bool:
        item = ChecklistItem("step", len(self.result.steps) + 1, text, passed, found)
        self.result.steps.append(item)
        self._show(item)
        return passed

    def _sign(self, text: str, passed: bool, found: str) -> None:
        item = ChecklistItem("sign", len(self.result.signs) + 1, text, passed, found)
        self.result.signs.append(item)
        self._show(item)

    def _builder(self) -> None:
        command, payload = teaching.encode_command(m.ListActions())
        made = teaching.encode(Frame(command, 1, payload))
        crc = int.from_bytes(made[-4:], "big")
        passed = crc == zlib.crc32(made[:-4]) and teaching.decode(made).payload == payload
        self._step("a packet builder with CRC32", passed, f"{len(made)} bytes, CRC 0x{crc:08x}")

    async def _initialise(self) -> None:
        commands: tuple[m.Command, ...] = (
            m.TakeControl(), m.SyncParameters(), m.Subscribe(all_joints=True), m.SignalReady(),
        )  # fmt: skip
        answers = [await self._talk.ask(one) for one in commands]
        self._step(
            "0x09 to 0x0C: initialisation",
            all(_done(one) for one in answers),
            ", ".join(_reply_text(one) for one in answers),
        )

    async def _list(self) -> tuple[str, ...]:
        names = _names(reply := await self._talk.ask(m.ListActions()))
        found = f"{len(names)} actions: {', '.join(names)}" if names else _reply_text(reply)
        self._step("0x1A: the list of actions", isinstance(reply, m.ActionList), found)
        return names

    async def _enter(self) -> bool:
        reply = await self._talk.ask(m.EnterTeaching(self._newest()))
        soft = _done(reply) and await self._talk.see(lambda state: state.arms_soft)
        size = len(teaching.encode_command(m.EnterTeaching(self._newest()))[1])
        arms = "soft" if soft else "stiff"
        found = f"{_reply_text(reply)}; {size} bytes of state; the arms are {arms}"
        self._step("0x0D with the full state: teaching mode", soft, found)
        return soft

    def _newest(self) -> m.RobotState | None:
        return self._talk.states[-1] if self._talk.states else None

    async def _record(self) -> bool:
        talk = self._talk
        started = await talk.ask(m.Record(True))
        runs = _done(started) and await talk.see(lambda state: state.recording)
        await talk.ask(m.MoveByHand("wave", round(MOTION_S * 1000)))
        await asyncio.sleep(MOTION_S + 0.3)
        moved = _largest_motion_rad(talk.states)
        stopped = await talk.ask(m.Record(False))
        ended = _done(stopped) and await talk.see(lambda state: not state.recording)
        found = (
            f"start: {_reply_text(started)}, stop: {_reply_text(stopped)}; moved {moved:.2f} rad"
        )
        return self._step("0x0F: recording on and off", runs and ended, found)

    async def _save(self, before: tuple[str, ...]) -> tuple[str, ...]:
        request = m.SaveAction(name=NAME, created_s=0, duration_ms=round((MOTION_S + 0.3) * 1000))
        reply = await self._talk.ask(request)
        names = _names(await self._talk.ask(m.ListActions()))
        there = names == (*before, NAME)
        found = f"{_reply_text(reply)}; {NAME!r} is {'' if there else 'not '}in the list"
        self._step("0x2B: save with a name", _done(reply) and there, found)
        return names

    async def _play(self, number: int) -> bool:
        talk = self._talk
        reply = await talk.ask(m.PlayAction(action=max(1, number)))
        played = False
        if _done(reply):
            played = await talk.see(lambda state: state.phase is m.Phase.PLAYING)
            played &= await talk.see(lambda state: not state.playing)
            played &= not talk.states[-1].stopped_early
        moved = _largest_motion_rad(
            [state for state in talk.states if state.phase is m.Phase.PLAYING]
        )
        played &= moved > _MOVED_RAD
        found = f"{_reply_text(reply)}; number {number} played, moved {moved:.2f} rad"
        return self._step(
            "0x41: replay the saved action", played, found if played else _reply_text(reply)
        )

    async def _exit(self) -> None:
        reply = await self._talk.ask(m.ExitTeaching())
        stiff = _done(reply) and await self._talk.see(lambda state: not state.arms_soft)
        found = f"{_reply_text(reply)}; the arms {'hold' if stiff else 'are soft'}"
        self._step("0x0E: exit teaching mode", stiff, found)

    def _signs(self, soft: bool, recorded: bool, listed: bool, played: bool) -> None:
        talk = self._talk
        same = f"{talk.same_sequence} of {talk.replies} replies"
        self._sign(
            "replies have the header and the sequence number of their request",
            0 < talk.same_sequence == talk.replies,
            same,
        )
        damaged = f"{talk.damaged} damaged frames"
        self._sign("CRC32 holds in every answer", talk.damaged == 0, damaged)
        self._sign("the robot becomes compliant", soft, "by its state frames")
        self._sign("recording starts and stops as told", recorded, "by its state frames")
        self._sign("the saved action is in the list", listed, "by the reply to 0x1A")
        self._sign("the action plays when asked for", played, "by its state frames")


def _done(reply: m.Reply | None) -> bool:
    return isinstance(reply, m.Status) and reply.code == m.Code.OK


def _reply_text(reply: m.Reply | None) -> str:
    if reply is None:
        return "no answer"
    if isinstance(reply, m.Status) and reply.code:
        return f"refused with {reply.code:d}: {m.explain(reply.code)[0]}"
    return "0"


def _names(reply: m.Reply | None) -> tuple[str, ...]:
    return tuple(one.name for one in reply.actions) if isinstance(reply, m.ActionList) else ()


def _largest_motion_rad(states: list[m.RobotState]) -> float:
    """Return how far the joint that moved most has moved, in rad."""
    columns = zip(*(state.joints_rad for state in states), strict=True)
    return max((max(column) - min(column) for column in columns), default=0.0)
