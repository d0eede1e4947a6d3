"""The API's requests about the takes on this computer: list, edit, copy to and from files."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from rote.errors import RoteError
from rote.motion.formats import FORMATS, NATIVE
from rote.web.routes.robot import Caller, answer, hub_for_command, hub_of
from rote.web.schemas import robot as s
from rote.web.server.problems import ProblemError
from rote.web.services.edits import edit_table

router = APIRouter(prefix="/api", responses={"4XX": {"model": s.Problem}}, tags=["takes"])

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal[tuple(found.name for found in FORMATS.values())]

T = TypeVar("T")

_MEMORY_FOLDER = Path("/dev/shm")  # noqa: S108 - a new private folder is made in it
"""A folder in memory; it exists on Linux only."""


def json_response(document: bytes) -> Response:
    """Answer with JSON that a child process has written."""
    return Response(document, media_type="application/json")


async def run_while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work for a browser; cancel it if the browser disconnects."""
    task = asyncio.ensure_future(work)
    disconnect = asyncio.ensure_future(_wait_for_disconnect(request))
    try:
        await asyncio.wait({task, disconnect}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ProblemError(499, "left", "the client has disconnected")
        return task.result()
    finally:
        disconnect.cancel()
        task.cancel()


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


@router.get("/takes", response_model=s.Takes)
async def takes(
    request: Request,
    search: Annotated[str, Query(max_length=200)] = "",
    first: Annotated[int, Query(ge=0, le=10**6)] = 0,
    count: Annotated[int | None, Query(ge=1, le=1000)] = None,
    known: Annotated[
        str, Query(max_length=40, description="The tag of what is known already.")
    ] = "",
) -> Response:
    """The takes: all, or those whose name, tags or source contain each word of `search`.

    `first` and `count` select a page of them. If nothing has changed since the answer with the
    tag `known`, the answer says so and contains no takes.
    """
    listing = hub_of(request).takes.entries(search, first, count, known)
    return json_response(await run_while_connected(request, listing))


@router.get("/takes/trash", response_model=s.Trash)
async def trash(request: Request) -> Response:
    """The deleted takes, the newest first."""
    return json_response(await run_while_connected(request, hub_of(request).takes.trash()))


@router.post("/takes/restore", response_model=s.TakeEntry)
async def restore(request: Request, body: s.Restore, caller: Caller = None) -> Response:
    """Restore a deleted take, under its own name or another one."""
    return json_response(await hub_for_command(request, caller).takes.restore(body.id, body.to))


@router.post("/takes/purge", response_model=s.Done)
async def purge(request: Request, body: s.Purge, caller: Caller = None) -> Response:
    """Delete a take from the trash permanently."""
    await hub_for_command(request, caller).takes.purge(body.id)
    return answer({"done": True})


@router.post("/takes/store", response_model=s.Stored)
async def store(request: Request, body: s.StoreTake, caller: Caller = None) -> Response:
    """Store a take on the robot as an action (as keyframes), on wires that support it."""
    hub = hub_for_command(request, caller)
    return answer(await hub.actions.store(body))


@router.get("/takes/unsaved/{take_id}/file", response_class=Response)
async def download_unsaved(
    request: Request,
    take_id: str,
    format_name: Annotated[FormatName, Query(alias="format")] = NATIVE.name,
) -> Response:
    """A take that could not be written here, as a file."""
    takes = hub_of(request).takes
    name = takes.unsaved_take(take_id).name
    return await _send_file(
        request, name, format_name, lambda path: takes.export_unsaved(take_id, path)
    )


@router.post("/takes/unsaved/save", response_model=s.SavedAt)
async def save_unsaved(request: Request, body: s.SaveUnsaved, caller: Caller = None) -> Response:
    """Write a take that is only in memory to the library, or to one of the offered folders."""
    takes = hub_for_command(request, caller).takes
    return answer(s.SavedAt(path=await takes.save_unsaved(body.id, body.name, body.folder)))


@router.post("/takes/unsaved/discard", response_model=s.Done)
async def discard_unsaved(
    request: Request, body: s.DiscardUnsaved, caller: Caller = None
) -> Response:
    """Discard a take that could not be written."""
    hub_for_command(request, caller).takes.discard_unsaved(body.id)
    return answer({"done": True})


@router.post("/takes/upload", response_model=s.TakeEntry)
async def upload(
    request: Request,
    file: Annotated[UploadFile, File()],
    name: Annotated[str | None, Form(max_length=120)] = None,
    unit: Annotated[Literal["rad", "deg"], Form(description="Of its angles.")] = "rad",
    replace: Annotated[
        bool, Form(description="Whether it becomes a new version of a take of that name.")
    ] = True,
    caller: Caller = None,
) -> Response:
    """Add a file of a motion of up to 32 MB; `/api/formats` lists the endings.

    The take gets the name of the file unless `name` is given. Without `replace`, a name that exists
    is refused.
    """
    hub = hub_for_command(request, caller)
    return json_response(
        await hub.takes.import_file(
            file.filename or "", file.file, name=name, degrees=unit == "deg", replace=replace
        )
    )


@router.post("/takes/rename", response_model=s.TakeEntry)
async def rename(request: Request, body: s.Rename, caller: Caller = None) -> Response:
    """Rename a take."""
    return json_response(await hub_for_command(request, caller).takes.rename(body.old, body.new))


@router.post("/takes/delete", response_model=s.Done)
async def delete(request: Request, body: s.Delete, caller: Caller = None) -> Response:
    """Move a take to the trash beside the library."""
    await hub_for_command(request, caller).takes.delete(body.name)
    return answer({"done": True})


@router.post("/takes/tag", response_model=s.TakeEntry)
async def tag(request: Request, body: s.TagTake, caller: Caller = None) -> Response:
    """Add tags to a take, or remove them."""
    return json_response(
        await hub_for_command(request, caller).takes.tag(body.name, body.add, body.remove)
    )


@router.get("/takes/{name}", response_model=s.TakeMotion)
async def take(request: Request, name: str) -> Response:
    """One take, with its curves."""
    return json_response(await run_while_connected(request, hub_of(request).takes.motion(name)))


@router.get("/takes/{name}/file", response_class=Response)
async def download(
    request: Request,
    name: str,
    format_name: Annotated[FormatName, Query(alias="format")] = NATIVE.name,
) -> Response:
    """A take as a file."""
    takes = hub_of(request).takes
    return await _send_file(request, name, format_name, lambda path: takes.export_file(name, path))


async def _send_file(
    request: Request,
    name: str,
    format_name: str,
    write: Callable[[Path], Coroutine[Any, Any, None]],
) -> Response:
    """Answer with a file of this format, which `write` creates; it is deleted after sending."""
    file_format = FORMATS[f".{format_name}"]
    try:
        path = await _write_temporary(request, file_format.ending, write)
    except (OSError, RoteError):
        if not os.access(_MEMORY_FOLDER, os.W_OK):
            raise
        # Downloads matter most when the disk is full, and the temporary folder may be on that disk.
        path = await _write_temporary(request, file_format.ending, write, _MEMORY_FOLDER)
    remove_folder = BackgroundTask(shutil.rmtree, path.parent, ignore_errors=True)
    headers = {
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name)}{file_format.ending}"
    }
    return FileResponse(
        path, media_type=file_format.media_type, headers=headers, background=remove_folder
    )


async def _write_temporary(
    request: Request,
    ending: str,
    write: Callable[[Path], Coroutine[Any, Any, None]],
    parent: Path | None = None,
) -> Path:
    """Write a file in a new folder in `parent`, by default the system's temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="rote-", dir=parent))
    try:
        path = folder / f"take{ending}"
        await run_while_connected(request, write(path))
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return path


@router.get("/formats", response_model=s.Formats)
async def formats() -> Response:
    """The file formats that takes are read from and written to; the first is the native one."""
    rows = [
        s.FormatFacts(name=each.name, ending=each.ending, title=each.title, loss=each.loss)
        for each in FORMATS.values()
    ]
    return answer(s.Formats(formats=rows))


@router.get("/edits", response_model=s.Edits)
async def edits() -> Response:
    """All edits, with their parameters."""
    return answer(s.Edits(edits=edit_table()))


@router.post("/edit", response_model=s.Edited)
async def edit(request: Request, body: s.EditTake) -> Response:
    """A take after some edit steps, and the findings against playing it."""
    return json_response(await run_while_connected(request, hub_of(request).edits.preview(body)))


@router.post("/edit/curves", response_model=s.EditCurves)
async def edit_curves(request: Request, body: s.EditPart) -> Response:
    """The curves of an edited take, without the slow check; a short range has more samples."""
    return json_response(await run_while_connected(request, hub_of(request).edits.curves(body)))


@router.post("/edit/check", response_model=s.EditCheck)
async def edit_check(request: Request, body: s.EditTake) -> Response:
    """Only the findings against playing an edited take."""
    return json_response(await run_while_connected(request, hub_of(request).edits.check(body)))


@router.post("/edit/keyframes", response_model=s.ProposedKeyframes)
async def edit_keyframes(request: Request, body: s.EditKeyframes) -> Response:
    """A few keyframes that an edited take passes through; an edit step can move each."""
    return json_response(await run_while_connected(request, hub_of(request).edits.keyframes(body)))


@router.post("/edit/save", response_model=s.TakeEntry)
async def edit_save(request: Request, body: s.EditSave, caller: Caller = None) -> Response:
    """Save an edited take under a name; an existing take of that name becomes an older version."""
    return json_response(await hub_for_command(request, caller).edits.save(body))


@router.post("/learn", response_model=s.LearnedBand)
async def learn(request: Request, body: s.LearnTakes) -> Response:
    """What three or more takes of one motion have in common, and how they vary."""
    learning = hub_of(request).learning
    return json_response(await run_while_connected(request, learning.learn(body)))


@router.post("/learn/adapt", response_model=s.Adapted)
async def learn_adapt(request: Request, body: s.PreviewAdapted) -> Response:
    """A learned motion adapted to other points, ends or another duration; it is not saved."""
    learning = hub_of(request).learning
    return json_response(await run_while_connected(request, learning.preview(body)))


@router.post("/learn/save", response_model=s.TakeEntry)
async def learn_save(request: Request, body: s.SaveAdapted, caller: Caller = None) -> Response:
    """Save an adapted motion as a take."""
    return json_response(await hub_for_command(request, caller).learning.save(body))
