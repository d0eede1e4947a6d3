"""The robots, takes and playbacks of the API, blocking.

Made by `python scripts/blocking_robots.py`; do not edit it.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rote import messages as m
from rote.blocking import Blocking, BlockingBlock, Closable
from rote.errors import RoteError
from rote.findings import Finding
from rote.messages import Interpolation, Keyframe, RobotState, Sound
from rote.model.family import Build, Family
from rote.motion.keyframes.search import Compressed
from rote.motion.record import Sample
from rote.motion.track import Track
from rote.robot.api_values import (
    Actions,
    ModeReport,
    PlayReport,
    Progress,
    SoundReport,
    StreamReport,
    TopicMessage,
    WaitListener,
)
from rote.robot.playing import Playing
from rote.robot.robot import Robot
from rote.robot.streaming import Offload, TimedStart, TrackCheck
from rote.robot.take import Lack, SampleListener, Take

if TYPE_CHECKING:
    from rote.motion.files.library import Library

__all__ = ["BlockingTake", "BlockingPlaying", "BlockingRobot", "BlockingG1"]


class BlockingTake(Blocking[Take]):
    """A take, as `with robot.teach(...) as take` has it. Its `track` is the recording."""

    @property
    def name(self) -> str:
        """The name under which the robot is to store it."""
        return self._target.name

    @property
    def build(self) -> Build:
        """The machine whose joints it records."""
        return self._target.build

    @property
    def saved(self) -> bool:
        """Whether the robot has stored it under its name, and lists it."""
        return self._target.saved

    @property
    def on_robot(self) -> bool:
        """Whether the robot should have it under its name, by its answers; `saved` once it is
        listed.
        """
        return self._target.on_robot

    @property
    def robot_s(self) -> float | None:
        """Its length in seconds by the robot's own list; None if that is not known."""
        return self._target.robot_s

    @property
    def robot_note(self) -> str:
        """What the robot added when it stored it, in its own words; mostly nothing."""
        return self._target.robot_note

    @property
    def lacks(self) -> frozenset[Lack]:
        """What the robot did not report."""
        return self._target.lacks

    @property
    def paused(self) -> bool:
        """Whether nothing is recorded at the moment."""
        return self._target.paused

    @property
    def file(self) -> Path | None:
        """Where it is on this computer's disk, after the block, if a library was given."""
        return self._target.file

    @property
    def file_problem(self) -> RoteError | None:
        """Why it is not on the disk; set as soon as writing fails, while recording goes on in
        memory.
        """
        return self._target.file_problem

    @property
    def discarded(self) -> bool:
        """Whether nothing is to be stored."""
        return self._target.discarded

    @property
    def track(self) -> Track:
        """The joints as the robot reported them, at the rate it reported them."""
        return self._target.track

    @property
    def samples(self) -> int:
        """How many samples have been recorded so far."""
        return self._target.samples

    @property
    def source(self) -> str:
        """Where it comes from, as text."""
        return self._target.source

    @property
    def clock_is_the_robots(self) -> bool:
        """Whether its times are those that the robot reported."""
        return self._target.clock_is_the_robots

    def rows(self, first: int = 0, count: int | None = None) -> Sequence[Sample]:
        """Return at most `count` samples from number `first` on."""
        return self._call(lambda: self._target.rows(first, count))

    def on_sample(self, listener: SampleListener) -> Callable[[], None]:
        """Call `listener` with every sample from now on. Return a function that removes it."""
        return self._call(lambda: self._target.on_sample(listener))

    def discard(self) -> None:
        """Do not save this take when the block ends."""
        self._call(self._target.discard)

    def pause(self) -> None:
        """Leave out what happens from now on, on wires that can; the joints stay soft.

        Raises `UnsupportedError` if the wire cannot pause.
        """
        self._run(self._target.pause)

    def resume(self) -> None:
        """Record again. The pause is cut out, and a soft way leads from the last pose to
        the next.
        """
        self._run(self._target.resume)

    def mark(self, label: str) -> None:
        """Add a mark with that label at the newest sample. Called by the teaching code."""
        self._call(lambda: self._target.mark(label))


class BlockingPlaying(Blocking[Playing]):
    """What `robot.start` returns: iterate over it to watch, `wait` for the end, or `stop` it."""

    @property
    def name(self) -> str:
        """The name of the motion."""
        return self._target.name

    def started(self) -> "BlockingPlaying":
        """Wait until the robot has accepted, and return this playback; raises if it was refused."""
        return BlockingPlaying(self._thread, self._run(self._target.started))

    @property
    def done(self) -> bool:
        """Whether the playback has ended."""
        return self._target.done

    @property
    def progress(self) -> Progress | None:
        """The progress; None before the robot has reported."""
        return self._target.progress

    def wait(self) -> PlayReport:
        """Wait for the end, soft return included, and return the report.

        Ctrl-C in the wait does not stop the robot.
        """
        return self._run(self._target.wait)

    def stop(self) -> None:
        """Stop with a soft return, wait until the arms are at rest, and return the report."""
        self._run(self._target.stop)

    def __iter__(self) -> Iterator[Progress]:
        """Iterate over the progress until the playback is over."""
        return self._iterate(self._target.__aiter__)


class BlockingRobot(Closable[Robot]):
    """One connected robot, as `rote.sync.connect` and `rote.sync.open` return it."""

    @property
    def url(self) -> str:
        """The URL of the robot."""
        return self._target.url

    @property
    def abilities(self) -> frozenset[str]:
        """What this robot can do over this wire; the names are in the module's docstring."""
        return self._target.abilities

    @property
    def build(self) -> Build:
        """Which machine it is: its joints, in the order of a state's positions."""
        return self._target.build

    @property
    def family(self) -> Family | None:
        """The kind of robot; None if rote does not know the machine."""
        return self._target.family

    @property
    def state(self) -> RobotState | None:
        """The newest state that the robot reported; None before the first."""
        return self._target.state

    def states(self) -> Iterator[RobotState]:
        """Iterate over the robot's states as they arrive.

        Raises `LinkError` when the robot is lost.
        """
        return self._iterate(self._target.states)

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""
        return self._call(lambda: self._target.on_state(listener))

    def on_topic(self, topic: str, listener: Callable[[TopicMessage], None]) -> Callable[[], None]:
        """Call `listener` with every message on a topic. Return a function that removes it."""
        return self._call(lambda: self._target.on_topic(topic, listener))

    def on_waiting(self, listener: WaitListener) -> Callable[[], None]:
        """Call `listener` with each `Waiting` when it begins, and with None when it is over.

        Return a function that removes the listener.
        """
        return self._call(lambda: self._target.on_waiting(listener))

    def preflight(self) -> list[Finding]:
        """Return what a person should know before the robot moves, the worst first."""
        return self._run(self._target.preflight)

    def take_findings(self) -> list[Finding]:
        """Return what makes a take on this computer poorer than the robot's own recording; nothing
        is sent to the robot. Preflight has it, too.
        """
        return self._run(self._target.take_findings)

    def describe(self) -> dict[str, Any]:
        """Return what the robot reports beside its state: modes, versions, and the like."""
        return self._run(self._target.describe)

    def controller(self) -> str | None:
        """Return which controller drives the robot: "" in debug mode, None if the robot does not
        say.
        """
        return self._run(self._target.controller)

    def stop(self) -> None:
        """Stop whatever plays or is being taught. Always allowed, and safe to repeat."""
        self._run(self._target.stop)

    @property
    def stop_pending(self) -> bool:
        """Whether a stop was requested and the robot has not confirmed it; it is sent first after a
        reconnect.
        """
        return self._target.stop_pending

    def check_streamable(self) -> None:
        """Raise `UnsupportedError`, with what to do, if no track can be streamed to the robot as it
        is connected.
        """
        self._call(self._target.check_streamable)

    def check_wanted(self, ability: str) -> None:
        """Raise what speaks against connecting for an ability while the robot is in its current
        state.
        """
        self._call(lambda: self._target.check_wanted(ability))

    def close(self) -> None:
        """End what was begun over this connection, then close it. Safe to repeat.

        Joints that are being taught hold, a playback stops softly. A `with rote.sync.connect(...)`
        block closes the connection by itself.
        """
        self._close(self._target.close)

    def teach(
        self,
        name: str,
        *,
        overwrite: bool = False,
        force: bool = False,
        library: "Library | None" = None,
        loop: bool = False,
        compensation: Sequence[float] = (),
    ) -> BlockingBlock[BlockingTake]:
        """Teach a motion: joints are soft inside the `with` block and hold again
        after it.

        The block's value is a `BlockingTake`. `overwrite` replaces an action of the same name,
        `force` skips rote's own doubts, a `library` keeps the take on this computer's disk. Raises
        `BadRequestError` for an impossible name, and on entering `CautionError` or `RefusedError`
        if teaching is not possible now.
        """
        return BlockingBlock(
            self._thread,
            self._call(
                lambda: self._target.teach(
                    name,
                    overwrite=overwrite,
                    force=force,
                    library=library,
                    loop=loop,
                    compensation=compensation,
                )
            ),
            BlockingTake,
        )

    def check_teachable(self, name: str, *, overwrite: bool = False, force: bool = False) -> bool:
        """Raise what `teach` would raise; return whether it would replace an action."""
        return self._run(
            lambda: self._target.check_teachable(name, overwrite=overwrite, force=force)
        )

    def save(
        self,
        name: str,
        duration_s: float,
        *,
        overwrite: bool = False,
        loop: bool = False,
        frames: int = 0,
    ) -> str:
        """Save the recording the robot still holds; returns what the robot adds, mostly nothing."""
        return self._run(
            lambda: self._target.save(
                name, duration_s, overwrite=overwrite, loop=loop, frames=frames
            )
        )

    def actions(self) -> Actions:
        """Return the presets and the taught actions."""
        return self._run(self._target.actions)

    def play(
        self,
        name: str | int,
        *,
        speed: float | None = None,
        duration: float | None = None,
        loop: bool = False,
        interpolation: str | Interpolation = Interpolation.LINEAR,
        frames: int = 0,
        keyframes: Sequence[Keyframe] = (),
    ) -> PlayReport:
        """Play a taught action, by its name or by its number in the list, and
        return its report when it is over.

        Ctrl-C stops the robot softly. `start` returns at once, for a motion to be watched or
        stopped.
        """
        return self._run(
            lambda: self._target.play(
                name,
                speed=speed,
                duration=duration,
                loop=loop,
                interpolation=interpolation,
                frames=frames,
                keyframes=keyframes,
            )
        )

    def start(
        self,
        name: str | int,
        *,
        speed: float | None = None,
        duration: float | None = None,
        loop: bool = False,
        interpolation: str | Interpolation = Interpolation.LINEAR,
        frames: int = 0,
        keyframes: Sequence[Keyframe] = (),
    ) -> "BlockingPlaying":
        """Begin to play a taught action, and return when the robot has accepted;
        raise if it refuses.

        The result is iterated over to watch, or `stop`ped. Arguments are those of `play`.
        """
        return BlockingPlaying(
            self._thread,
            self._run(
                lambda: self._target.start(
                    name,
                    speed=speed,
                    duration=duration,
                    loop=loop,
                    interpolation=interpolation,
                    frames=frames,
                    keyframes=keyframes,
                )
            ),
        )

    def play_track(
        self,
        track: Track,
        *,
        rate_hz: float = 250.0,
        speed: float = 1.0,
        force: bool = False,
        mapped: bool = False,
        hands: bool = False,
        checked: TrackCheck | None = None,
        offload: Offload | None = None,
        at: float | TimedStart | None = None,
        imported: bool = False,
    ) -> StreamReport:
        """Play a track of this computer, and return its report when it is
        over.

        `rate_hz` poses per second are sent; `speed` is a factor. The track is checked first: errors
        raise `UnsafeMotionError`, warnings `WarnedMotionError` unless `force` is true. A track of
        another build raises `OtherBuildError`; with `mapped` it is played by joint names. Joints of
        hands are played only with `hands`. What was `checked` of this very track is not checked
        again. Ctrl-C stops the robot softly.
        """
        return self._run(
            lambda: self._target.play_track(
                track,
                rate_hz=rate_hz,
                speed=speed,
                force=force,
                mapped=mapped,
                hands=hands,
                checked=checked,
                offload=offload,
                at=at,
                imported=imported,
            )
        )

    def store_track(
        self,
        track: Track,
        name: str,
        *,
        budget: int = m.MAX_KEYFRAMES,
        overwrite: bool = False,
        loop: bool = False,
        offload: Offload | None = None,
        imported: bool = False,
    ) -> Compressed:
        """Store a track of this computer as a taught action of at most `budget` keyframes.

        `overwrite` replaces an action of the same name.

        Return the keyframes with their error. Raises `UnsafeMotionError` if they differ too much
        from the track. `offload` runs what takes long elsewhere. `imported` is that of
        `play_track`.
        """
        return self._run(
            lambda: self._target.store_track(
                track,
                name,
                budget=budget,
                overwrite=overwrite,
                loop=loop,
                offload=offload,
                imported=imported,
            )
        )

    def say(self, text: str, language: str = "en") -> None:
        """Let the robot say something; returns when the robot has accepted."""
        self._run(lambda: self._target.say(text, language))

    def light(self, red: int, green: int, blue: int) -> None:
        """Give the light on the robot's head a colour, 0 to 255 each."""
        self._run(lambda: self._target.light(red, green, blue))

    def sound(self, sound: Sound | str | Path) -> SoundReport:
        """Play a sound by the robot's loudspeaker, and return when it is over.

        A path is read as a sound file. Cancelling it ends the sound.
        """
        return self._run(lambda: self._target.sound(sound))

    def on_audio(
        self, listener: Callable[[m.HeardSpeech | m.SoundState], object]
    ) -> Callable[[], None]:
        """Call `listener` with what the robot hears, and when its loudspeaker begins and ends.

        Return a function that removes it.
        """
        return self._call(lambda: self._target.on_audio(listener))

    def perform(self, preset: int | str) -> None:
        """Perform a factory action, by its id or name, and wait for its end."""
        self._run(lambda: self._target.perform(preset))

    def rename(self, old: str, new: str) -> None:
        """Rename a taught action. Raises `RefusedError` if `new` exists or `old` does not."""
        self._run(lambda: self._target.rename(old, new))

    def delete(self, name: str) -> None:
        """Delete a taught action for good. Raises `RefusedError` if there is none of that name."""
        self._run(lambda: self._target.delete(name))

    def check_can_delete(self) -> None:
        """Raise `UnsupportedError` if this robot cannot delete; nothing is asked of it."""
        self._call(self._target.check_can_delete)

    def move_by_hand(self, script: str, seconds: float) -> None:
        """Let the scripted hand of a simulated robot move its soft joints for `seconds`."""
        self._run(lambda: self._target.move_by_hand(script, seconds))

    def send(self, command: int, payload: bytes = b"") -> m.Reply:
        """Send one documented frame, checked like everything else; returns the robot's answer."""
        return self._run(lambda: self._target.send(command, payload))

    def sync_parameters(self, parameters: bytes) -> None:
        """Send the robot parameters that only it understands."""
        self._run(lambda: self._target.sync_parameters(parameters))

    def mode(self) -> ModeReport:
        """Return the mode the robot is in."""
        return self._run(self._target.mode)

    def stand(self) -> ModeReport:
        """Bring the robot into a balanced stand, and return when it stands."""
        return self._run(self._target.stand)

    def damp(self, *, yes: bool = False) -> ModeReport:
        """Damp all joints: a standing robot sinks down. A G1 that stands wants `yes` for it."""
        return self._run(lambda: self._target.damp(yes=yes))

    def lie_down(self) -> ModeReport:
        """Make the robot lie down. It returns when the command is sent."""
        return self._run(self._target.lie_down)


class BlockingG1(BlockingRobot):
    """One connected G1, as `rote.sync.connect(url, family="g1")` returns it."""
