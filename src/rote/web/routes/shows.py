"""The API's requests about shows and the stage: edit a show's file, check it, GO and release."""

from typing import Annotated

from fastapi import APIRouter, File, Form, Request, Response, UploadFile
from fastapi.responses import FileResponse, HTMLResponse

from rote.web.routes.robot import Caller, answer, hub_for_command, hub_for_motion, hub_of
from rote.web.routes.takes import json_response, run_while_connected
from rote.web.schemas import robot as schemas
from rote.web.schemas import shows as s

SHEET_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""A cue sheet is text with styles of its own: it loads and runs nothing."""
router = APIRouter(prefix="/api", responses={"4XX": {"model": schemas.Problem}}, tags=["shows"])


@router.get("/shows", response_model=s.ShowShelf)
async def shelf(request: Request) -> Response:
    """The shows, casts and sounds of this computer."""
    return json_response(await run_while_connected(request, hub_of(request).shows.shelf()))


@router.post("/shows/save", response_model=s.ShowSaved)
async def save(request: Request, body: s.SaveShow, caller: Caller = None) -> Response:
    """Save a show to its file, which the command line can run, too; invalid shows are refused."""
    return json_response(await hub_for_command(request, caller).shows.save(body))


@router.post("/shows/rename", response_model=schemas.Done)
async def rename(request: Request, body: s.RenameShow, caller: Caller = None) -> Response:
    """Rename a show, and its cast of the same name."""
    await hub_for_command(request, caller).shows.rename(body.old, body.new)
    return answer({"done": True})


@router.post("/shows/delete", response_model=schemas.Done)
async def delete(request: Request, body: s.NamedShow, caller: Caller = None) -> Response:
    """Move a show to the trash beside it."""
    await hub_for_command(request, caller).shows.delete(body.name)
    return answer({"done": True})


@router.post("/shows/lock", response_model=s.ShowLocked)
async def lock(request: Request, body: s.LockShow, caller: Caller = None) -> Response:
    """Lock a show: GO refuses it if its file, a take or a sound has changed since. Or unlock it."""
    hub = hub_for_command(request, caller)
    return json_response(await hub.shows.set_lock(body.name, locked=body.locked))


@router.post("/shows/cast", response_model=schemas.Done)
async def save_cast(request: Request, body: s.SaveCast, caller: Caller = None) -> Response:
    """Save a cast (which robot plays which role) to a file."""
    await hub_for_command(request, caller).shows.save_cast(body.name, body.cast)
    return answer({"done": True})


@router.post("/shows/check", response_model=s.ShowChecked)
async def check(request: Request, body: s.CheckShow) -> Response:
    """The findings against running a show, saved or not; the same as on the command line."""
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
    hub = hub_for_command(request, caller)
    await hub.shows.add_sound(file.filename or "", file.file, replace=replace)
    return answer({"done": True})


@router.get("/shows/sounds/{name}/peaks", response_model=s.SoundPeaks)
async def peaks(request: Request, name: str) -> Response:
    """The peaks of a sound, for drawing it."""
    return json_response(await run_while_connected(request, hub_of(request).shows.peaks(name)))


@router.get("/shows/sounds/{name}/file", response_class=FileResponse)
async def sound(request: Request, name: str) -> Response:
    """A sound as a file, to be listened to."""
    return FileResponse(hub_of(request).shows.sound_file(name), media_type="audio/wav")


@router.get("/shows/{name}", response_model=s.ShowOpened)
async def opened(request: Request, name: str) -> Response:
    """One show, as its file has it."""
    return json_response(await run_while_connected(request, hub_of(request).shows.open_show(name)))


@router.get("/shows/{name}/sheet", response_class=HTMLResponse)
async def sheet(request: Request, name: str) -> Response:
    """The cue sheet of a show, to be printed; with the robots of the cast beside it."""
    page = await run_while_connected(request, hub_of(request).shows.make_sheet(name))
    return HTMLResponse(page, headers={"Content-Security-Policy": SHEET_POLICY})


# ---- the stage ----------------------------------------------------------------------------------


@router.get("/stage", response_model=s.StageNow, tags=["stage"])
async def stage(request: Request) -> Response:
    """The stage: its robots, the running show, and an active stop."""
    return answer(hub_of(request).stage.document())


@router.post("/stage/go", response_model=s.StageNow, tags=["stage"])
async def go(request: Request, body: s.StageGo, caller: Caller = None) -> Response:
    """GO: begin a show, or its next section. It is checked first, and errors refuse it."""
    hub = hub_for_motion(request, caller)
    await hub.stage.go(body)
    return answer(hub.stage.document())


@router.post("/stage/cue", response_model=s.StageNow, tags=["stage"])
async def control_cues(request: Request, body: s.ControlCues, caller: Caller = None) -> Response:
    """Control the running show: BACK, skip, jump, pause and resume, mute and unmute, finish."""
    find_hub = hub_for_motion if body.verb == "resume" else hub_for_command
    hub = find_hub(request, caller)
    hub.stage.control(body)
    return answer(hub.stage.document())


@router.post("/stage/offset", response_model=s.StageNow, tags=["stage"])
async def set_offset(request: Request, body: s.SetOffset, caller: Caller = None) -> Response:
    """Set how early a robot's action or sounds are requested; null has it measured again."""
    hub = hub_for_command(request, caller)
    hub.stage.set_offset(body.robot, body.name, body.seconds)
    return answer(hub.stage.document())


@router.post("/stage/release", response_model=s.StageNow, tags=["stage"])
async def release(request: Request, body: s.ResetStop, caller: Caller = None) -> Response:
    """Reset an active stop: robots may move again at the next GO."""
    hub = hub_for_command(request, caller)
    hub.stage.reset(body.stop)
    return answer(hub.stage.document())
