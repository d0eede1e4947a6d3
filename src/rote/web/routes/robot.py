"""The API's requests about the robot: connect, teach, play, stop."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import FileResponse

from rote.connection import embedded_of
from rote.model.family import Build
from rote.model.registry import build_named, families
from rote.transport import discovery
from rote.transport.wires import EMBEDDED, EMBEDDED_A1, EXAMINE, WIRES
from rote.web.access.roles import PendantRole, access_of
from rote.web.schemas import robot as s
from rote.web.server.problems import ProblemError, busy, finding_document, to_json
from rote.web.services.connection_keeper import DEFAULT_ABILITY
from rote.web.services.hub import Hub
from rote.web.work.drawing import make_drawing, model_of

_MAX_CURVE_ROWS = 500
"""Maximum number of rows per answer, written in a few milliseconds; the page requests more."""

Caller = Annotated[
    str | None,
    Header(
        alias="X-Rote-Client",
        description="The secret id that /api/live has sent to this browser.",
        max_length=64,
    ),
]
BuildName = Annotated[
    str | None, Query(max_length=60, description="A build of /api/robots; else the robot's own.")
]
BEAT_HEADER = "X-Rote-Beat"
"""The `time_s` of the newest beat that the page has received; a page sends it with each request."""
_ABILITIES = {None: DEFAULT_ABILITY, "look": EXAMINE, "teach": "teach"}
"""The ability to connect for, by the page's word for it."""
router = APIRouter(prefix="/api", responses={"4XX": {"model": s.Problem}})


def hub_of(request: Request) -> Hub:
    """Return the hub of the application that received the request."""
    hub: Hub = request.app.state.hub
    return hub


def answer(document: Mapping[str, object]) -> Response:
    """Answer with JSON that already has the documented form."""
    return Response(to_json(document), media_type="application/json")


def hub_for_command(request: Request, caller: str | None) -> Hub:
    """Return the hub if the caller has the command; otherwise raise `ProblemError`."""
    hub = hub_of(request)
    hub.clients.require_command(caller, access_of(request.scope))
    return hub


def hub_for_motion(request: Request, caller: str | None) -> Hub:
    """Return the hub if the caller has the command and the request is recent.

    For requests that begin a motion, or make limbs soft.
    """
    hub = hub_for_command(request, caller)
    hub.freshness.check(request.headers.get(BEAT_HEADER))
    return hub


# ---- the robot itself ---------------------------------------------------------------------------


@router.get("/status", response_model=s.PendantStatus, tags=["robot"])
async def status(request: Request, caller: Caller = None) -> Response:
    """The status of robot, connection and activity."""
    return answer(hub_of(request).status.document(caller))


@router.get("/robots", response_model=s.KnownRobots, tags=["robot"])
async def robots() -> Response:
    """The robots that can be simulated in the server, and how to connect to others."""
    simulated = [wire.scheme for wire in WIRES.values() if wire.in_process]
    builds = [
        s.SimulatedRobot(build=build.name, title=build.title, url=f"{scheme}://{build.name}")
        for family in families()
        for build in family.builds
        for scheme in simulated
        if scheme in family.wires
    ]
    # A page cannot drag a simulated A1: its scripted hand moves the soft limbs.
    a1 = build_named("a1")
    led = [s.SimulatedRobot(build=a1.name, title=a1.title, url=f"{EMBEDDED_A1}?hand=paw")]
    examples = [wire.example for wire in WIRES.values()]
    return answer(s.KnownRobots(simulated=builds, led=led, examples=examples))


def _find_build(request: Request, name: str | None) -> Build:
    """Return the build of that name; without a name the robot's, or the default simulated one."""
    if name is not None:
        return build_named(name)
    robot = hub_of(request).connection.connected
    return embedded_of(EMBEDDED)[0] if robot is None else robot.build


@router.get("/robot/joints", response_model=s.JointTree, tags=["robot"])
async def joints(request: Request, build: BuildName = None) -> Response:
    """A robot as a tree of joints, for drawing: any known one, or the connected one."""
    return answer(make_drawing(_find_build(request, build)))


@router.get("/robot/model", response_class=FileResponse, tags=["robot"])
async def model(request: Request, build: BuildName = None) -> Response:
    """A robot's real shapes as GLB, if the set-up has made them."""
    path = model_of(_find_build(request, build))
    if path is None:
        raise ProblemError(404, "no-model", "this server has no model with the real shapes")
    return FileResponse(path, media_type="model/gltf-binary")


@router.post("/connect", response_model=s.PendantStatus, tags=["robot"])
async def connect(request: Request, body: s.ConnectTo, caller: Caller = None) -> Response:
    """Begin to connect to a robot; the status shows the progress."""
    hub = hub_for_command(request, caller)
    await hub.connect(body.url, body.key, _ABILITIES[body.wanted])
    return answer(hub.status.document(caller))


@router.post("/disconnect", response_model=s.PendantStatus, tags=["robot"])
async def disconnect(request: Request, body: s.Nothing, caller: Caller = None) -> Response:
    """Disconnect from the robot."""
    hub = hub_for_command(request, caller)
    await hub.disconnect()
    return answer(hub.status.document(caller))


@router.get("/discover", response_model=s.Robots, tags=["robot"])
async def discover(
    request: Request,
    serial: Annotated[str, Query(max_length=40, pattern=r"^[0-9A-Za-z]*$")] = "",
    seconds: Annotated[float, Query(gt=0, le=5)] = 2.0,
) -> Response:
    """Find robots on the local network; not for the watch role."""
    access_of(request.scope).require_role(PendantRole.COMMAND)
    robots: list[s.RobotFound] = []
    async for found in discovery.discover(serials=(serial,) if serial else (), seconds=seconds):
        host = f"[{found.address}]" if ":" in found.address else found.address
        robot = s.RobotFound(serial=found.serial, address=found.address, url=f"webrtc://{host}")
        if robot not in robots:
            robots.append(robot)
    return answer(s.Robots(robots=robots))


@router.get("/preflight", response_model=s.Findings, tags=["robot"])
async def preflight(request: Request) -> Response:
    """What to know before the robot moves."""
    found = await hub_of(request).connection.robot.preflight()
    return answer(s.Findings(findings=[finding_document(finding) for finding in found]))


@router.post("/mode", response_model=s.PendantStatus, tags=["robot"])
async def mode(request: Request, body: s.ModeTo, caller: Caller = None) -> Response:
    """Make the robot stand, lie down, or damp its joints; damping a standing one needs `yes`."""
    hub = hub_for_motion(request, caller)
    robot = hub.connection.robot
    if hub.activities.busy and body.target != "damp":
        raise busy("the robot is busy")
    if body.target == "damp":
        await robot.modes.damp(yes=body.yes)
    elif body.target == "stand":
        await robot.modes.stand()
    else:
        await robot.modes.lie_down()
    return answer(hub.status.document(caller))


# ---- command and stop ---------------------------------------------------------------------------


@router.post("/command/take", response_model=s.Commander, tags=["command"])
async def take_command(request: Request, body: s.Nothing, caller: Caller = None) -> Response:
    """Take over the command: at once if no client has it, otherwise after a countdown.

    `next` contains the remaining time. All pages show it, and the commander may keep the command.
    """
    hub = hub_of(request)
    hub.clients.take_command(caller, access_of(request.scope))
    return answer(_describe_command(hub, caller))


@router.post("/command/give", response_model=s.Commander, tags=["command"])
async def give_command(request: Request, body: s.GiveCommand, caller: Caller = None) -> Response:
    """Pass command to another client after a countdown; for the commander and teachers."""
    hub = hub_of(request)
    hub.clients.give_command(caller, body.number, access_of(request.scope))
    return answer(_describe_command(hub, caller))


@router.post("/command/keep", response_model=s.Commander, tags=["command"])
async def keep_command(request: Request, body: s.Nothing, caller: Caller = None) -> Response:
    """Cancel a handover of the command."""
    hub = hub_of(request)
    hub.clients.cancel_handover(caller, access_of(request.scope))
    return answer(_describe_command(hub, caller))


@router.post("/command/lock", response_model=s.Commander, tags=["command"])
async def lock_command(request: Request, body: s.LockCommand, caller: Caller = None) -> Response:
    """Let only teachers take command, or all roles that may command again; for teachers.

    Locking takes the command at once from a client that is not a teacher.
    """
    hub = hub_of(request)
    hub.clients.lock(caller, locked=body.locked, access=access_of(request.scope))
    return answer(_describe_command(hub, caller))


@router.post("/command/release", response_model=s.Commander, tags=["command"])
async def release_command(request: Request, body: s.Nothing, caller: Caller = None) -> Response:
    """Give up the command; not while the robot moves or is soft, nor while a show goes on."""
    hub = hub_for_command(request, caller)
    if hub.needs_commander:
        raise busy("a browser must be in command while robots move, or are about to")
    hub.clients.release_command(caller, access_of(request.scope))
    return answer(_describe_command(hub, caller))


def _describe_command(hub: Hub, caller: str | None) -> s.Commander:
    return hub.clients.describe_command(you=caller is not None and caller == hub.clients.commander)


@router.post("/stop", response_model=s.StopReport, tags=["command"])
async def stop(request: Request) -> Response:
    """Stop softly. Any client may do it at any time. It is a software stop, not an emergency stop.

    A body is neither needed nor read, so that a mistake in it cannot prevent a stop.

    Status 200 means that the robot has confirmed the stop. Status 502 means that it has not; the
    server repeats the stop until it is confirmed.
    """
    result = await hub_of(request).stop_and_notify()
    if not result.confirmed:
        raise ProblemError(502, "stop-unconfirmed", result.message, "Use the robot's own remote.")
    return answer(result._asdict())


@router.get("/events", response_model=s.EventList, tags=["command"])
async def events(request: Request) -> Response:
    """The recent events: stops, losses, recoveries, saved and recovered takes."""
    return answer(s.EventList(events=hub_of(request).events.documents()))


@router.post("/events/acknowledge", response_model=s.Done, tags=["command"])
async def acknowledge(request: Request, body: s.AcknowledgeEvent) -> Response:
    """Acknowledge a safety event; not for the watch role."""
    access_of(request.scope).require_role(PendantRole.COMMAND)
    hub_of(request).events.acknowledge(body.id)
    return answer({"done": True})


# ---- connected browsers -------------------------------------------------------------------------


@router.get("/people", response_model=s.People, tags=["command"])
async def people(request: Request) -> Response:
    """The connected browsers: numbers, names and roles, without ids."""
    return answer(hub_of(request).broadcaster.people())


@router.post("/people/me", response_model=s.Person, tags=["command"])
async def call_me(request: Request, body: s.CallMe, caller: Caller = None) -> Response:
    """Set the name by which others see this browser."""
    client = hub_of(request).clients.set_name(caller, body.name, access_of(request.scope))
    return answer(s.Person(number=client.number, name=client.name, role=client.access.role.value))


@router.get("/links", response_model=s.Links, tags=["command"])
async def links(request: Request) -> Response:
    """The query strings of two links for others, `?token=...`: to command, and to watch only."""
    role = access_of(request.scope).role
    tokens: dict[PendantRole, str] = request.app.state.tokens
    visible = {each: f"?token={token}" for each, token in tokens.items() if each.rank <= role.rank}
    return answer(
        s.Links(command=visible.get(PendantRole.COMMAND), watch=visible.get(PendantRole.WATCH))
    )


# ---- teaching -----------------------------------------------------------------------------------


@router.post("/teach/start", response_model=s.PendantStatus, tags=["teach"])
async def teach_start(request: Request, body: s.TeachStart, caller: Caller = None) -> Response:
    """Make the arms, or legs, soft, and begin to record."""
    hub = hub_for_motion(request, caller)
    await hub.teaching.teach(body.name, overwrite=body.overwrite)
    return answer(hub.status.document(caller))


@router.post("/teach/finish", response_model=s.TaughtReport, tags=["teach"])
async def teach_finish(request: Request, body: s.TeachFinish, caller: Caller = None) -> Response:
    """Make the arms, or legs, hold, and keep the take or discard it."""
    hub = hub_for_command(request, caller)
    taught = await hub.teaching.finish(save=body.save, name=body.name)
    hub.actions.note_change()
    return answer(taught._asdict())


@router.post("/teach/hand", response_model=s.Done, tags=["teach"])
async def teach_hand(request: Request, body: s.ByHand, caller: Caller = None) -> Response:
    """Let a scripted hand move a simulated robot's soft arms."""
    hub = hub_for_motion(request, caller)
    await hub.teaching.move_by_hand(body.script, body.seconds)
    return answer({"done": True})


@router.post("/teach/drag", response_model=s.Done, tags=["teach"])
async def teach_drag(request: Request, body: s.Drag, caller: Caller = None) -> Response:
    """Pull a joint of the embedded robot, or release it."""
    hub_for_command(request, caller).teaching.drag(body.joint, body.value_rad)
    return answer({"done": True})


@router.get("/teach/curve", response_model=s.Curves, tags=["teach"])
async def teach_curve(
    request: Request, first: Annotated[int, Query(alias="from", ge=0, le=10**6)] = 0
) -> Response:
    """The samples recorded so far, from number `from` on; empty if nothing is being recorded."""
    hub = hub_of(request)
    rows = hub.teaching.curve(first, _MAX_CURVE_ROWS)
    robot = hub.connection.connected
    names = () if robot is None else robot.build.names
    if rows:
        names = names[: len(rows[0].joints_rad)]  # a recording may lack the last joints, the hands
    return answer(
        s.Curves(
            names=list(names),
            times_s=[round(sample.time_us / 1e6, 4) for sample in rows],
            joints_rad=[[round(value, 4) for value in row.joints_rad] for row in rows],
        )
    )


# ---- what the robot can play --------------------------------------------------------------------


@router.get("/actions", response_model=s.ActionsNow, tags=["play"])
async def actions(request: Request) -> Response:
    """The factory actions and the taught ones."""
    found, now = await hub_of(request).actions.read_or_recall()
    if found is None:
        return answer(s.ActionsNow(presets=[], taught=[], free_places=None, now=False))
    return answer(asdict(found) | {"free_places": found.free_places, "now": now})


@router.post("/actions/rename", response_model=s.Done, tags=["play"])
async def rename_action(request: Request, body: s.Rename, caller: Caller = None) -> Response:
    """Rename a taught action."""
    await hub_for_command(request, caller).actions.rename(body.old, body.new)
    return answer({"done": True})


@router.post("/actions/delete", response_model=s.Done, tags=["play"])
async def delete_action(request: Request, body: s.Delete, caller: Caller = None) -> Response:
    """Delete a taught action for good."""
    await hub_for_command(request, caller).actions.delete(body.name)
    return answer({"done": True})


@router.post("/play", response_model=s.PendantStatus, tags=["play"])
async def play(request: Request, body: s.Play, caller: Caller = None) -> Response:
    """Play a taught action."""
    hub = hub_for_motion(request, caller)
    await hub.play(body.name, speed=body.speed, loop=body.loop)
    return answer(hub.status.document(caller))


@router.post("/play/take", response_model=s.PendantStatus, tags=["play"])
async def play_take(request: Request, body: s.PlayTake, caller: Caller = None) -> Response:
    """Stream an edited take to the robot, if its wire supports it; unsafe takes are refused."""
    hub = hub_for_motion(request, caller)
    await hub.play_take(body)
    return answer(hub.status.document(caller))


@router.post("/perform", response_model=s.PendantStatus, tags=["play"])
async def perform(request: Request, body: s.Perform, caller: Caller = None) -> Response:
    """Perform a factory action."""
    hub = hub_for_motion(request, caller)
    await hub.perform(body.preset)
    return answer(hub.status.document(caller))


@router.post("/pause", response_model=s.Done, tags=["play"])
async def pause(request: Request, body: s.Pause, caller: Caller = None) -> Response:
    """Pause or resume the recording, if the robot's wire supports it."""
    await hub_for_command(request, caller).teaching.pause(paused=body.paused)
    return answer({"done": True})
