"""The takes on this computer, for the page. Names are checked before any file is accessed."""

import asyncio
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, TypeVar

import numpy as np

from rote.errors import BadRequestError, RoteError
from rote.model.registry import find_build
from rote.motion import files
from rote.motion.files.library import Entry, Library, check_name
from rote.motion.files.thumbnail import thumbnail
from rote.motion.formats import FORMATS, endings
from rote.motion.track import Track
from rote.web.problems import ProblemError

MAX_ROWS = 1500
_MAX_THUMBNAILS = 512
_CHUNK = 2**20

T = TypeVar("T")


class TakeService:
    """A library whose files are accessed by a separate thread, because disks block."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rote shelf")
        self._thumbnails: OrderedDict[tuple[str, int, int], str] = OrderedDict()

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    def check_name(self, name: str) -> str:
        """Return a take's name, or raise `BadRequestError` saying what is wrong with it."""
        return check_name(name)

    def has(self, name: str) -> bool:
        """Whether there is a take of that name."""
        return bool(self.library.versions(self.check_name(name)))

    async def entries(self, search: str = "") -> list[dict[str, Any]]:
        """Return the takes as documents, each with its picture."""
        return await self._away(
            lambda: [self._document(entry) for entry in self.library.list(search)]
        )

    def newest(self, name: str) -> int:
        """Return the number of a take's newest version."""
        self._need(name)
        return self.library.versions(name)[-1]

    async def load(self, name: str, version: int | None = None) -> Track:
        """Read a take; the newest version by default."""
        self._need(name)
        return await self._away(lambda: self._load(name, version))

    async def save(self, track: Track, name: str) -> dict[str, Any]:
        """Save a track as a take."""
        self.check_name(name)
        return await self._away(lambda: self._document(self.library.save(track, name)))

    async def rename(self, old: str, new: str) -> dict[str, Any]:
        """Rename a take."""
        self._need(old)
        self.check_name(new)
        return await self._away(lambda: self._document(self.library.rename(old, new)))

    async def delete(self, name: str) -> None:
        """Move a take to the library's trash."""
        self._need(name)
        await self._away(lambda: self.library.delete(name))

    async def tag(self, name: str, add: list[str], remove: list[str]) -> dict[str, Any]:
        """Add tags to a take, and remove others."""
        self._need(name)
        return await self._away(lambda: self._document(self.library.tag(name, add, remove)))

    async def import_file(self, called: str, file: BinaryIO) -> dict[str, Any]:
        """Add an uploaded file; only the stem and the ending of its name are used."""
        shown = PurePosixPath(called.replace("\\", "/")).name
        suffix = PurePosixPath(shown).suffix.lower()
        if suffix not in FORMATS:
            raise BadRequestError(
                f"{shown!r} has no ending that is known here",
                f"Choose a file that ends in {endings()}.",
            )
        name = self.check_name(PurePosixPath(shown).stem.strip())

        def read() -> dict[str, Any]:
            with tempfile.TemporaryDirectory(prefix="rote-") as folder:
                path = Path(folder) / f"upload{suffix}"
                with path.open("wb") as copy:
                    while chunk := file.read(_CHUNK):
                        copy.write(chunk)
                try:
                    track = files.load(path)
                except BadRequestError as error:
                    message = str(error).replace(str(path), shown)
                    raise BadRequestError(message, error.remedy) from None
            if track.source == f"file {path.name}":
                track = replace(track, source=f"file {shown}")
            return self._document(self.library.save(track, name))

        return await self._away(read)

    async def export_file(self, name: str, ending: str) -> bytes:
        """Return a take as a file of another format."""
        self._need(name)

        def write() -> bytes:
            with tempfile.TemporaryDirectory(prefix="rote-") as folder:
                path = Path(folder) / f"take.{ending}"
                files.save(self._load(name), path)
                return path.read_bytes()

        return await self._away(write)

    def _need(self, name: str) -> None:
        if not self.has(name):
            raise ProblemError(
                404, "no-such-take", f"there is no take {name!r}", "Look at the list of takes."
            )

    def _load(self, name: str, version: int | None = None) -> Track:
        try:
            return self.library.load(name, version)
        except BadRequestError as error:
            message = str(error).replace(f"{self.library.folder}/", "")
            raise BadRequestError(message, error.remedy) from None

    def _document(self, entry: Entry) -> dict[str, Any]:
        build = find_build(entry.variant)
        return {
            "name": entry.name,
            "duration_s": round(entry.duration_s, 4),
            "samples": entry.samples,
            "version": entry.version,
            "versions": list(self.library.versions(entry.name)),
            "tags": list(entry.tags),
            "variant": entry.variant,
            "family": None if build is None else build.family,
            "title": entry.variant if build is None else build.title,
            "source": entry.source,
            "problem": entry.problem.replace(f"{self.library.folder}/", ""),
            "thumbnail": "" if entry.problem else self._thumbnail(entry),
        }

    def _thumbnail(self, entry: Entry) -> str:
        """Return a take's picture, drawn once for each version of its file."""
        try:
            facts = entry.path.stat()
            key = (str(entry.path), facts.st_mtime_ns, facts.st_size)
            if key not in self._thumbnails:
                self._thumbnails[key] = thumbnail(files.load(entry.path, any_joints=True))
        except (OSError, RoteError):
            return ""
        self._thumbnails.move_to_end(key)
        while len(self._thumbnails) > _MAX_THUMBNAILS:
            self._thumbnails.popitem(last=False)
        return self._thumbnails[key]

    async def _away(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def curves(track: Track) -> dict[str, Any]:
    """Return a track as the page draws it: at most 1500 rows, including the last one."""
    rows = np.unique(np.linspace(0, max(len(track) - 1, 0), min(len(track), MAX_ROWS)).astype(int))
    return {
        "names": list(track.names),
        "times_s": np.round(track.times_s[rows], 4).tolist(),
        "joints_rad": np.round(track.joints_rad[rows], 4).tolist(),
        "duration_s": round(track.duration_s, 4),
        "marks": [{"time_s": mark.time_s, "label": mark.label} for mark in track.marks],
        "history": list(track.history),
    }


def whole(name: str, track: Track) -> dict[str, Any]:
    """Return everything the page needs to know about a take."""
    return {"name": name, "rate_hz": round(track.rate_hz, 3), **curves(track)}
