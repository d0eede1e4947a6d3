"""The API's requests about the robot: connect, teach, play, stop."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import FileResponse

from rote.carrier import discovery
from rote.model.registry import build_named
from rote.web import schemas as s
from rote.web.hub import Hub
from rote.web.problems import ProblemError, busy, finding_document, to_json

MODEL = Path(__file__).parent / "model" / "g1.glb"
_MOST_CURVE_ROWS = 2000

Caller = Annotated[
    str | None,
    Header(alias="X-Rote-Client", description="The id that /api/live said.", max_length=64),
]
router = APIRouter(prefix="/api", responses={"4XX": {"model": s.Problem}})


def hub_of(request: Request) -> Hub:
    """Return the hub of the application that was asked."""
    hub: Hub = request.app.state.hub
    return hub


def answer(document: Any) -> Response:
    """Answer with JSON that is already what the documentation promises."""
    return Response(to_json(document), media_type="application/json")


def commanding(request: Request, caller: str | None) -> Hub:
    """Return the hub to whoever commands; others are refused."""
    hub = hub_of(request)
    hub.clients.need(caller)
    return hub


# ---- the robot itself ---------------------------------------------------------------------------


@router.get("/status", response_model=s.Status, tags=["robot"])
async def status(request: Request, caller: Caller = None) -> Response:
    """How things are, at a glance."""
    return answer(hub_of(request).status(caller))


@router.get("/robot/joints", response_model=s.Joints, tags=["robot"])
async def joints(request: Request) -> Response:
    """The robot as a tree of joints, for drawing it; without one, the usual G1."""
    robot = hub_of(request).line.connected
    build = build_named("g1") if robot is None else robot.build
    rows = [
        {
            "index": joint.index,
            "name": joint.name,
            "lower_rad": joint.lower_rad,
            "upper_rad": joint.upper_rad,
            "taught": joint.name in build.taught,
            "axis": joint.axis,
            "origin": joint.origin_m,
            "rpy": joint.origin_rpy_rad,
            "parent": joint.parent,
            "link": joint.link,
        }
        for joint in build.joints
    ]
    has_model = build.family == "g1" and MODEL.is_file()
    return answer({"joints": rows, "rest_rad": build.rest_rad, "model": has_model})


@router.get("/robot/model", response_class=FileResponse, tags=["robot"])
async def model() -> Response:
    """The robot's real shapes as GLB, where the set-up has made them."""
    if not MODEL.is_file():
        raise ProblemError(404, "no-model", "there is no model with real shapes here")
    return FileResponse(MODEL, media_type="model/gltf-binary")


@router.post("/connect", response_model=s.Status, tags=["robot"])
async def connect(request: Request, body: s.ConnectTo, caller: Caller = None) -> Response:
    """Begin to connect to a robot; the status says how that goes."""
    hub = commanding(request, caller)
    await hub.connect(body.url, body.key)
    return answer(hub.status(caller))


@router.post("/disconnect", response_model=s.Status, tags=["robot"])
async def disconnect(request: Request, body: s.Nothing, caller: Caller = None) -> Response:
    """Let go of the robot."""
    hub = commanding(request, caller)
    await hub.disconnect()
    return answer(hub.status(caller))


@router.get("/discover", response_model=s.Robots, tags=["robot"])
async def discover(
    serial: Annotated[str, Query(max_length=40, pattern=r"^[0-9A-Za-z]*$")] = "",
    seconds: Annotated[float, Query(gt=0, le=5)] = 2.0,
) -> Response:
    """Look for robots on the local network."""
    robots: list[dict[str, str]] = []
    async for found in discovery.discover(serials=(serial,) if serial else (), seconds=seconds):
        host = f"[{found.address}]" if ":" in found.address else found.address
        one = {"serial": found.serial, "address": found.address, "url": f"webrtc://{host}"}
        if one not in robots:
            robots.append(one)
    return answer({"robots": robots})


@router.get("/preflight", response_model=s.Findings, tags=["robot"])
async def preflight(request: Request) -> Response:
    """What to know before the robot moves."""
    found = await hub_of(request).line.robot.preflight()
    return answer({"findings": [finding_document(finding) for finding in found]})


@router.post("/mode", response_model=s.Status, tags=["robot"])
async def mode(request: Request, body: s.ModeTo, caller: Caller = None) -> Response:
    """Make the robot stand, or damp its joints."""
    hub = commanding(request, caller)
    robot = hub.line.robot
    if hub.doing.busy and body.target == "stand":
        raise busy("the robot is busy")
    await (robot.stand() if body.target == "stand" else robot.damp())
    return answer(hub.status(caller))


# ---- command and stop ---------------------------------------------------------------------------


@router.post("/command/take", response_model=s.Commander, tags=["command"])
async def take_command(request: Request, body: s.Nothing, caller: Caller = None) -> Response:
    """Take over the command."""
    hub = hub_of(request)
    hub.clients.take(caller)
    return answer({"client": hub.clients.commander, "you": True})


@router.post("/command/release", response_model=s.Commander, tags=["command"])
async def release_command(request: Request, body: s.Nothing, caller: Caller = None) -> Response:
    """Give the command away; not while the robot moves or is soft."""
    hub = commanding(request, caller)
    if hub.doing.busy:
        raise busy("somebody must command while the robot is busy")
    hub.clients.release(caller)
    return answer({"client": None, "you": False})


@router.post("/stop", response_model=s.StopReport, tags=["command"])
async def stop(request: Request, body: s.Nothing | None = None) -> Response:
    """Stop softly. Anybody may, at any time. It is a software stop, not an emergency stop."""
    return answer((await hub_of(request).stop())._asdict())


# ---- teaching -----------------------------------------------------------------------------------


@router.post("/teach/start", response_model=s.Status, tags=["teach"])
async def teach_start(request: Request, body: s.TeachStart, caller: Caller = None) -> Response:
    """Make the arms soft and record."""
    hub = commanding(request, caller)
    await hub.doing.teach(body.name, overwrite=body.overwrite)
    return answer(hub.status(caller))


@router.post("/teach/finish", response_model=s.TaughtReport, tags=["teach"])
async def teach_finish(request: Request, body: s.TeachFinish, caller: Caller = None) -> Response:
    """Make the arms hold, and keep the take or throw it away."""
    hub = commanding(request, caller)
    taught = await hub.doing.finish(save=body.save, name=body.name)
    return answer(taught._asdict())


@router.post("/teach/hand", response_model=s.Done, tags=["teach"])
async def teach_hand(request: Request, body: s.ByHand, caller: Caller = None) -> Response:
    """Let a scripted hand move a simulated robot's soft arms."""
    hub = commanding(request, caller)
    await hub.doing.move_by_hand(body.script, body.seconds)
    return answer({"done": True})


@router.post("/teach/drag", response_model=s.Done, tags=["teach"])
async def teach_drag(request: Request, body: s.Drag, caller: Caller = None) -> Response:
    """Pull a joint of the embedded robot, or let go."""
    commanding(request, caller).doing.drag(body.joint, body.value_rad)
    return answer({"done": True})


@router.get("/teach/curve", response_model=s.Curves, tags=["teach"])
async def teach_curve(
    request: Request, first: Annotated[int, Query(alias="from", ge=0, le=10**6)] = 0
) -> Response:
    """What was recorded so far, from a sample on; nothing where nothing is recorded."""
    hub = hub_of(request)
    rows = hub.doing.curve(first, _MOST_CURVE_ROWS)
    robot = hub.line.connected
    names = () if robot is None else robot.build.names
    return answer(
        {
            "names": names[: len(rows[0].positions_rad)] if rows else names,
            "times_s": [round(sample.time_us / 1e6, 4) for sample in rows],
            "joints_rad": [[round(value, 4) for value in row.positions_rad] for row in rows],
        }
    )


# ---- what the robot can play --------------------------------------------------------------------


@router.get("/actions", response_model=s.ActionsNow, tags=["play"])
async def actions(request: Request) -> Response:
    """The factory's actions and the taught ones."""
    found, now = await hub_of(request).actions_known()
    return answer(asdict(found) | {"free_places": found.free_places, "now": now})


@router.post("/actions/rename", response_model=s.Done, tags=["play"])
async def rename_action(request: Request, body: s.Rename, caller: Caller = None) -> Response:
    """Rename a taught action."""
    await commanding(request, caller).rename_action(body.old, body.new)
    return answer({"done": True})


@router.post("/actions/delete", response_model=s.Done, tags=["play"])
async def delete_action(request: Request, body: s.Delete, caller: Caller = None) -> Response:
    """Delete a taught action for good."""
    await commanding(request, caller).delete_action(body.name)
    return answer({"done": True})


@router.post("/play", response_model=s.Status, tags=["play"])
async def play(request: Request, body: s.Play, caller: Caller = None) -> Response:
    """Play a taught action."""
    hub = commanding(request, caller)
    await hub.play(body.name, speed=body.speed, loop=body.loop)
    return answer(hub.status(caller))


@router.post("/play/take", response_model=s.Status, tags=["play"])
async def play_take(request: Request, body: s.PlayTake, caller: Caller = None) -> Response:
    """Stream an edited take to the robot, on wires that can; one that is not safe is refused."""
    hub = commanding(request, caller)
    track = await hub.desk.playable(body)
    await hub.doing.play_track(track, body.take, force=body.force)
    return answer(hub.status(caller))


@router.post("/perform", response_model=s.Status, tags=["play"])
async def perform(request: Request, body: s.Perform, caller: Caller = None) -> Response:
    """Perform a factory action."""
    hub = commanding(request, caller)
    await hub.perform(body.preset)
    return answer(hub.status(caller))


@router.post("/pause", response_model=s.Done, tags=["play"])
async def pause(request: Request, body: s.Pause, caller: Caller = None) -> Response:
    """Pause or go on, on wires that can."""
    await commanding(request, caller).doing.pause(paused=body.paused)
    return answer({"done": True})
