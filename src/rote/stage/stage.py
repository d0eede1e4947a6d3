"""Several robots as one, from Python: `rote.open_stage`.

async with rote.open_stage("my-stage") as stage:
    report = await stage.play("show.json", cast={"left": "ann", "right": "bob"})
"""

import asyncio
import contextlib
import datetime
import json
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rote.errors import BadRequestError, RoteError
from rote.messages import SOUND_RATE_HZ, Sound
from rote.motion import files
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.platform import paths
from rote.session.stage_conductor import (
    ComputerSuspended,
    ConductorEvent,
    SectionCommitted,
    SectionEnded,
    StopBegan,
)
from rote.stage.conductor import Conductor, SectionError, StopAnswer
from rote.stage.folder import StageFolder
from rote.stage.keys import StageKeys
from rote.stage.report import SectionReport, ShowReport
from rote.stage.show import file as shows
from rote.stage.show.check import CheckedShow, check_show
from rote.stage.show.file import Cast, Cue, CueKind, Section, Show, Trigger, TriggerKind
from rote.stage.show.score import Score
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
_READY_S = 0.1
"""Delay from its trigger to the start of a section without robots, in seconds."""
STOP_ADDRESS, GO_ADDRESS = "/rote/stop", "/rote/go"
TextCallback = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ShowFiles:
    """The takes and sounds of a show: beside its file, and in the library."""

    folder: Path
    library: Library

    def take(self, name: str) -> Track:
        """Return a take. Raises `BadRequestError` if there is none of that name."""
        beside = self._find_beside(name)
        if beside is not None:
            return files.load(beside)
        return self.library.load(name)

    def sound_s(self, name: str) -> float:
        """Return the duration of a sound. Raises `BadRequestError` if it cannot be played."""
        return sound_seconds(self._find_sound(name))

    def sound(self, name: str, rate_hz: int, channels: int) -> Sound:
        """Return a sound, decoded. Raises `BadRequestError` if it cannot be read."""
        return read_sound(self._find_sound(name), rate_hz, channels)

    def _find_sound(self, name: str) -> Path:
        path = self._find_beside(name)
        if path is None:
            raise BadRequestError(
                f"there is no sound {name!r} beside the show", "Copy the file there."
            )
        return path

    def _find_beside(self, name: str) -> Path | None:
        """Return a file in the show's folder; None if there is none or the path leads out of it."""
        path = self.folder / name
        if path.is_file() and path.resolve().is_relative_to(self.folder.resolve()):
            return path
        return None


@dataclass(frozen=True, slots=True)
class _ShowSounds:
    """The sounds of a show, decoded before it begins."""

    own: Mapping[str, Sound]
    """Those of the conductor's computer."""
    robots: Mapping[str, bytes]
    """Those of robots, as samples."""


def _decode_sounds(show: Show, files: ShowFiles | None) -> _ShowSounds:
    cues = [cue for section in show.sections for cue in section.cues]
    sounding = [cue for cue in cues if cue.kind is CueKind.SOUND]
    if not sounding:
        return _ShowSounds({}, {})
    if files is None:
        raise BadRequestError("the files of this show's sounds are missing", "Pass its `files`.")
    own = {cue.value for cue in sounding if not cue.role}
    robots = {cue.value for cue in sounding if cue.role}
    return _ShowSounds(
        {name: files.sound(name, RATE_HZ, CHANNELS) for name in sorted(own)},
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
        raise BadRequestError(f"{cast} is no JSON: {error}") from None


class Stage:
    """A stage that is open: its conductor runs in this process."""

    def __init__(
        self, conductor: Conductor, tell: TextCallback = lambda _text: None, *, mute: bool = False
    ) -> None:
        self.conductor = conductor
        self.refused: Mapping[str, str] = {}
        """Why invited agents cannot join, by name, as far as known."""
        self._tell, self._mute = tell, mute
        self._speaker: Loudspeaker | None = None
        self._sender: OscPort | None = None
        conductor.on_event(self._silence_on_stop)
        self._loop = asyncio.get_running_loop()
        self._go_given: asyncio.Event = asyncio.Event()
        self._osc: OscPort | None = None
        self._awaited_osc = ""
        """The address that the next section waits for."""
        self._osc_arrived = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def robots(self) -> Mapping[str, AgentState]:
        """The newest state of every agent."""
        return self.conductor.agents

    def go(self) -> None:
        """Begin the section that waits for GO."""
        self._go_given.set()

    async def stop(self, by: str = "a person") -> StopAnswer:
        """Stop all robots, and wait for the confirmations. It holds until `reset`."""
        return await self.conductor.stop(by)

    def reset(self) -> None:
        """Release all robots from a stop."""
        self.conductor.reset()

    async def listen(self, host: str = "127.0.0.1", port: int = 0) -> tuple[str, int]:
        """Listen for OSC: triggers of sections, `/rote/go` and `/rote/stop`."""
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
        """Play a show, section by section; it is checked first, and errors refuse it.

        `pace` 0.5 plays it at half speed. Without `motion` only its lights and sounds happen. An
        `automatic` show begins its sections one after the other, without waiting for triggers. A
        show that was checked before and has sounds needs its `files`.
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
    ) -> AsyncIterator[SectionReport]:
        """Like `play`, but yield each section's report when the section is over.

        With `begun` the first section begins at once: GO was already given.
        """
        if not 0.0 < pace < math.inf:
            raise BadRequestError(f"a pace of {pace} is out of range", "Choose 1 for full speed.")
        cast = read_cast(cast)
        checked, files = await self._check_show(show, cast, files)
        checked.require()
        self._check_present(cast)
        sounds = await asyncio.to_thread(_decode_sounds, checked.show, files)
        await self._open_outputs(checked.show)
        ended_s = self._loop.time()
        for index, section in enumerate(checked.show.sections):
            if not automatic and not (begun and index == 0):
                await self._wait_for_trigger(section.start, section, ended_s)
            scores = _select_scores(checked, section, pace, motion=motion)
            for _ in range(section.loop):
                yield await self._play_section(section, scores, cast, sounds)
                ended_s = self._loop.time()
        if self._speaker is not None:
            await self._speaker.wait_until_silent()

    async def _check_show(
        self, show: "str | Path | CheckedShow", cast: Cast, files: ShowFiles | None
    ) -> tuple[CheckedShow, ShowFiles | None]:
        if isinstance(show, CheckedShow):
            return show, files
        read, own = read_show(show)
        checked = await asyncio.to_thread(check_show, read, own.take, own.sound_s, cast=cast)
        return checked, own

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

    def _silence_on_stop(self, event: ConductorEvent) -> None:
        if isinstance(event, StopBegan) and self._speaker is not None:
            self._speaker.silence()

    def _check_present(self, cast: Cast) -> None:
        if absent := [name for name in cast.robots.values() if not self.conductor.alive(name)]:
            raise self.absence(tuple(sorted(absent)))

    def absence(self, names: tuple[str, ...]) -> SectionError:
        """Return the error for a show whose robots are not all connected."""
        known = [f"{name}: {self.refused[name]}" for name in names if name in self.refused]
        reason = "; ".join(["not all robots are connected", *known])
        return SectionError("the first one", reason, names)

    async def _play_section(
        self, section: Section, scores: Mapping[str, Score], cast: Cast, sounds: _ShowSounds
    ) -> SectionReport:
        own = scores.get("")
        parts = {cast.robots[role]: score for role, score in scores.items() if role}
        begun: asyncio.Future[float] = self._loop.create_future()

        def handle_event(event: ConductorEvent) -> None:
            if isinstance(event, SectionCommitted) and not begun.done():
                begun.set_result(event.start_s)
            elif isinstance(event, StopBegan):
                stops.append(event.stop)
                cues.cancel()

        stops = [] if self.conductor.stop_holds is None else [self.conductor.stop_holds]
        remove_listener = self.conductor.on_event(handle_event)
        cues = self._loop.create_task(self._play_cues(own, begun, sounds))
        try:
            played = SectionEnded("", section.name, {})
            if parts:
                played = await self.conductor.play(section, parts, sounds.robots)
            elif stops:
                raise SectionError(section.name, "a stop holds; reset it first")
            else:
                begun.set_result(self._loop.time() + _READY_S)
            await asyncio.wait({cues})
            if cues.cancelled() and stops:
                raise SectionError(section.name, f"stopped by {stops[-1].by}")
            late = cues.result()
        except BaseException:
            if self._speaker is not None:
                self._speaker.silence()
            raise
        finally:
            remove_listener()
            cues.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await cues
        return SectionReport(section.name, played.reports, late, played.lost, played.faults)

    async def _play_cues(
        self, score: Score | None, begun: "asyncio.Future[float]", sounds: _ShowSounds
    ) -> tuple[tuple[str, float | None], ...]:
        """Carry out this computer's own cues; return how late each was."""
        start_s = await begun
        cues = () if score is None else score.cues
        return tuple(
            await asyncio.gather(
                *(self._play_cue(each, start_s + each.at_s, sounds) for each in cues)
            )
        )

    async def _play_cue(
        self, cue: Cue, due_s: float, sounds: _ShowSounds
    ) -> tuple[str, float | None]:
        late_s: float | None
        try:
            if cue.kind is CueKind.SOUND:
                assert self._speaker is not None
                begun = self._speaker.play(sounds.own[cue.value], due_s)
                await asyncio.wait({begun})
                # A stop ends a sound before it has begun.
                late_s = None if begun.cancelled() else begun.result() - due_s
            else:
                await asyncio.sleep(max(0.0, due_s - self._loop.time()))
                assert self._sender is not None
                self._sender.send(OscMessage(cue.value, cue.args), cue.to)
                late_s = self._loop.time() - due_s
        except RoteError as error:
            self._tell(f"the cue {cue.label} failed: {error}")
            late_s = None
        return cue.label, late_s

    # ---- triggers -------------------------------------------------------------------------------

    async def _wait_for_trigger(self, trigger: Trigger, section: Section, ended_s: float) -> None:
        """Wait for the trigger of a section. GO begins it too, whatever its trigger is.

        A stop meanwhile ends the show: nothing begins by itself after a stop. If this computer is
        suspended meanwhile, only GO begins it: it would begin late and unexpectedly.
        """
        self._go_given.clear()
        wanted: dict[TriggerKind, Callable[[], Any]] = {
            TriggerKind.GO: self._go_given.wait,
            TriggerKind.AFTER: lambda: _sleep_until(self._loop, ended_s + trigger.seconds),
            TriggerKind.AT: lambda: asyncio.sleep(_seconds_until(trigger)),
            TriggerKind.OSC: lambda: self._wait_for_osc(trigger.address),
            TriggerKind.HEARD: lambda: self._wait_for_word(trigger.word),
        }
        if trigger.on is not TriggerKind.AFTER:
            self._tell(_describe_trigger(trigger, section))
        stopped: asyncio.Future[None] = self._loop.create_future()

        def handle_event(event: ConductorEvent) -> None:
            if stopped.done():
                return
            if isinstance(event, StopBegan):
                reason = f"stopped by {event.stop.by}"
                stopped.set_exception(SectionError(section.name, reason))
            elif isinstance(event, ComputerSuspended) and trigger.on is not TriggerKind.GO:
                reason = f"the conductor's computer was suspended for {event.seconds:.1f} s"
                stopped.set_exception(SectionError(section.name, reason))

        remove_listener = self.conductor.on_event(handle_event)
        waits: list[asyncio.Future[Any]] = [
            stopped,
            asyncio.ensure_future(wanted[trigger.on]()),
            asyncio.ensure_future(self._go_given.wait()),
        ]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            remove_listener()
            for each in waits:
                each.cancel()

    def _on_osc(self, message: OscMessage) -> None:
        if message.address == STOP_ADDRESS:
            task = self._loop.create_task(self.stop("OSC"))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif message.address == GO_ADDRESS:
            self.go()
        if message.address == self._awaited_osc:
            self._osc_arrived.set()

    async def _wait_for_osc(self, address: str) -> None:
        if self._osc is None:
            raise BadRequestError(
                f"a section waits for the OSC message {address}, but no OSC port is open",
                "Open a port for OSC.",
            )
        self._awaited_osc = address
        self._osc_arrived.clear()
        await self._osc_arrived.wait()

    async def _wait_for_word(self, word: str) -> None:
        before = {name: state.heard for name, state in self.robots.items()}
        while True:
            for name, state in self.robots.items():
                new = set(state.heard) - set(before.get(name, ()))
                if any(word.lower() in speech.partition(" ")[2].lower() for speech in new):
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


async def _sleep_until(loop: asyncio.AbstractEventLoop, when_s: float) -> None:
    await asyncio.sleep(max(0.0, when_s - loop.time()))


def _seconds_until(trigger: Trigger) -> float:
    """Return the time until the next occurrence of a time of day, in seconds."""
    now = datetime.datetime.now().astimezone()
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    left = (midnight - now).total_seconds() + trigger.time_of_day_s
    return left if left >= 0.0 else left + 86400.0


def _describe_trigger(trigger: Trigger, section: Section) -> str:
    what = {
        TriggerKind.GO: "GO",
        TriggerKind.AT: trigger.time,
        TriggerKind.OSC: f"OSC {trigger.address}",
        TriggerKind.HEARD: f"the word {trigger.word!r}",
    }[trigger.on]
    return f"section {section.name!r} waits for {what}"


def _select_scores(
    checked: CheckedShow, section: Section, pace: float, *, motion: bool
) -> dict[str, Score]:
    """Return each role's score in a section; the conductor's own has the role ""."""
    found = {}
    for (name, role), score in checked.scores.items():
        if name == section.name:
            paced = score.at_pace(pace)
            paced = paced if motion else paced.without_motion()
            if not paced.empty:
                found[role] = paced
    return found


@asynccontextmanager
async def open_stage(
    folder: str | Path | None = None,
    *,
    endpoint: str = "127.0.0.1:7447",
    tell: TextCallback = lambda _text: None,
    mute: bool = False,
) -> AsyncIterator[Stage]:
    """Open the stage of a folder; without a folder, open a test stage for this computer only.

    With `mute` this computer's sounds are inaudible, but still timed.
    """
    if folder is None:
        keys, bus, refused = StageKeys(TRY_STAGE), await StageBus.conduct(endpoint), {}
    else:
        made = StageFolder(Path(folder))
        made.check()
        refused = made.invitation_faults()
        for name, fault in refused.items():
            tell(f"{name}: {fault}")
        keys = made.keys
        bus = await StageBus.conduct(made.endpoint, made.credentials, keys.grants(made.agents))
    try:
        async with Conductor(bus, keys.stage) as conductor:
            opened = Stage(conductor, tell, mute=mute)
            opened.refused = refused
            try:
                yield opened
            finally:
                await opened.close()
    finally:
        await bus.close()
