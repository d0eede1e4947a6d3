"""The cues of the conductor's computer: sounds on its loudspeaker, and OSC messages."""

import asyncio
from collections.abc import Callable

from rote.errors import RoteError
from rote.stage.section_time import Hold, SectionTime
from rote.stage.show.file import Cue, CueKind, Show
from rote.stage.show.score import Score
from rote.stage.show_files import ShowSounds
from rote.transport.osc import OscPort
from rote.transport.sound import Loudspeaker
from rote.wire.osc import OscMessage

CueDelays = tuple[tuple[str, float | None], ...]
"""The label of each cue, and how late it was in seconds; None if it failed."""


class OwnCues:
    """Carries out this computer's cues; it opens the loudspeaker and the port that they need."""

    def __init__(self, notify_user: Callable[[str], None], *, mute: bool) -> None:
        self._notify_user, self._mute = notify_user, mute
        self._loop = asyncio.get_running_loop()
        self.speaker: Loudspeaker | None = None
        self._sender: OscPort | None = None

    async def open(self, show: Show) -> None:
        """Open what the cues of a show need. Raises `LinkError` if that is not possible."""
        kinds = {cue.kind for section in show.sections for cue in section.cues if not cue.role}
        if CueKind.SOUND in kinds and self.speaker is None:
            self.speaker = Loudspeaker(mute=self._mute)
        if CueKind.OSC in kinds and self._sender is None:
            self._sender = await OscPort.open(lambda _message: None, "0.0.0.0", 0)  # noqa: S104
        for to in {cue.to for section in show.sections for cue in section.cues if cue.to}:
            assert self._sender is not None
            await self._sender.resolve(to)

    async def play(
        self,
        score: Score | None,
        start: "asyncio.Future[float]",
        sounds: ShowSounds,
        time: SectionTime,
    ) -> CueDelays:
        """Carry out the cues of a section that begins at `start`; return how late each was."""
        start_s = await start
        cues = () if score is None else score.cues
        return tuple(
            await asyncio.gather(
                *(self._play_cue(each, start_s + each.at_s, sounds, time) for each in cues)
            )
        )

    async def _play_cue(
        self, cue: Cue, due_s: float, sounds: ShowSounds, time: SectionTime
    ) -> tuple[str, float | None]:
        """Carry out a cue at `due_s`; return its label, and how late it was (None if it failed)."""
        late_s: float | None
        try:
            if cue.kind is CueKind.SOUND:
                assert self.speaker is not None
                started = self.speaker.play(sounds.conductor[cue.value], due_s)
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

    def follow_hold(self, hold: Hold) -> None:
        """Pause the sounds like the robots, or let them go on."""
        begin_s, end_s = hold
        if self.speaker is None:
            return
        if end_s is None:
            self.speaker.hold(begin_s)
        else:
            self.speaker.release(end_s)

    def silence(self) -> None:
        """End all sounds at once."""
        if self.speaker is not None:
            self.speaker.silence()

    async def wait_until_silent(self) -> None:
        """Wait until all sounds have ended."""
        if self.speaker is not None:
            await self.speaker.wait_until_silent()

    def close(self) -> None:
        """Close the loudspeaker and the port."""
        if self._sender is not None:
            self._sender.close()
        if self.speaker is not None:
            self.speaker.close()
