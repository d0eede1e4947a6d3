"""A show that is under way: its sections one after the other, each when its trigger comes."""

import asyncio
import datetime
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rote.errors import BadRequestError
from rote.session.stage_events import (
    ComputerSuspended,
    ConductorEvent,
    ConductorStalled,
    SectionCommitted,
    SectionEnded,
    StopBegan,
    Superseded,
)
from rote.stage.conductor import Conductor, SectionError, SupersededError
from rote.stage.cues import CueState, CueStatus, find_lamp
from rote.stage.osc_remote import OscRemote
from rote.stage.own_cues import OwnCues
from rote.stage.report import SectionReport
from rote.stage.section_time import SectionTime
from rote.stage.show.check import CheckedShow
from rote.stage.show.file import (
    Cast,
    Section,
    Trigger,
    TriggerKind,
    describe_trigger,
    find_droppable,
)
from rote.stage.show.score import HOLD_PADDING_S, Score
from rote.stage.show_files import ShowSounds

_START_DELAY_S = 0.1
"""Delay from its trigger to the start of a section without robots, in seconds."""
_HOLD_DELAY_S, _HOLD_LATEST_S = 0.05, 0.3
"""Delays after the end of the motions at which their last poses are held: first and last try."""
_WORD_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class PreparedShow:
    """A show that can be played, and how it is played."""

    checked: CheckedShow
    cast: Cast
    sounds: ShowSounds
    pace: float
    """0.5 is half speed."""
    motion: bool
    """Whether the robots move; otherwise only the cues are played."""
    automatic: bool
    """Whether nothing waits for GO, not even a section that holds its last poses."""

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections in their order."""
        return self.checked.show.sections

    @property
    def droppable(self) -> frozenset[str]:
        """The robots without which the show goes on when they are lost."""
        return find_droppable(self.checked.show, self.cast)

    def select_scores(self, section: Section) -> dict[str, Score]:
        """Return each role's score in a section; the conductor's own has the role ""."""
        scores = {}
        for (name, role), score in self.checked.scores.items():
            if name == section.name:
                paced = score.at_pace(self.pace)
                paced = paced if self.motion else paced.without_motion()
                if not paced.empty:
                    scores[role] = paced
        return scores

    def duration_s(self, section: Section) -> float:
        """Return the duration of a section at this pace, as far as it is known."""
        scores = self.checked.scores.items()
        durations_s = [score.duration_s for (name, _), score in scores if name == section.name]
        return max(durations_s, default=0.0) / self.pace


@dataclass(slots=True, eq=False)
class _Cursor:
    """The position in the show: the section that plays, or that begins next."""

    index: int
    section: Section
    trigger: Trigger
    """What begins it."""
    start_s: float | None = None
    """When it begins, or has begun; None before that is known."""
    time: SectionTime | None = None
    """Its time, from the first time that it is played."""
    cues: "asyncio.Task[Any] | None" = None
    """This computer's own cues, while it plays."""
    holds_end: bool = False
    """Whether the robots hold their last poses until GO."""

    @property
    def playing(self) -> bool:
        return self.cues is not None


class ShowRun:
    """Plays a show on the agents of a conductor, and carries out what the operator selects."""

    def __init__(
        self,
        show: PreparedShow,
        conductor: Conductor,
        own_cues: OwnCues,
        osc: OscRemote,
        notify_user: Callable[[str], None],
        *,
        muted: set[str],
        endings: int,
    ) -> None:
        """`muted` are the robots that take no part; it changes while the show is played.

        `endings` is the session's number of `endings` when the show was requested.
        """
        self._show, self._conductor, self._muted = show, conductor, muted
        self._own_cues, self._osc, self._notify_user = own_cues, osc, notify_user
        self._loop = asyncio.get_running_loop()
        self._cursor = _Cursor(0, Section(""), Trigger())  # `sections` begins with the first one
        self._go_given = asyncio.Event()
        self._go_begins_next = False
        """Whether the GO that ended a hold also begins the next section."""
        self._selected_index: int | None = None
        """The index of the section that BACK, a jump or a skip has selected."""
        self._section_selected = asyncio.Event()
        self._endings_at_go = self._known_ending_count = endings
        """Number of stops and cancels when the show began, or last continued by a trigger or GO."""

    # ---- commands of the operator -----------------------------------------------------------

    def go(self) -> None:
        """Begin the section that waits for GO, or let a paused one go on."""
        if self._conductor.session.section.is_paused:
            self.resume()
            self._go_begins_next = self._cursor.holds_end
        else:
            self._endings_at_go = self._conductor.session.endings
            self._go_given.set()

    def pause(self) -> None:
        """Pause the section that plays. Raises `BadRequestError` if it cannot be paused now."""
        self._conductor.pause()
        self._follow_holds()

    def resume(self) -> None:
        """Let a paused section go on.

        Raises `BadRequestError` if a robot does not hold its pose.
        """
        self._conductor.resume()
        self._follow_holds()

    def _follow_holds(self) -> None:
        """Pause this computer's own cues and sounds like the robots, or let them go on."""
        holds = self._conductor.holds
        if self._cursor.time is not None:
            self._cursor.time.holds = holds
        self._own_cues.follow_hold(holds[-1])

    def back(self) -> None:
        """Select the previous section, or the one that plays again."""
        index, playing = self._cursor.index, self._cursor.playing
        self._select_section(index if playing else max(0, index - 1), "BACK")

    def skip(self) -> None:
        """Select the next section."""
        self._select_section(self._cursor.index + 1, "a skip")

    def jump(self, section: str) -> None:
        """Select a section by its name. Raises `BadRequestError` for an unknown one."""
        self._select_section(self._show.checked.show.find_section(section), "a jump")

    def finish(self) -> None:
        """End the show; a section that plays ends softly."""
        self._select_section(len(self._show.sections), "the end of the show")

    def _select_section(self, index: int, by: str) -> None:
        """Select the section that waits for GO next; one that plays ends softly."""
        self._selected_index = index
        self._section_selected.set()
        if self._cursor.cues is not None:
            self._cursor.cues.cancel()
            self._conductor.cancel(f"ended by {by}")

    def mute(self, robot: str, *, muted: bool) -> None:
        """Let a robot take no part, or again from the next section on.

        Raises `BadRequestError` for a robot that is not in the cast.
        """
        robots = self._show.cast.robots.values()
        if robot not in robots:
            raise BadRequestError(
                f"the robot {robot!r:.60} is not in the cast",
                f"In the cast: {', '.join(sorted(robots))}.",
            )
        if muted:
            self._muted.add(robot)
            self._conductor.leave_out(robot)
        else:
            self._muted.discard(robot)
        self._publish_position()

    def _publish_position(self) -> None:
        """Publish the position in the show, for a standby that takes over."""
        self._conductor.show_section(self._cursor.section.name, self._muted)

    @property
    def status(self) -> CueStatus:
        """What a cue list shows."""
        cursor, sections = self._cursor, self._show.sections
        held_s = 0.0 if cursor.time is None else cursor.time.held_s
        elapsed_s = None if cursor.start_s is None else self._loop.time() - cursor.start_s - held_s
        if self._conductor.active_stop is not None:
            state = CueState.STOPPED
        elif not cursor.playing:
            state = CueState.WAITING
        elif self._conductor.session.section.is_paused:
            state = CueState.PAUSED
        elif elapsed_s is None or elapsed_s < 0.0:
            state = CueState.STARTING
        else:
            state = CueState.PLAYING
        is_playing = state in (CueState.PLAYING, CueState.PAUSED) and elapsed_s is not None
        left_s = self._show.duration_s(cursor.section) - (elapsed_s or 0.0)
        following = sections[cursor.index + 1 : cursor.index + 2]
        return CueStatus(
            state,
            cursor.section.name,
            following[0].name if following else "",
            describe_trigger(cursor.trigger) if state is CueState.WAITING else "",
            elapsed_s if is_playing else None,
            max(0.0, left_s) if is_playing else None,
            {
                name: find_lamp(
                    self._conductor.agents.get(name),
                    alive=self._conductor.alive(name),
                    muted=name in self._muted,
                    stop=self._conductor.active_stop,
                )
                for name in sorted(self._show.cast.robots.values())
            },
        )

    # ---- the show ---------------------------------------------------------------------------

    async def sections(
        self,
        first: int,
        *,
        begun: bool,
        is_selected: bool,
        on_interrupted: Callable[[SectionError], None] | None,
    ) -> AsyncIterator[SectionReport]:
        """Play from the section `first` on; BACK, jumps and skips select another one.

        A section that a person selected, or that was interrupted, begins only with GO. Only a
        section that every robot completed is followed by another pass or section. A stop before a
        section, for example at the end of the previous one, interrupts it, too.
        """
        index, sections = first, self._show.sections
        ended_s = self._loop.time()
        while index < len(sections):
            section = sections[index]
            trigger = Trigger() if is_selected else section.start
            cursor = self._cursor = _Cursor(index, section, trigger)
            self._publish_position()
            self._selected_index = None
            self._section_selected.clear()
            if self._go_begins_next and trigger.on is TriggerKind.GO and not is_selected:
                begun = True
            self._go_begins_next = False
            try:
                if is_selected or not (self._show.automatic or begun):
                    await self._wait_for_trigger(cursor, ended_s)
                begun = False
                scores = self._show.select_scores(section)
                for number in range(section.loop):
                    if self._section_selected.is_set():
                        break
                    self._require_no_ending(section)
                    report = await self._play_section(cursor, scores)
                    yield report
                    ended_s = self._loop.time()
                    is_last = (number + 1, index + 1) == (section.loop, len(sections))
                    _require_completed(report, self._show.droppable, is_followed=not is_last)
            except SectionError as error:
                self._conductor.require_conducting()
                ended_s = self._loop.time()
                if not self._section_selected.is_set():
                    if on_interrupted is None:
                        raise
                    self._selected_index = index
                if on_interrupted is not None:
                    on_interrupted(error)
            is_selected = self._selected_index is not None
            index = index + 1 if self._selected_index is None else self._selected_index

    def _require_no_ending(self, section: Section) -> None:
        """Raise `SectionError` if a stop or cancel came after a person let the show go on."""
        if self._conductor.session.endings != self._known_ending_count:
            raise SectionError(section.name, "it was stopped before it began")

    async def _wait_for_trigger(self, cursor: _Cursor, ended_s: float) -> None:
        """Wait for the trigger of a section, or for GO, which begins any section; return as well
        if another section is selected.

        Raises `SectionError` if a stop begins meanwhile: nothing begins by itself after a stop.
        Raises it as well if this computer is suspended or this process stalls while it waits for
        anything but GO, because the section would begin late and unexpectedly.
        """
        trigger, section = cursor.trigger, cursor.section
        waits_for_go = trigger.on is TriggerKind.GO
        self._conductor.require_conducting()
        if not waits_for_go:
            self._require_no_ending(section)
        self._go_given.clear()
        if trigger.on is not TriggerKind.AFTER:
            self._notify_user(f"section {section.name!r} waits for {describe_trigger(trigger)}")
        stopped: asyncio.Future[None] = self._loop.create_future()

        def handle_event(event: ConductorEvent) -> None:
            if stopped.done():
                return
            if isinstance(event, Superseded):
                stopped.set_exception(SupersededError(section.name))
            elif (reason := _explain_interruption(event)) and (
                isinstance(event, StopBegan) or not waits_for_go
            ):
                stopped.set_exception(SectionError(section.name, reason))

        remove_listener = self._conductor.on_event(handle_event)
        futures: list[asyncio.Future[Any]] = [
            stopped,
            asyncio.ensure_future(self._go_given.wait()),
            asyncio.ensure_future(self._section_selected.wait()),
        ]
        if not waits_for_go:
            triggered = _wait_for_other_trigger(trigger, ended_s, self._conductor, self._osc)
            futures.append(asyncio.ensure_future(triggered))
        try:
            done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
            is_go = self._go_given.is_set()  # a stop may have come after it
            now = self._conductor.session.endings
            self._known_ending_count = self._endings_at_go if is_go else now
        finally:
            remove_listener()
            for each in futures:
                each.cancel()

    # ---- a section --------------------------------------------------------------------------

    async def _play_section(self, cursor: _Cursor, scores: Mapping[str, Score]) -> SectionReport:
        """Play one pass of a section, on the robots and on this computer; return its report."""
        parts, left_out = self._select_parts(scores)
        start: asyncio.Future[float] = self._loop.create_future()

        def handle_event(event: ConductorEvent) -> None:
            if isinstance(event, SectionCommitted) and not start.done():
                start.set_result(event.start_s)
                cursor.start_s = event.start_s
            elif reason := _explain_interruption(event):
                interruptions.append(reason)
                cues.cancel()

        interruptions: list[str] = []
        remove_listener = self._conductor.on_event(handle_event)
        cursor.start_s, cursor.holds_end = None, False
        time = cursor.time = SectionTime(self._loop.time)
        cues = self._loop.create_task(
            self._own_cues.play(scores.get(""), start, self._show.sounds, time)
        )
        cursor.cues = cues
        hold_task = self._loop.create_task(self._hold_end(cursor, time, parts, start))
        try:
            played = await self._play_parts(cursor, parts, start)
            if time.is_paused:  # no robot is left to go on, so later cues are never due
                cues.cancel()
            await asyncio.wait({cues})
            if cues.cancelled():
                raise SectionError(cursor.section.name, _explain_ending(interruptions, time))
            cue_delays = cues.result()
        except BaseException:
            self._own_cues.silence()
            raise
        finally:
            cursor.cues = None
            remove_listener()
            await _end_tasks(hold_task, cues)
        return SectionReport(
            cursor.section.name,
            played.reports,
            cue_delays,
            played.lost,
            played.faults,
            left_out,
        )

    async def _play_parts(
        self, cursor: _Cursor, parts: Mapping[str, Score], start: "asyncio.Future[float]"
    ) -> SectionEnded:
        """Play the robots' parts; without any, let the cues of this computer begin soon."""
        section, show = cursor.section, self._show
        if parts:
            return await self._conductor.play(section, parts, show.sounds.robots, show.droppable)
        if self._conductor.active_stop is not None:
            raise SectionError(section.name, "a stop is active; reset it first")
        cursor.start_s = self._loop.time() + _START_DELAY_S
        start.set_result(cursor.start_s)
        return SectionEnded("", section.name, {})

    def _select_parts(
        self, scores: Mapping[str, Score]
    ) -> tuple[dict[str, Score], tuple[str, ...]]:
        """Return the score of each robot that takes part, and the robots that do not."""
        robots = self._show.cast.robots
        parts = {robots[role]: score for role, score in scores.items() if role}
        absent = {name for name in self._show.droppable if not self._conductor.alive(name)}
        left_out = parts.keys() & (self._muted | absent)
        kept = {name: score for name, score in parts.items() if name not in left_out}
        return kept, tuple(sorted(left_out))

    async def _hold_end(
        self,
        cursor: _Cursor,
        time: SectionTime,
        parts: Mapping[str, Score],
        start: "asyncio.Future[float]",
    ) -> None:
        """Pause the section when all motions have ended and hold their last poses."""
        ends_s = [score.motion.end_s for score in parts.values() if score.motion is not None]
        if not cursor.section.hold or self._show.automatic or not ends_s:
            return
        hold_s = await start + max(ends_s) - HOLD_PADDING_S / self._show.pace
        await time.wait_until(hold_s + _HOLD_DELAY_S)
        while True:
            try:
                self.pause()
            except BadRequestError as error:
                if self._loop.time() > (time.shift(hold_s) or hold_s) + _HOLD_LATEST_S:
                    self._notify_user(f"the last poses are not held: {error}")
                    return
                await asyncio.sleep(_HOLD_DELAY_S)
            else:
                cursor.holds_end = True
                self._notify_user("the robots hold their last poses and wait for GO")
                return


async def _wait_for_other_trigger(
    trigger: Trigger, ended_s: float, conductor: Conductor, osc: OscRemote
) -> None:
    """Wait for anything but GO that begins a section; the previous one ended at `ended_s`."""
    if trigger.on is TriggerKind.AFTER:
        due_s = ended_s + trigger.seconds
        await asyncio.sleep(max(0.0, due_s - asyncio.get_running_loop().time()))
    elif trigger.on is TriggerKind.AT:
        await asyncio.sleep(_compute_seconds_until(trigger))
    elif trigger.on is TriggerKind.OSC:
        await osc.wait_for(trigger.address)
    elif trigger.on is TriggerKind.HEARD:
        await _wait_for_word(trigger.word, conductor)


async def _wait_for_word(word: str, conductor: Conductor) -> None:
    """Wait until a robot recognises speech that contains the word."""
    before = {name: state.heard for name, state in conductor.agents.items()}
    while True:
        for name, state in conductor.agents.items():
            new_speech = set(state.heard) - set(before.get(name, ()))
            texts = [entry.partition(" ")[2] for entry in new_speech]  # after the number
            if any(word.lower() in text.lower() for text in texts):
                return
        await asyncio.sleep(_WORD_POLL_S)


def _compute_seconds_until(trigger: Trigger) -> float:
    """Return the time until the next occurrence of a time of day, in seconds."""
    now = datetime.datetime.now().astimezone()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    remaining_s = (midnight - now).total_seconds() + trigger.time_of_day_s
    return remaining_s if remaining_s >= 0.0 else remaining_s + 86400.0


def _explain_interruption(event: ConductorEvent) -> str:
    """Return why nothing begins without a new GO after this event; "" if it does."""
    if isinstance(event, StopBegan):
        return f"stopped by {event.stop.by}"
    if isinstance(event, ComputerSuspended):
        return f"the conductor's computer was suspended for {event.seconds:.1f} s"
    if isinstance(event, ConductorStalled):
        return f"the conductor stalled for {event.seconds:.1f} s"
    return "another conductor has taken over" if isinstance(event, Superseded) else ""


def _explain_ending(interruptions: list[str], time: SectionTime) -> str:
    """Return why a section ended before its cues were due."""
    if interruptions:
        return interruptions[-1]
    return "ended in a pause" if time.is_paused else "ended by a person"


def _require_completed(
    report: SectionReport, may_drop: Collection[str], *, is_followed: bool
) -> None:
    """Raise `SectionError` if a robot did not complete a section that another pass or one follows.

    The show file allows the loss of the robots of `may_drop`, but not their faults.
    """
    dropped = set(report.lost) & set(may_drop)
    unfinished = tuple(name for name in report.incomplete if name not in dropped)
    if is_followed and unfinished:
        raise SectionError(report.name, "not all robots completed it", unfinished, report.lost)


async def _end_tasks(*tasks: "asyncio.Task[Any]") -> None:
    """Cancel tasks, and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
