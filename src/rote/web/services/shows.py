"""The shows on this computer, for the page: the files that the command line checks and runs."""

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, ParamSpec, TypeVar

from rote.stage.show.check import CheckedShow
from rote.stage.show_files import ShowFiles
from rote.web.schemas import shows as s
from rote.web.work import shows as show_work
from rote.web.work.pool import WorkPool

P = ParamSpec("P")
T = TypeVar("T")


class ShowService:
    """A folder of shows whose files are read and written by child processes, one at a time."""

    def __init__(self, folder: Path, takes: Path, pool: WorkPool) -> None:
        self.folder = folder
        self._takes, self._pool = takes, pool
        self._write_lock = asyncio.Lock()

    async def shelf(self) -> bytes:
        """Return the shows, casts and sounds as JSON."""
        return await self._pool.run(show_work.shelf, self.folder)

    async def open_show(self, name: str) -> bytes:
        """Return a show as JSON."""
        return await self._pool.run(show_work.open_show, self.folder, self._takes, name)

    async def set_lock(self, name: str, *, locked: bool) -> bytes:
        """Lock a show as it is now, or unlock it; return its lock."""
        return await self._run_write(
            show_work.set_lock, self.folder, self._takes, name, locked=locked
        )

    async def make_sheet(self, name: str) -> str:
        """Return the cue sheet of a show as an HTML page."""
        return await self._pool.run(show_work.make_sheet_page, self.folder, name)

    async def save(self, request: s.SaveShow) -> bytes:
        """Save a show to its file."""
        show_work.show_name(request.name)
        return await self._run_write(
            show_work.save,
            self.folder,
            self._takes,
            request.name,
            request.show.plain(),
            request.known,
            replace_it=request.replace,
        )

    async def save_cast(self, name: str, cast: Mapping[str, str]) -> None:
        """Save a cast to a file."""
        await self._run_write(show_work.save_cast, self.folder, name, dict(cast))

    async def save_report(self, name: str, report: Mapping[str, Any]) -> None:
        """Save the report of a show."""
        await self._run_write(show_work.save_report, self.folder, name, dict(report))

    async def rename(self, old: str, new: str) -> None:
        """Rename a show."""
        await self._run_write(show_work.rename, self.folder, old, new)

    async def delete(self, name: str) -> None:
        """Move a show to the trash beside it."""
        await self._run_write(show_work.delete, self.folder, name)

    async def check(self, request: s.CheckShow) -> bytes:
        """Return the findings against running a show."""
        show, cast = request.show.plain(), request.cast
        return await self._pool.run(show_work.check_sent_show, self.folder, self._takes, show, cast)

    async def draw_section(self, request: s.DrawShow) -> bytes:
        """Return what every role does in a section, as motions to draw."""
        show = request.show.plain()
        return await self._pool.run(
            show_work.draw_section, self.folder, self._takes, show, request.section
        )

    async def load_playable(self, request: s.StageGo) -> CheckedShow:
        """Return a show by its file, checked, to be run."""
        name, cast, known = request.show, request.cast, request.known
        return await self._pool.run(
            show_work.load_playable, self.folder, self._takes, name, dict(cast), known
        )

    async def peaks(self, name: str) -> bytes:
        """Return a sound as it is drawn."""
        return await self._pool.run(show_work.peaks, self.folder, name)

    @property
    def files(self) -> ShowFiles:
        """Where the takes and sounds of these shows are."""
        return show_work.files_of(self.folder, self._takes)

    def sound_file(self, name: str) -> Path:
        """Return the file of an existing sound."""
        return show_work.sound_file(self.folder, name)

    async def add_sound(self, file_name: str, file: BinaryIO, *, replace: bool) -> str:
        """Save an uploaded sound; only the last part of its path is used as its name."""
        name = show_work.sound_name(PurePosixPath(file_name.replace("\\", "/")).name)
        with tempfile.TemporaryDirectory(prefix="rote-") as folder:
            path = Path(folder) / "upload.wav"
            await asyncio.get_running_loop().run_in_executor(None, _copy_file, file, path)
            await self._run_write(show_work.save_sound, self.folder, path, name, replace_it=replace)
        return name

    async def _run_write(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        async with self._write_lock:
            return await self._pool.run(work, *args, **options)


def _copy_file(file: BinaryIO, path: Path) -> None:
    with path.open("wb") as copy:
        shutil.copyfileobj(file, copy, 2**18)
