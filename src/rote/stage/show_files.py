"""The files of a show: the show itself, its cast, its takes and its sounds."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rote.errors import BadRequestError
from rote.messages import SOUND_RATE_HZ, Sound
from rote.motion import files
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.platform import paths
from rote.stage.show import file as shows
from rote.stage.show.file import Cast, CueKind, Show
from rote.transport.sound import CHANNELS, RATE_HZ, read_sound, sound_seconds


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
class ShowSounds:
    """The sounds of a show, decoded before it begins."""

    conductor: Mapping[str, Sound]
    """Those that the conductor's computer plays."""
    robots: Mapping[str, bytes]
    """Those that robots play, as samples."""


def decode_sounds(show: Show, files: ShowFiles | None) -> ShowSounds:
    """Return the sounds of a show. Raises `BadRequestError` if one of them cannot be read."""
    cues = [cue for section in show.sections for cue in section.cues]
    sound_cues = [cue for cue in cues if cue.kind is CueKind.SOUND]
    if not sound_cues:
        return ShowSounds({}, {})
    if files is None:
        raise BadRequestError("the files of this show's sounds are missing", "Pass its `files`.")
    conductor = {cue.value for cue in sound_cues if not cue.role}
    robots = {cue.value for cue in sound_cues if cue.role}
    return ShowSounds(
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
