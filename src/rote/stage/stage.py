"""Several robots as one, from Python: `rote.open_stage`.

async with rote.open_stage("my-stage") as stage:
    report = await stage.play("show.json", cast={"left": "ann", "right": "bob"})
"""

import asyncio
import datetime
import json
import math
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rote.errors import BadRequestError, RoteError
from rote.messages import SOUND_RATE_HZ, Sound
from rote.motion import files
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.platform import paths
from rote.session.stage_conductor import Standing
from rote.session.stage_events import (
    ComputerSuspended,
    ConductingBegan,
    ConductorEvent,
    ConductorStalled,
    SectionCommitted,
    SectionEnded,
    StopBegan,
    StopUnconfirmed,
    Superseded,
)
from rote.stage.conductor import Conductor, SectionError, StopAnswer, SupersededError
from rote.stage.cues import CueState, CueStatus, describe_other_conductor, find_lamp
from rote.stage.folder import StageFolder
from rote.stage.keys import StageKeys, is_name
from rote.stage.leads import check_lead
from rote.stage.report import SectionReport, ShowReport
from rote.stage.section_time import SectionTime
from rote.stage.show import file as shows
from rote.stage.show.check import CheckedShow, check_show
from rote.stage.show.file import (
    Cast,
    Cue,
    CueKind,
    RoleLoss,
    Section,
    Show,
    Trigger,
    TriggerKind,
    describe_trigger,
)
from rote.stage.show.score import HOLD_PADDING_S, Score
from rote.stage.show_lock import check_lock
from rote.transport.osc import OscPort
from rote.transport.sound import (
    CHANNELS,
    RATE_HZ,
    Loudspeaker,
    read_sound,
    sound_seconds,
)
from rote.transport.zenoh.bus import StageBus
from rote.wire.osc import OscMessage
from rote.wire.stage import AgentState

TRY_STAGE = "try"
_START_DELAY_S = 0.1
"""Delay from its trigger to the start of a section without robots, in seconds."""
_MAX_CERTIFICATE_NAME = 64
_HOLD_DELAY_S, _HOLD_LATEST_S = 0.05, 0.3
"""Delays after the end of the motions at which their last poses are held: first and last try."""
STOP_ADDRESS, GO_ADDRESS = "/rote/stop", "/rote/go"
_JUMP_ADDRESS, _MUTE_ADDRESS, _UNMUTE_ADDRESS = "/rote/jump", "/rote/mute", "/rote/unmute"
TextCallback = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ShowFiles:
    """Finds the takes and sounds of a show: in the folder of its file, and in the library."""

    folder: Path
    library: Library

    def take(self, name: str) -> Track:
        """Return a take. Raises `BadRequestError` if there is none of that name."""
        path = self._find_in_folder(name)
        return self.library.load(name) if path is None else files.load(path)

    def sound_s(self, name: str) -> float:
        """Return the duration of a sound. Raises `BadRequestError` if it cannot be played."""
        return sound_seconds(self.find_sound(name))

    def sound(self, name: str, rate_hz: int, channels: int) -> Sound:
        """Return a sound, decoded. Raises `BadRequestError` if it cannot be read."""
        return read_sound(self.find_sound(name), rate_hz, channels)

    def find_sound(self, name: str) -> Path:
        """Return the file of a sound. Raises `BadRequestError` if there is none."""
        path = self._find_in_folder(name)
        if path is None:
            raise BadRequestError(
                f"there is no sound {name!r} beside the show", "Copy the file there."
            )
        return path

    def _find_in_folder(self, name: str) -> Path | None:
        """Return a file in the show's folder; None if there is none or the path leads out of it."""
        path = self.folder / name
        if path.is_file() and path.resolve().is_relative_to(self.folder.resolve()):
            return path
        return None


@dataclass(frozen=True, slots=True)
class _ShowSounds:
    """The sounds of a show, decoded before it begins."""

    conductor: Mapping[str, Sound]
    """Those that the conductor's computer plays."""
    robots: Mapping[str, bytes]
    """Those that robots play, as samples."""


def _decode_sounds(show: Show, files: ShowFiles | None) -> _ShowSounds:
    cues = [cue for section in show.sections for cue in section.cues]
    sound_cues = [cue for cue in cues if cue.kind is CueKind.SOUND]
    if not sound_cues:
        return _ShowSounds({}, {})
    if files is None:
        raise BadRequestError("the files of this show's sounds are missing", "Pass its `files`.")
    conductor = {cue.value for cue in sound_cues if not cue.role}
    robots = {cue.value for cue in sound_cues if cue.role}
    return _ShowSounds(
        {name: files.sound(name, RATE_HZ, CHANNELS) for name in sorted(conductor)},
        {name: files.sound(name, SOUND_RATE_HZ, 1).pcm for name in sorted(robots)},
    )


def read_show(path: str | Path) -> tuple[Show, ShowFiles]:
    """Read a show's file; return the show, and access to its takes and sounds."""
    file = Path(path)
    try:
        with file.open("rb") as opened:
            text = opened.read(shows.MAX_BYTES + 1)
    except OSError as error:
        raise BadRequestError(f"{file} cannot be read: {error.strerror}") from None
    try:
        show = shows.parse(text)
    except BadRequestError as error:
        raise BadRequestError(f"{file.name}: {error}", error.remedy) from None
    return show, ShowFiles(file.parent, Library(paths.takes_folder()))


def read_cast(cast: "Mapping[str, str] | str | Path | Cast") -> Cast:
    """Return a cast from a mapping of roles to robots, or from its file."""
    if isinstance(cast, Cast):
        return cast
    if isinstance(cast, Mapping):
        return Cast.parse({"cast": dict(cast)})
    try:
        return Cast.parse(json.loads(Path(cast).read_text("utf-8")))
    except OSError as error:
        raise BadRequestError(f"{cast} cannot be read: {error.strerror}") from None
    except ValueError as error:
        if isinstance(error, BadRequestError):
            raise
        raise BadRequestError(f"{cast} is not valid JSON: {error}") from None


@dataclass(slots=True, eq=False)
class _Cursor:
    """The position in a show that is under way."""

    checked: CheckedShow
    cast: Cast
    index: int
    """The section that plays, or that begins next."""
    pace: float
    automatic: bool = False
    """Whether nothing waits for GO, not even a section that holds its last poses."""
    trigger: Trigger = field(default_factory=Trigger)
    """What begins it."""
    playing: bool = False
    start_s: float | None = None
    """When the section begins, or has begun; None before that is known."""
    time: SectionTime | None = None
    """The section's time, while it plays."""
    holds_end: bool = False
    """Whether the robots hold their last poses until GO."""

    def begin(self, clock: Callable[[], float]) -> SectionTime:
        """Note that the section is being prepared, and return its time."""
        self.playing, self.start_s, self.time = True, None, SectionTime(clock)
        self.holds_end = False
        return self.time

    @property
    def section(self) -> Section:
        return self.checked.show.sections[self.index]

    @property
    def duration_s(self) -> float:
        """The section's duration at this pace, as far as it is known."""
        scores = self.checked.scores.items()
        durations_s = [score.duration_s for (name, _), score in scores if name == self.section.name]
        return max(durations_s, default=0.0) / self.pace


class Stage:
    """A stage that is open: its conductor runs in this process."""

    def __init__(
        self, conductor: Conductor, tell: TextCallback = lambda _text: None, *, mute: bool = False
    ) -> None:
        self.conductor = conductor
        self.refused: dict[str, str] = {}
        """Why invited agents cannot join, by name, as far as known."""
        self._notify_user, self._mute = tell, mute
        self._speaker: Loudspeaker | None = None
        self._sender: OscPort | None = None
        conductor.on_event(self._on_conductor_event)
        self._loop = asyncio.get_running_loop()
        self._go_given: asyncio.Event = asyncio.Event()
        self._osc: OscPort | None = None
        self._accepts_cues = True
        self._awaited_address = ""
        """The address that the next section waits for."""
        self._osc_arrived = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._cursor: _Cursor | None = None
        self._selected_index: int | None = None
        """The index of the section that BACK, a jump or a skip has selected."""
        self._section_selected = asyncio.Event()
        self._go_begins_next = False
        """Whether the GO that ended a hold also begins the next section."""
        self._allowed_endings = 0
        """The session's `endings` when the show began, or was last let go on by a trigger or GO."""
        self._cancel_cues: Callable[[], object] = lambda: None
        self.muted: set[str] = set()
        """The robots that take no part until they are unmuted."""
        self._takeover: asyncio.Future[ConductingBegan | None] = self._loop.create_future()
        """How a standby ends: it conducts, or None if the operator has ended it."""

    @property
    def robots(self) -> Mapping[str, AgentState]:
        """The newest state of every agent."""
        return self.conductor.agents

    def note_refusal(self, name: str, reason: str) -> None:
        """Record that an agent asks to join and may not, and report it once."""
        if self.refused.get(name) != reason:
            self.refused[name] = reason
            self._notify_user(f"{name} asks to join and is refused: {reason}.")

    def go(self) -> None:
        """Begin the section that waits for GO, or let a paused one go on.

        At the end of a section with `hold` it also begins the next section that waits for GO.

        Raises `BadRequestError` if a paused section cannot go on, or at a standby.
        """
        self.conductor.require_conducting()
        if self.conductor.session.section.is_paused:
            self.resume()
            self._go_begins_next = self._cursor is not None and self._cursor.holds_end
        else:
            self._go_given.set()

    def pause(self) -> None:
        """Pause the section that plays: the robots slow down softly and hold their poses.

        It is not a stop: their arms stay stiff, and GO lets all go on together. Raises
        `BadRequestError` if it cannot be paused now.
        """
        self.conductor.pause()
        self._update_cue_pause()

    def resume(self) -> None:
        """Let a paused section go on where it is.

        Raises `BadRequestError` if a robot does not hold its pose; then all stay paused.
        """
        self.conductor.resume()
        self._update_cue_pause()

    def _update_cue_pause(self) -> None:
        """Pause this computer's own cues and sounds like the robots, or let them go on."""
        cursor, holds = self._cursor, self.conductor.holds
        if cursor is not None and cursor.time is not None:
            cursor.time.holds = holds
        if self._speaker is not None:
            begin_s, end_s = holds[-1]
            if end_s is None:
                self._speaker.hold(begin_s)
            else:
                self._speaker.release(end_s)

    def back(self) -> None:
        """Select the previous section; if a section plays, end it softly and select it again.

        The selected section waits for GO. Raises `BadRequestError` if no show is under way.
        """
        cursor = self._require_cursor()
        self._select_section(cursor.index if cursor.playing else max(0, cursor.index - 1), "BACK")

    def skip(self) -> None:
        """Select the next section, which waits for GO; a section that plays ends softly.

        Raises `BadRequestError` if no show is under way.
        """
        self._select_section(self._require_cursor().index + 1, "a skip")

    def jump(self, section: str) -> None:
        """Select a section by its name; it waits for GO. A section that plays ends softly.

        Raises `BadRequestError` for an unknown name, or if no show is under way.
        """
        show = self._require_cursor().checked.show
        self._select_section(show.find_section(section), "a jump")

    def finish(self) -> None:
        """End the show; a section that plays ends softly. Raises `BadRequestError` without one.

        A standby that waits ends; the show of the other conductor goes on.
        """
        if self._is_standing_by:
            self._takeover.set_result(None)
            return
        show = self._require_cursor().checked.show
        self._select_section(len(show.sections), "the end of the show")

    def mute(self, robot: str, *, muted: bool = True) -> None:
        """Let a robot take no part: it stops softly at once, and the others go on.

        An unmuted robot takes part again from the next section on. Raises `BadRequestError` for a
        robot that is not in the cast.
        """
        robots = self._require_cursor().cast.robots.values()
        if robot not in robots:
            raise BadRequestError(
                f"the robot {robot!r:.60} is not in the cast",
                f"In the cast: {', '.join(sorted(robots))}.",
            )
        if muted:
            self.muted.add(robot)
            self.conductor.leave_out(robot)
        else:
            self.muted.discard(robot)
        self._publish_position()

    # ---- a standby ------------------------------------------------------------------------------

    @property
    def _is_standing_by(self) -> bool:
        session = self.conductor.session
        is_waiting = session.is_standby and session.standing is Standing.WAITING
        return is_waiting and not self._takeover.done()

    async def wait_for_takeover(self) -> ConductingBegan | None:
        """Wait until this standby conducts, because the other conductor was lost.

        Return where its show was interrupted; None if `finish` has ended the standby.
        """
        return await self._takeover

    @property
    def other_conductor(self) -> str:
        """What the conductor that this standby waits for does, as one line of text."""
        session = self.conductor.session
        text = describe_other_conductor(
            session.other.state,
            self.robots,
            stop=session.stops.active,
            is_silent=session.other.is_silent(self._loop.time()),
            alive=self.conductor.alive,
        )
        own_stop = session.find_stop_to_repeat(self._loop.time())
        return text if own_stop is None else f"{text} | STOP by {own_stop.by} is repeated from here"

    def _publish_position(self) -> None:
        """Publish the position in the show, for a standby that takes over."""
        section = "" if self._cursor is None else self._cursor.section.name
        self.conductor.show_section(section, self.muted)

    @property
    def offsets(self) -> dict[str, dict[str, float]]:
        """How many seconds early each robot's actions and sounds are requested, by robot and name.

        They are learned when they are played, for example in a rehearsal.
        """
        return {
            robot: {name: seconds for name, seconds, _ in state.leads}
            for robot, state in self.robots.items()
        }

    def set_offset(self, robot: str, name: str, seconds: float | None) -> None:
        """Set an offset by hand; with None it is measured again. A robot that plays ignores it.

        Raises `BadRequestError` for an unknown robot, or a time that is not 0 to 15 s.
        """
        if robot not in self.robots:
            raise BadRequestError(
                f"the robot {robot!r:.60} is not on the stage", "Start its agent."
            )
        check_lead(seconds)
        self.conductor.set_lead(robot, name, seconds)

    @property
    def cues(self) -> CueStatus | None:
        """What a cue list shows; None if no show is under way."""
        cursor = self._cursor
        if cursor is None:
            return None
        sections, index = cursor.checked.show.sections, cursor.index
        held_s = 0.0 if cursor.time is None else cursor.time.held_s
        elapsed_s = None if cursor.start_s is None else self._loop.time() - cursor.start_s - held_s
        if self.conductor.active_stop is not None:
            state = CueState.STOPPED
        elif not cursor.playing:
            state = CueState.WAITING
        elif self.conductor.session.section.is_paused:
            state = CueState.PAUSED
        elif elapsed_s is None or elapsed_s < 0.0:
            state = CueState.STARTING
        else:
            state = CueState.PLAYING
        is_playing = state in (CueState.PLAYING, CueState.PAUSED) and elapsed_s is not None
        return CueStatus(
            state,
            cursor.section.name,
            sections[index + 1].name if index + 1 < len(sections) else "",
            describe_trigger(cursor.trigger) if state is CueState.WAITING else "",
            elapsed_s if is_playing else None,
            max(0.0, cursor.duration_s - (elapsed_s or 0.0)) if is_playing else None,
            {
                name: find_lamp(
                    self.robots.get(name),
                    alive=self.conductor.alive(name),
                    muted=name in self.muted,
                    stop=self.conductor.active_stop,
                )
                for name in sorted(cursor.cast.robots.values())
            },
        )

    def _require_cursor(self) -> _Cursor:
        self.conductor.require_conducting()
        if self._cursor is None:
            raise BadRequestError("no show is under way", "Run one first.")
        return self._cursor

    def _select_section(self, index: int, by: str) -> None:
        self._selected_index = index
        self._section_selected.set()
        if self._require_cursor().playing:
            self._cancel_cues()
            self.conductor.cancel(f"ended by {by}")

    async def stop(self, by: str = "a person") -> StopAnswer:
        """Stop all robots, and wait for the confirmations. The stop is active until `reset`."""
        return await self.conductor.stop(by)

    def reset(self) -> None:
        """Release all robots from a stop."""
        self.conductor.reset()

    async def listen(
        self, host: str = "127.0.0.1", port: int = 0, *, cues: bool = True
    ) -> tuple[str, int]:
        """Listen for OSC: triggers of sections, `/rote/go`, `/rote/stop`, and unless `cues` is
        false the messages that control the cue list.
        """
        self._accepts_cues = cues
        self._osc = await OscPort.open(self._on_osc, host, port)
        return self._osc.address

    async def play(
        self,
        show: "str | Path | CheckedShow",
        cast: "Mapping[str, str] | str | Path | Cast",
        *,
        pace: float = 1.0,
        motion: bool = True,
        automatic: bool = False,
        files: ShowFiles | None = None,
    ) -> ShowReport:
        """Play a show, section by section. It is checked first; an error raises `BadRequestError`.

        `pace` 0.5 plays it at half speed. Without `motion` only its cues are played. An `automatic`
        show begins its sections one after the other, without waiting for triggers. A `CheckedShow`
        with sounds needs its `files`.
        """
        report = ShowReport()
        async for section in self.sections(
            show, cast, pace=pace, motion=motion, automatic=automatic, files=files
        ):
            report.sections.append(section)
        return report

    async def sections(
        self,
        show: "str | Path | CheckedShow",
        cast: "Mapping[str, str] | str | Path | Cast",
        *,
        pace: float = 1.0,
        motion: bool = True,
        automatic: bool = False,
        begun: bool = False,
        files: ShowFiles | None = None,
        first: str = "",
        selected: bool = False,
        on_interrupted: Callable[[SectionError], None] | None = None,
    ) -> AsyncIterator[SectionReport]:
        """Like `play`, but yield each section's report when the section is over.

        With `begun` the first section begins at once, without waiting for its trigger. `first` is
        the name of the section to begin with; if it is `selected`, it begins only with GO. A
        section that is refused, stopped or lost ends the show with a `SectionError`. With
        `on_interrupted` that is called instead, and the section waits for GO again. Raises
        `SupersededError` if another conductor has taken over.
        """
        if not 0.0 < pace < math.inf:
            raise BadRequestError(f"a pace of {pace} is out of range", "Choose 1 for full speed.")
        self._allowed_endings = self.conductor.session.endings
        cast = read_cast(cast)
        checked, files = await self._check_show(show, cast, files)
        checked.require()
        first_index = checked.show.find_section(first) if first else 0
        if not selected:  # until GO robots may join, and a person may mute the others
            self._check_present(cast, find_droppable(checked.show, cast))
        sounds = await asyncio.to_thread(_decode_sounds, checked.show, files)
        await self._open_outputs(checked.show)
        try:
            async for report in self._play_sections(
                checked,
                cast,
                sounds,
                pace,
                motion=motion,
                automatic=automatic,
                begun=begun,
                index=first_index,
                is_selected=selected,
                on_interrupted=on_interrupted,
            ):
                yield report
        finally:
            self._cursor = None
            self._publish_position()
        if self._speaker is not None:
            await self._speaker.wait_until_silent()

    async def _play_sections(
        self,
        checked: CheckedShow,
        cast: Cast,
        sounds: _ShowSounds,
        pace: float,
        *,
        motion: bool,
        automatic: bool,
        begun: bool,
        index: int,
        is_selected: bool,
        on_interrupted: Callable[[SectionError], None] | None,
    ) -> AsyncIterator[SectionReport]:
        """Play from the section `index` on; BACK, jumps and skips select another one.

        A section that a person selected, or that was interrupted, begins only with GO. Only a
        section that every robot completed is followed by another pass or section. A stop before a
        section, for example at the end of the previous one, interrupts it, too.
        """
        self._go_begins_next = False  # ignore a GO of an earlier show
        ended_s = self._loop.time()
        while index < len(checked.show.sections):
            cursor = self._cursor = _Cursor(checked, cast, index, pace, automatic)
            section = cursor.section
            self._publish_position()
            cursor.trigger = Trigger() if is_selected else section.start
            self._selected_index = None
            self._section_selected.clear()
            if self._go_begins_next and cursor.trigger.on is TriggerKind.GO and not is_selected:
                begun = True
            self._go_begins_next = False
            try:
                if is_selected or not (automatic or begun):
                    await self._wait_for_trigger(cursor.trigger, section, ended_s)
                begun = False
                scores = _select_scores(checked, section, pace, motion=motion)
                for number in range(section.loop):
                    if self._section_selected.is_set():
                        break
                    self._require_no_ending(section)
                    report = await self._play_section(section, scores, cursor, sounds)
                    yield report
                    ended_s = self._loop.time()
                    is_last = (number + 1, index + 1) == (section.loop, len(checked.show.sections))
                    _require_completed(
                        report, find_droppable(checked.show, cast), is_followed=not is_last
                    )
            except SectionError as error:
                self.conductor.require_conducting()
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
        if self.conductor.session.endings != self._allowed_endings:
            raise SectionError(section.name, "it was stopped before it began")

    async def _check_show(
        self, show: "str | Path | CheckedShow", cast: Cast, files: ShowFiles | None
    ) -> tuple[CheckedShow, ShowFiles | None]:
        if isinstance(show, CheckedShow):
            return show, files
        parsed, show_files = read_show(show)
        await asyncio.to_thread(check_lock, Path(show), parsed, show_files)
        checked = await asyncio.to_thread(
            check_show, parsed, show_files.take, show_files.sound_s, cast=cast
        )
        return checked, show_files

    async def _open_outputs(self, show: Show) -> None:
        """Open the loudspeaker and OSC port for the conductor's own cues."""
        kinds = {cue.kind for section in show.sections for cue in section.cues if not cue.role}
        if CueKind.SOUND in kinds and self._speaker is None:
            self._speaker = Loudspeaker(mute=self._mute)
        if CueKind.OSC in kinds and self._sender is None:
            self._sender = await OscPort.open(lambda _message: None, "0.0.0.0", 0)  # noqa: S104
        for to in {cue.to for section in show.sections for cue in section.cues if cue.to}:
            assert self._sender is not None
            await self._sender.resolve(to)

    def _on_conductor_event(self, event: ConductorEvent) -> None:
        if isinstance(event, StopBegan | Superseded) and self._speaker is not None:
            self._speaker.silence()
        if isinstance(event, Superseded):
            self._cancel_cues()
        if isinstance(event, StopUnconfirmed):
            names = ", ".join(event.agents)
            self._notify_user(f"STOP was NOT confirmed by {names}: use the remote!")
        if isinstance(event, ConductingBegan) and not self._takeover.done():
            self.muted.update(event.muted)
            self._takeover.set_result(event)

    def _check_present(self, cast: Cast, may_drop: Collection[str]) -> None:
        needed = set(cast.robots.values()) - set(may_drop) - self.muted
        if absent := [name for name in needed if not self.conductor.alive(name)]:
            raise self.absence(tuple(sorted(absent)))

    def absence(self, names: tuple[str, ...]) -> SectionError:
        """Return the error for a show whose robots are not all connected."""
        refusals = [f"{name}: {self.refused[name]}" for name in names if name in self.refused]
        reason = "; ".join(["not all robots are connected", *refusals])
        return SectionError("the first one", reason, names)

    def _select_parts(
        self, scores: Mapping[str, Score], cast: Cast, may_drop: Collection[str]
    ) -> tuple[dict[str, Score], tuple[str, ...]]:
        """Return the score of each robot that takes part, and the robots that do not."""
        parts = {cast.robots[role]: score for role, score in scores.items() if role}
        absent = {name for name in may_drop if not self.conductor.alive(name)}
        left_out = parts.keys() & (self.muted | absent)
        kept = {name: score for name, score in parts.items() if name not in left_out}
        return kept, tuple(sorted(left_out))

    async def _play_section(
        self, section: Section, scores: Mapping[str, Score], cursor: _Cursor, sounds: _ShowSounds
    ) -> SectionReport:
        may_drop = find_droppable(cursor.checked.show, cursor.cast)
        parts, left_out = self._select_parts(scores, cursor.cast, may_drop)
        start: asyncio.Future[float] = self._loop.create_future()

        def handle_event(event: ConductorEvent) -> None:
            if isinstance(event, SectionCommitted) and not start.done():
                start.set_result(event.start_s)
                cursor.start_s = event.start_s
            elif reason := _explain_interruption(event):
                interruptions.append(reason)
                cues.cancel()

        interruptions: list[str] = []
        remove_listener = self.conductor.on_event(handle_event)
        time = cursor.begin(self._loop.time)
        cues = self._loop.create_task(self._play_cues(scores.get(""), start, sounds, time))
        self._cancel_cues = cues.cancel
        hold_task = self._loop.create_task(self._hold_end(cursor, parts, start))
        try:
            played = SectionEnded("", section.name, {})
            if parts:
                played = await self.conductor.play(section, parts, sounds.robots, may_drop)
            elif self.conductor.active_stop is not None:
                raise SectionError(section.name, "a stop is active; reset it first")
            else:
                cursor.start_s = self._loop.time() + _START_DELAY_S
                start.set_result(cursor.start_s)
            if time.is_paused:  # no robot is left to go on, so later cues are never due
                cues.cancel()
            await asyncio.wait({cues})
            if cues.cancelled():
                raise SectionError(section.name, _explain_ending(interruptions, time))
            cue_delays = cues.result()
        except BaseException:
            if self._speaker is not None:
                self._speaker.silence()
            raise
        finally:
            cursor.playing = False
            remove_listener()
            await _end_tasks(hold_task, cues)
        return SectionReport(
            section.name,
            played.reports,
            cue_delays,
            played.lost,
            played.faults,
            left_out,
        )

    async def _hold_end(
        self, cursor: _Cursor, parts: Mapping[str, Score], start: "asyncio.Future[float]"
    ) -> None:
        """Pause the section when all motions have ended and hold their last poses."""
        ends_s = [score.motion.end_s for score in parts.values() if score.motion is not None]
        holds = cursor.section.hold and not cursor.automatic
        if not holds or not ends_s or cursor.time is None:
            return
        start_s = await start
        hold_s = start_s + max(ends_s) - HOLD_PADDING_S / cursor.pace
        await cursor.time.wait_until(hold_s + _HOLD_DELAY_S)
        while True:
            try:
                self.pause()
            except BadRequestError as error:
                if self._loop.time() > (cursor.time.shift(hold_s) or hold_s) + _HOLD_LATEST_S:
                    self._notify_user(f"the last poses are not held: {error}")
                    return
                await asyncio.sleep(_HOLD_DELAY_S)
            else:
                cursor.holds_end = True
                self._notify_user("the robots hold their last poses and wait for GO")
                return

    async def _play_cues(
        self,
        score: Score | None,
        start: "asyncio.Future[float]",
        sounds: _ShowSounds,
        time: SectionTime,
    ) -> tuple[tuple[str, float | None], ...]:
        """Carry out this computer's own cues; return how late each was."""
        start_s = await start
        cues = () if score is None else score.cues
        return tuple(
            await asyncio.gather(
                *(self._play_cue(each, start_s + each.at_s, sounds, time) for each in cues)
            )
        )

    async def _play_cue(
        self, cue: Cue, due_s: float, sounds: _ShowSounds, time: SectionTime
    ) -> tuple[str, float | None]:
        """Carry out a cue at `due_s`; return its label, and how late it was (None if it failed)."""
        late_s: float | None
        try:
            if cue.kind is CueKind.SOUND:
                assert self._speaker is not None
                started = self._speaker.play(sounds.conductor[cue.value], due_s)
                await asyncio.wait({started})
                # A stop may cancel a sound before it has begun.
                due_s = time.shift(due_s) or due_s
                late_s = None if started.cancelled() else started.result() - due_s
            else:
                due_s = await time.wait_until(due_s)
                assert self._sender is not None
                self._sender.send(OscMessage(cue.value, cue.args), cue.to)
                late_s = self._loop.time() - due_s
        except RoteError as error:
            self._notify_user(f"the cue {cue.label} failed: {error}")
            late_s = None
        return cue.label, late_s

    # ---- triggers -------------------------------------------------------------------------------

    async def _wait_for_trigger(self, trigger: Trigger, section: Section, ended_s: float) -> None:
        """Wait for the trigger of a section, or for GO, which begins any section; return as well
        if another section is selected.

        Raises `SectionError` if a stop begins meanwhile: nothing begins by itself after a stop.
        Raises it as well if this computer is suspended or this process stalls while it waits for
        anything but GO, because the section would begin late and unexpectedly.
        """
        self.conductor.require_conducting()
        if trigger.on is not TriggerKind.GO:
            self._require_no_ending(section)
        self._go_given.clear()
        wait_for: dict[TriggerKind, Callable[[], Any]] = {
            TriggerKind.GO: self._go_given.wait,
            TriggerKind.AFTER: lambda: _sleep_until(self._loop, ended_s + trigger.seconds),
            TriggerKind.AT: lambda: asyncio.sleep(_compute_seconds_until(trigger)),
            TriggerKind.OSC: lambda: self._wait_for_osc(trigger.address),
            TriggerKind.HEARD: lambda: self._wait_for_word(trigger.word),
        }
        if trigger.on is not TriggerKind.AFTER:
            self._notify_user(f"section {section.name!r} waits for {describe_trigger(trigger)}")
        stopped: asyncio.Future[None] = self._loop.create_future()

        def handle_event(event: ConductorEvent) -> None:
            if stopped.done():
                return
            if isinstance(event, Superseded):
                stopped.set_exception(SupersededError(section.name))
            elif (reason := _explain_interruption(event)) and (
                isinstance(event, StopBegan) or trigger.on is not TriggerKind.GO
            ):
                stopped.set_exception(SectionError(section.name, reason))

        remove_listener = self.conductor.on_event(handle_event)
        futures: list[asyncio.Future[Any]] = [
            stopped,
            asyncio.ensure_future(wait_for[trigger.on]()),
            asyncio.ensure_future(self._go_given.wait()),
            asyncio.ensure_future(self._section_selected.wait()),
        ]
        try:
            done, _ = await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
            self._allowed_endings = self.conductor.session.endings
        finally:
            remove_listener()
            for each in futures:
                each.cancel()

    def _on_osc(self, message: OscMessage) -> None:
        if message.address == STOP_ADDRESS:
            task = self._loop.create_task(self.stop("OSC"))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif message.address.startswith("/rote/"):
            try:
                self._on_cue_message(message)
            except RoteError as error:
                self._notify_user(f"the OSC message {message.address} is refused: {error}")
        if message.address == self._awaited_address:
            self._osc_arrived.set()

    def _on_cue_message(self, message: OscMessage) -> None:
        """Carry out an OSC message that controls the cue list. Raises `BadRequestError`."""
        if message.address == GO_ADDRESS:
            self.go()
            return
        if not self._accepts_cues:
            raise BadRequestError("this program has no cue list", "Run the show as a cue list.")
        commands = {
            "/rote/back": self.back,
            "/rote/skip": self.skip,
            "/rote/pause": self.pause,
            "/rote/resume": self.resume,
        }
        if message.address in commands:
            commands[message.address]()
            return
        named_commands: dict[str, Callable[[str], None]] = {
            _JUMP_ADDRESS: self.jump,
            _MUTE_ADDRESS: self.mute,
            _UNMUTE_ADDRESS: lambda robot: self.mute(robot, muted=False),
        }
        if message.address in named_commands:
            (name, *_) = (*message.args, "")
            named_commands[message.address](str(name))

    async def _wait_for_osc(self, address: str) -> None:
        if self._osc is None:
            raise BadRequestError(
                f"a section waits for the OSC message {address}, but no OSC port is open",
                "Open a port for OSC.",
            )
        self._awaited_address = address
        self._osc_arrived.clear()
        await self._osc_arrived.wait()

    async def _wait_for_word(self, word: str) -> None:
        """Wait until a robot recognises speech that contains the word."""
        before = {name: state.heard for name, state in self.robots.items()}
        while True:
            for name, state in self.robots.items():
                new_speech = set(state.heard) - set(before.get(name, ()))
                texts = [entry.partition(" ")[2] for entry in new_speech]  # after the number
                if any(word.lower() in text.lower() for text in texts):
                    return
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        """Close all ports and the loudspeaker."""
        for port in (self._osc, self._sender):
            if port is not None:
                port.close()
        if self._speaker is not None:
            self._speaker.close()
        for task in self._tasks:
            task.cancel()


def _explain_interruption(event: ConductorEvent) -> str:
    """Return why nothing begins without a new GO after this event; "" if it does."""
    if isinstance(event, StopBegan):
        return f"stopped by {event.stop.by}"
    if isinstance(event, ComputerSuspended):
        return f"the conductor's computer was suspended for {event.seconds:.1f} s"
    if isinstance(event, ConductorStalled):
        return f"the conductor stalled for {event.seconds:.1f} s"
    return ""


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


async def _sleep_until(loop: asyncio.AbstractEventLoop, when_s: float) -> None:
    await asyncio.sleep(max(0.0, when_s - loop.time()))


def _compute_seconds_until(trigger: Trigger) -> float:
    """Return the time until the next occurrence of a time of day, in seconds."""
    now = datetime.datetime.now().astimezone()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    remaining_s = (midnight - now).total_seconds() + trigger.time_of_day_s
    return remaining_s if remaining_s >= 0.0 else remaining_s + 86400.0


def find_droppable(show: Show, cast: Cast) -> frozenset[str]:
    """Return the robots without which a show goes on when they are lost."""
    droppable = [role.name for role in show.roles if role.on_loss is RoleLoss.DROP]
    return frozenset(cast.robots[name] for name in droppable if name in cast.robots)


def _select_scores(
    checked: CheckedShow, section: Section, pace: float, *, motion: bool
) -> dict[str, Score]:
    """Return each role's score in a section; the conductor's own has the role ""."""
    scores = {}
    for (name, role), score in checked.scores.items():
        if name == section.name:
            paced = score.at_pace(pace)
            paced = paced if motion else paced.without_motion()
            if not paced.empty:
                scores[role] = paced
    return scores


def _make_refusal_answerer(folder: StageFolder, stage: Stage) -> Callable[[str, bytes], bytes]:
    """Return the function that answers agents why they may not take part. It runs in any thread."""
    loop = asyncio.get_running_loop()

    def answer_agent(_key: str, data: bytes) -> bytes:
        certificate_name = data[:_MAX_CERTIFICATE_NAME].decode("ascii", "replace")
        reason = folder.find_refusal(certificate_name)
        name = certificate_name.partition(".")[0]
        if reason and is_name(name):
            loop.call_soon_threadsafe(stage.note_refusal, name, reason)
        return reason.encode()

    return answer_agent


@asynccontextmanager
async def open_stage(
    folder: str | Path | None = None,
    *,
    endpoint: str = "127.0.0.1:7447",
    tell: TextCallback = lambda _text: None,
    mute: bool = False,
    standby: bool = False,
) -> AsyncIterator[Stage]:
    """Open the stage of a folder; without a folder, open a test stage for this computer only.

    `tell` receives messages for the user. With `mute` this computer's sounds are inaudible, but
    still timed. A `standby` conducts only after another conductor of the stage was lost: see
    `Stage.wait_for_takeover`. It needs the folder of a stage with routers.
    """
    if standby and folder is None:
        raise BadRequestError(
            "a standby needs the folder of a stage with routers", "Name the folder of the stage."
        )
    if folder is None:
        stage_folder = None
        keys, bus, refused = StageKeys(TRY_STAGE), await StageBus.conduct(endpoint), {}
    else:
        stage_folder = StageFolder(Path(folder))
        stage_folder.check()
        refused = stage_folder.invitation_faults()
        for text in (
            *(f"{name}: {fault}" for name, fault in refused.items()),
            *stage_folder.warnings(),
        ):
            tell(text)
        keys = stage_folder.keys
        bus = await stage_folder.open_bus(standby=standby)
    try:
        async with Conductor(bus, keys.stage, standby=standby) as conductor:
            stage = Stage(conductor, tell, mute=mute)
            stage.refused = refused
            if stage_folder is not None:
                bus.answer(keys.door, _make_refusal_answerer(stage_folder, stage))
            try:
                yield stage
            finally:
                await stage.close()
    finally:
        await bus.close()
