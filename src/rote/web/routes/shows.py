"""The API's requests about shows and the stage: edit a show's file, check it, GO and release."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Request, Response, UploadFile
from fastapi.responses import FileResponse

from rote.web.routes.robot import Caller, answer, commanding, hub_of, moving
from rote.web.routes.takes import json_response, run_while_connected
from rote.web.schemas import robot as schemas
from rote.web.schemas import shows as s

router = APIRouter(prefix="/api", responses={"4XX": {"model": schemas.Problem}}, tags=["shows"])


@router.get("/shows", response_model=s.ShowShelf)
async def shelf(request: Request) -> Response:
    """The shows, casts and sounds of this computer."""
    return json_response(await run_while_connected(request, hub_of(request).shows.shelf()))


@router.post("/shows/save", response_model=s.ShowSaved)
async def save(request: Request, body: s.SaveShow, caller: Caller = None) -> Response:
    """Keep a show in its file, which the command line checks and runs; one that is wrong is not
    written.
    """
    return json_response(await commanding(request, caller).shows.save(body))


@router.post("/shows/rename", response_model=schemas.Done)
async def rename(request: Request, body: s.RenameShow, caller: Caller = None) -> Response:
    """Rename a show, and its cast of the same name."""
    await commanding(request, caller).shows.rename(body.old, body.new)
    return answer({"done": True})


@router.post("/shows/delete", response_model=schemas.Done)
async def delete(request: Request, body: s.NamedShow, caller: Caller = None) -> Response:
    """Move a show to the trash beside it."""
    await commanding(request, caller).shows.delete(body.name)
    return answer({"done": True})


@router.post("/shows/cast", response_model=schemas.Done)
async def save_cast(request: Request, body: s.SaveCast, caller: Caller = None) -> Response:
    """Save a cast (which robot plays which role) to a file."""
    await commanding(request, caller).shows.save_cast(body.name, body.cast)
    return answer({"done": True})


@router.post("/shows/check", response_model=s.ShowChecked)
async def check(request: Request, body: s.CheckShow) -> Response:
    """What speaks against running a show, saved or not; the same as the command line finds."""
    return json_response(await run_while_connected(request, hub_of(request).shows.check(body)))


@router.post("/shows/curves", response_model=s.SectionCurves)
async def curves(request: Request, body: s.DrawShow) -> Response:
    """What every role does in a section, compiled as one motion each, with at most 600 rows."""
    return json_response(
        await run_while_connected(request, hub_of(request).shows.draw_section(body))
    )


@router.post("/shows/sounds/upload", response_model=schemas.Done)
async def add_sound(
    request: Request,
    file: Annotated[UploadFile, File()],
    replace: Annotated[bool, Form(description="Whether it may replace one of that name.")] = False,
    caller: Caller = None,
) -> Response:
    """Add a sound, a WAV file of up to 32 MB, beside the shows."""
    hub = commanding(request, caller)
    await hub.shows.add_sound(file.filename or "", file.file, replace=replace)
    return answer({"done": True})


@router.get("/shows/sounds/{name}/peaks", response_model=s.SoundPeaks)
async def peaks(request: Request, name: str) -> Response:
    """A sound as it is drawn."""
    return json_response(await run_while_connected(request, hub_of(request).shows.peaks(name)))


@router.get("/shows/sounds/{name}/file", response_class=FileResponse)
async def sound(request: Request, name: str) -> Response:
    """A sound as a file, to be listened to."""
    return FileResponse(hub_of(request).shows.sound_file(name), media_type="audio/wav")


@router.get("/shows/{name}", response_model=s.ShowOpened)
async def opened(request: Request, name: str) -> Response:
    """One show, as its file has it."""
    return json_response(await run_while_connected(request, hub_of(request).shows.open_show(name)))


# ---- the stage ----------------------------------------------------------------------------------


@router.get("/stage", response_model=s.StageNow, tags=["stage"])
async def stage(request: Request) -> Response:
    """The stage: its robots, the show that is under way, and a stop that holds."""
    return answer(hub_of(request).stage.document())


@router.post("/stage/go", response_model=s.StageNow, tags=["stage"])
async def go(request: Request, body: s.StageGo, caller: Caller = None) -> Response:
    """GO: begin a show, or its next section. It is checked first, and errors refuse it."""
    hub = moving(request, caller)
    await hub.stage.go(body)
    return answer(hub.stage.document())


@router.post("/stage/release", response_model=s.StageNow, tags=["stage"])
async def release(request: Request, body: schemas.Nothing, caller: Caller = None) -> Response:
    """Release a stop that holds: robots may move again, at the next GO."""
    hub = commanding(request, caller)
    hub.stage.reset()
    return answer(hub.stage.document())
