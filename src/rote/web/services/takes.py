"""The takes on this computer, for the page. Names are checked before any file is accessed."""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, ParamSpec, TypeVar

from rote.errors import BadRequestError
from rote.motion.files import disk
from rote.motion.files.library import Library, check_name
from rote.motion.formats import FORMATS, endings
from rote.motion.track import Track
from rote.web.schemas.robot import UnsavedTake
from rote.web.server.problems import ProblemError
from rote.web.work import takes as take_work
from rote.web.work.pool import IdleChildren, WorkPool

_CHUNK = 2**18

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TakeInMemory:
    """A take that could not be written, and that is in memory only."""

    id: str
    name: str
    track: Track
    problem: str

    def document(self) -> UnsavedTake:
        """Return the take for the page."""
        return {
            "id": self.id,
            "name": self.name,
            "duration_s": round(self.track.duration_s, 4),
            "samples": len(self.track),
            "problem": self.problem,
            "folders": [
                str(each) for each in disk.find_spare_folders(self.track.joints_rad.nbytes)
            ],
        }


class TakeService:
    """A library whose files are read and written by child processes; one writes at a time."""

    def __init__(self, library: Library, children: IdleChildren | None = None) -> None:
        self.library = library
        self.pool = WorkPool(idle=children)
        self._write_lock = asyncio.Lock()
        self.changes = 0
        """Incremented whenever this server changes the library."""
        self.unsaved: dict[str, TakeInMemory] = {}
        """Takes that could not be written, by their ids."""
        self._unsaved_count = 0

    def close(self) -> None:
        """End the children."""
        self.pool.close()

    @property
    def folder(self) -> Path:
        """Where the library is."""
        return self.library.folder

    def check_name(self, name: str) -> str:
        """Return a take's name, or raise `BadRequestError` saying what is wrong with it."""
        return check_name(name)

    def has(self, name: str) -> bool:
        """Whether there is a take of that name."""
        return bool(self.library.versions(self.check_name(name)))

    async def entries(
        self, search: str = "", first: int = 0, count: int | None = None, known: str = ""
    ) -> bytes:
        """Return at most `count` takes from number `first` on as JSON, each with its picture.

        The answer has a tag, a hash of these takes. If the tag is `known`, the takes are left out.
        """
        return await self.pool.run(take_work.entries, self.folder, search, first, count, known)

    async def motion(self, name: str) -> bytes:
        """Return a take as JSON, with its curves."""
        return await self.pool.run(take_work.motion, self.folder, name)

    async def save(self, track: Track, name: str) -> bytes:
        """Save a track as a take; return its library entry as JSON."""
        return await self.write(take_work.save, self.folder, track, name)

    async def rename(self, old: str, new: str) -> bytes:
        """Rename a take; return its library entry as JSON."""
        self.check_name(new)
        return await self.write(take_work.rename, self.folder, old, new)

    async def delete_newest(self, name: str) -> None:
        """Move the newest version of a take to the trash; the previous one becomes the newest."""
        await self.write(take_work.delete_newest, self.folder, name)

    async def delete(self, name: str) -> None:
        """Move a take to the library's trash."""
        await self.write(take_work.delete, self.folder, name)

    async def tag(self, name: str, add: list[str], remove: list[str]) -> bytes:
        """Add tags to a take, and remove others; return its library entry as JSON."""
        return await self.write(take_work.tag, self.folder, name, add, remove)

    async def trash(self) -> bytes:
        """Return the deleted takes as JSON, the newest first."""
        return await self.pool.run(take_work.trash, self.folder)

    async def restore(self, trash_id: str, to: str | None) -> bytes:
        """Restore a deleted take, under the name `to` if given; return its entry as JSON."""
        if to is not None:
            self.check_name(to)
        return await self.write(take_work.restore, self.folder, trash_id, to)

    async def purge(self, trash_id: str) -> None:
        """Delete an item of the trash permanently."""
        await self.write(take_work.purge, self.folder, trash_id)

    async def import_file(
        self,
        file_name: str,
        file: BinaryIO,
        *,
        name: str | None = None,
        degrees: bool = False,
        replace: bool = True,
    ) -> bytes:
        """Save an uploaded motion file as a take; return its library entry as JSON.

        The take gets the file's name unless `name` is given. If a take of that name exists, the
        file becomes its new version; without `replace` it is refused.
        """
        original_name = PurePosixPath(file_name.replace("\\", "/")).name
        suffix = PurePosixPath(original_name).suffix.lower()
        if suffix not in FORMATS:
            raise BadRequestError(
                f"{original_name!r} has an unknown file extension",
                f"Choose a file that ends in {endings()}.",
            )
        name = self.check_name((name or PurePosixPath(original_name).stem).strip())
        with tempfile.TemporaryDirectory(prefix="rote-") as folder:
            path = Path(folder) / f"upload{suffix}"
            await _run_in_thread(_copy_file, file, path)
            return await self.write(
                take_work.import_file,
                self.folder,
                path,
                original_name,
                name,
                degrees=degrees,
                replace_it=replace,
            )

    async def export_file(self, name: str, path: Path) -> None:
        """Write a take to a file of any format."""
        await self.pool.run(take_work.export_file, self.folder, name, path)

    # ---- takes that could not be written --------------------------------------------------------

    def keep_unsaved(self, track: Track, name: str, problem: str) -> str:
        """Keep a take that could not be written in memory; return its id."""
        self._unsaved_count += 1
        take = TakeInMemory(f"u{self._unsaved_count}", name, track, problem)
        self.unsaved[take.id] = take
        return take.id

    def unsaved_take(self, take_id: str) -> TakeInMemory:
        """Return a take that is in memory only; raise `ProblemError` if there is none."""
        take = self.unsaved.get(take_id)
        if take is None:
            raise ProblemError(
                404, "no-such-take", f"there is no unsaved take {take_id!r}", "Reload the page."
            )
        return take

    async def save_unsaved(self, take_id: str, name: str, folder: str | None) -> str:
        """Write a take from memory to the library, or to one of the offered folders.

        Returns the folder of the library, or the path of the new file.
        """
        take = self.unsaved_take(take_id)
        self.check_name(name)
        if folder is None:
            await self.save(take.track, name)
            path = str(self.folder)
        else:
            if folder not in take.document()["folders"]:
                raise BadRequestError(
                    f"{folder!r} is not one of the folders to save to", "Choose one of the list."
                )
            path = await self.write(take_work.write_elsewhere, Path(folder), take.track, name)
        self.unsaved.pop(take_id, None)
        return path

    def discard_unsaved(self, take_id: str) -> None:
        """Discard a take that is in memory only."""
        del self.unsaved[self.unsaved_take(take_id).id]

    async def export_unsaved(self, take_id: str, path: Path) -> None:
        """Write a take that is in memory only to a file of any format."""
        await self.pool.run(take_work.write_file, self.unsaved_take(take_id).track, path)

    async def write(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Run a function that changes the library in a child process, one at a time."""
        async with self._write_lock:
            try:
                return await self.pool.run(work, *args, **options)
            finally:
                self.changes += 1


def _copy_file(file: BinaryIO, path: Path) -> None:
    with path.open("wb") as copy:
        while chunk := file.read(_CHUNK):
            copy.write(chunk)


async def _run_in_thread(work: Callable[..., T], *args: Any) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work, *args)
