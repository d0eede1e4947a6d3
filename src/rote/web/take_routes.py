"""The API's requests about the takes on this computer: list, edit, copy to and from files."""

from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, File, Query, Request, Response, UploadFile

from rote.motion.formats import FORMATS, NATIVE
from rote.web import schemas as s
from rote.web.edit_service import table
from rote.web.robot_routes import Caller, answer, commanding, hub_of
from rote.web.take_service import whole

router = APIRouter(prefix="/api", responses={"4XX": {"model": s.Problem}}, tags=["takes"])

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal[tuple(found.name for found in FORMATS.values())]


@router.get("/takes", response_model=s.Takes)
async def takes(request: Request, search: Annotated[str, Query(max_length=200)] = "") -> Response:
    """The takes: all, or those with each word of a search in name, tags or source."""
    return answer({"takes": await hub_of(request).takes.entries(search)})


@router.post("/takes/upload", response_model=s.TakeEntry)
async def upload(
    request: Request, file: Annotated[UploadFile, File()], caller: Caller = None
) -> Response:
    """Add a file of a motion of up to 32 MB; `/api/formats` lists the endings."""
    hub = commanding(request, caller)
    return answer(await hub.takes.import_file(file.filename or "", file.file))


@router.post("/takes/rename", response_model=s.TakeEntry)
async def rename(request: Request, body: s.Rename, caller: Caller = None) -> Response:
    """Rename a take."""
    return answer(await commanding(request, caller).takes.rename(body.old, body.new))


@router.post("/takes/delete", response_model=s.Done)
async def delete(request: Request, body: s.Delete, caller: Caller = None) -> Response:
    """Move a take to the trash beside the library."""
    await commanding(request, caller).takes.delete(body.name)
    return answer({"done": True})


@router.post("/takes/tag", response_model=s.TakeEntry)
async def tag(request: Request, body: s.TagTake, caller: Caller = None) -> Response:
    """Add tags to a take, or remove them."""
    return answer(await commanding(request, caller).takes.tag(body.name, body.add, body.remove))


@router.get("/takes/{name}", response_model=s.TakeMotion)
async def take(request: Request, name: str) -> Response:
    """One take, with its curves."""
    return answer(whole(name, await hub_of(request).takes.load(name)))


@router.get("/takes/{name}/file", response_class=Response)
async def download(
    request: Request,
    name: str,
    wanted: Annotated[FormatName, Query(alias="format")] = NATIVE.name,
) -> Response:
    """A take as a file."""
    found = FORMATS[f".{wanted}"]
    content = await hub_of(request).takes.export_file(name, found.name)
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(name)}{found.ending}"}
    return Response(content, media_type=found.media_type, headers=headers)


@router.get("/formats", response_model=s.Formats)
async def formats() -> Response:
    """The file formats that takes are read from and written to; the first is the native one."""
    rows = [
        {"name": each.name, "ending": each.ending, "title": each.title, "loss": each.loss}
        for each in FORMATS.values()
    ]
    return answer({"formats": rows})


@router.get("/edits", response_model=s.Edits)
async def edits() -> Response:
    """All edits, with their parameters."""
    return answer({"edits": table()})


@router.post("/edit", response_model=s.Edited)
async def edit(request: Request, body: s.EditTake) -> Response:
    """What a take would be after some edits, and what speaks against playing it."""
    return answer(await hub_of(request).edits.look(body))


@router.post("/edit/save", response_model=s.TakeEntry)
async def edit_save(request: Request, body: s.EditSave, caller: Caller = None) -> Response:
    """Save an edited take under a name; an existing take of that name becomes an older version."""
    hub = commanding(request, caller)
    hub.takes.check_name(body.name)
    track = await hub.edits.edited(body)
    return answer(await hub.takes.save(track, body.name))
