"""Several robots as one, from Python: `rote.open_stage`.

async with rote.open_stage("my-stage") as stage:
    report = await stage.play("show.json", cast={"left": "ann", "right": "bob"})
"""

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from rote.errors import BadRequestError
from rote.session.stage_conductor import Standing
from rote.session.stage_events import (
    ConductingBegan,
    ConductorEvent,
    StopBegan,
    StopUnconfirmed,
    Superseded,
)
from rote.stage.conductor import Conductor, SectionError, StopAnswer
from rote.stage.cues import CueStatus, describe_other_conductor
from rote.stage.folder import StageFolder
from rote.stage.keys import StageKeys, is_name
from rote.stage.leads import check_lead
from rote.stage.osc_remote import OscRemote
from rote.stage.own_cues import OwnCues
from rote.stage.report import SectionReport, ShowReport
from rote.stage.show.check import CheckedShow, check_show
from rote.stage.show.file import Cast, find_droppable
from rote.stage.show_files import ShowFiles, decode_sounds, read_cast, read_show
from rote.stage.show_lock import check_lock
from rote.stage.show_run import PreparedShow, ShowRun
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import AgentState

TRY_STAGE = "try"
_MAX_CERTIFICATE_NAME = 64
TextCallback = Callable[[str], None]


class Stage:
    """A stage that is open: its conductor runs in this process."""

    def __init__(
        self, conductor: Conductor, tell: TextCallback = lambda _text: None, *, mute: bool = False
    ) -> None:
        self.conductor = conductor
        self.refused: dict[str, str] = {}
        """Why invited agents cannot join, by name, as far as known."""
        self.muted: set[str] = set()
        """The robots that take no part until they are unmuted."""
        self._notify_user = tell
        self._loop = asyncio.get_running_loop()
        self.osc = OscRemote(self, tell)
        self.own_cues = OwnCues(tell, mute=mute)
        self._run: ShowRun | None = None
        """The show that is under way."""
        self._takeover: asyncio.Future[ConductingBegan | None] = self._loop.create_future()
        """How a standby ends: it conducts, or None if the operator has ended it."""
        conductor.on_event(self._on_conductor_event)

    @property
    def robots(self) -> Mapping[str, AgentState]:
        """The newest state of every agent."""
        return self.conductor.agents

    def note_refusal(self, name: str, reason: str) -> None:
        """Record that an agent asks to join and may not, and report it once."""
        if self.refused.get(name) != reason:
            self.refused[name] = reason
            self._notify_user(f"{name} asks to join and is refused: {reason}.")

    def _on_conductor_event(self, event: ConductorEvent) -> None:
        if isinstance(event, StopBegan | Superseded):
            self.own_cues.silence()
        if isinstance(event, StopUnconfirmed):
            names = ", ".join(event.agents)
            self._notify_user(f"STOP was NOT confirmed by {names}: use the remote!")
        if isinstance(event, ConductingBegan) and not self._takeover.done():
            self.muted.update(event.muted)
            self._takeover.set_result(event)

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
        return await self.osc.listen(host, port, cues=cues)

    async def close(self) -> None:
        """Close all ports and the loudspeaker."""
        self.osc.close()
        self.own_cues.close()

    # ---- the cue list -----------------------------------------------------------------------

    @property
    def cues(self) -> CueStatus | None:
        """What a cue list shows; None if no show is under way."""
        return None if self._run is None else self._run.status

    def go(self) -> None:
        """Begin the section that waits for GO, or let a paused one go on.

        At the end of a section with `hold` it also begins the next section that waits for GO.

        Raises `BadRequestError` if a paused section cannot go on, at a standby, or if this computer
        hung until just now.
        """
        self.conductor.require_conducting()
        self.conductor.refuse_late_go()
        if self._run is not None:
            self._run.go()
        elif self.conductor.session.section.is_paused:
            self.conductor.resume()

    def pause(self) -> None:
        """Pause the section that plays: the robots slow down softly and hold their poses.

        It is not a stop: their arms stay stiff, and GO lets all go on together. Raises
        `BadRequestError` if it cannot be paused now.
        """
        (self._run or self.conductor).pause()

    def resume(self) -> None:
        """Let a paused section go on where it is.

        Raises `BadRequestError` if a robot does not hold its pose, or if this computer hung until
        just now; then all stay paused.
        """
        self.conductor.refuse_late_go()
        (self._run or self.conductor).resume()

    def back(self) -> None:
        """Select the previous section; if a section plays, end it softly and select it again.

        The selected section waits for GO. Raises `BadRequestError` if no show is under way.
        """
        self._require_run().back()

    def skip(self) -> None:
        """Select the next section, which waits for GO; a section that plays ends softly.

        Raises `BadRequestError` if no show is under way.
        """
        self._require_run().skip()

    def jump(self, section: str) -> None:
        """Select a section by its name; it waits for GO. A section that plays ends softly.

        Raises `BadRequestError` for an unknown name, or if no show is under way.
        """
        self._require_run().jump(section)

    def finish(self) -> None:
        """End the show; a section that plays ends softly. Raises `BadRequestError` without one.

        A standby that waits ends; the show of the other conductor goes on.
        """
        if self._is_standing_by:
            self._takeover.set_result(None)
        else:
            self._require_run().finish()

    def mute(self, robot: str, *, muted: bool = True) -> None:
        """Let a robot take no part: it stops softly at once, and the others go on.

        An unmuted robot takes part again from the next section on. Raises `BadRequestError` for a
        robot that is not in the cast.
        """
        self._require_run().mute(robot, muted=muted)

    def _require_run(self) -> ShowRun:
        self.conductor.require_conducting()
        if self._run is None:
            raise BadRequestError("no show is under way", "Run one first.")
        return self._run

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

    # ---- a standby --------------------------------------------------------------------------

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
            stop=session.current.stop,
            has_ended=session.other.has_ended,
            is_silent=session.other.is_silent(self._loop.time()),
            alive=self.conductor.alive,
        )
        own_stop = session.find_stop_to_repeat(self._loop.time())
        return text if own_stop is None else f"{text} | STOP by {own_stop.by} is repeated from here"

    # ---- shows ------------------------------------------------------------------------------

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
        endings = self.conductor.session.endings
        cast = read_cast(cast)
        checked, files = await self._check_show(show, cast, files)
        checked.require()
        first_index = checked.show.find_section(first) if first else 0
        if not selected:  # until GO robots may join, and a person may mute the others
            self._check_present(cast, find_droppable(checked.show, cast))
        sounds = await asyncio.to_thread(decode_sounds, checked.show, files)
        await self.own_cues.open(checked.show)
        run = self._run = ShowRun(
            PreparedShow(checked, cast, sounds, pace, motion=motion, automatic=automatic),
            self.conductor,
            self.own_cues,
            self.osc,
            self._notify_user,
            muted=self.muted,
            endings=endings,
        )
        try:
            async for report in run.sections(
                first_index, begun=begun, is_selected=selected, on_interrupted=on_interrupted
            ):
                yield report
        finally:
            self._run = None
        self.conductor.show_section("", self.muted)
        await self.own_cues.wait_until_silent()

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

    def _check_present(self, cast: Cast, may_drop: Collection[str]) -> None:
        needed = set(cast.robots.values()) - set(may_drop) - self.muted
        if absent := [name for name in needed if not self.conductor.alive(name)]:
            raise self.make_absence_error(tuple(sorted(absent)))

    def make_absence_error(self, names: tuple[str, ...]) -> SectionError:
        """Return the error for a show that cannot begin because these robots are not connected,
        with the reason for each of them that was refused.
        """
        refusals = [f"{name}: {self.refused[name]}" for name in names if name in self.refused]
        reason = "; ".join(["not all robots are connected", *refusals])
        return SectionError("", reason, names)


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
