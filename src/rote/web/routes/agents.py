"""The API's requests for agents: propose a motion, have it approved by a person, begin it."""

from fastapi import APIRouter, Request, Response

from rote.bridge.tickets import Ticket
from rote.web.routes.robot import Caller, answer, commanding, hub_of
from rote.web.schemas import robot as s

router = APIRouter(prefix="/api/agent", responses={"4XX": {"model": s.Problem}}, tags=["agents"])


@router.post("/propose", response_model=s.TicketNow)
async def propose(request: Request, body: s.ProposeMotion) -> Response:
    """Propose to play a take. It is checked, and shown to the people; nothing moves."""
    return answer(_ticket(await hub_of(request).agents.propose(body)))


@router.get("/ticket/{ticket}", response_model=s.TicketNow)
async def ticket_now(request: Request, ticket: str) -> Response:
    """What has become of a proposal, and how its playback ended."""
    agents = hub_of(request).agents
    return answer({**_ticket(agents.ticket(ticket)), "ended": await agents.ending(ticket)})


@router.post("/begin", response_model=s.TicketNow)
async def begin(request: Request, body: s.BeginProposed) -> Response:
    """Begin what a person has approved, once: the same motion, speed, robot and build."""
    hub = hub_of(request)
    hub.freshness.check()
    agents = hub.agents
    wanted = s.ProposeMotion(**body.model_dump(exclude={"ticket"}))
    await agents.begin(body.ticket, wanted)
    return answer(_ticket(agents.ticket(body.ticket)))


@router.post("/press", response_model=s.Done)
async def press(request: Request, body: s.PressApproval, caller: Caller = None) -> Response:
    """Begin to hold the button that approves; the secret is in the server's terminal."""
    hub = commanding(request, caller)
    hub.agents.press(body, caller or "")
    return answer({"done": True})


@router.post("/hold", response_model=s.Done)
async def hold(request: Request, body: s.OneTicket, caller: Caller = None) -> Response:
    """The button was held for long enough, by the server's clock: the motion is approved."""
    hub = commanding(request, caller)
    hub.agents.hold(body.ticket, caller or "")
    return answer({"done": True})


@router.post("/let-go", response_model=s.Done)
async def let_go(request: Request, body: s.OneTicket, caller: Caller = None) -> Response:
    """The button was released too early: nothing is approved."""
    hub = commanding(request, caller)
    hub.agents.release_button(body.ticket, caller or "")
    return answer({"done": True})


@router.post("/refuse", response_model=s.Done)
async def refuse(request: Request, body: s.OneTicket, caller: Caller = None) -> Response:
    """Say no to a proposal."""
    commanding(request, caller).agents.refuse(body.ticket)
    return answer({"done": True})


def _ticket(ticket: Ticket) -> dict[str, object]:
    proposed = ticket.proposed
    return {
        "ticket": ticket.id,
        "state": ticket.state.value,
        "take": proposed.take,
        "version": proposed.version,
        "motion": proposed.motion,
        "speed": proposed.speed,
        "robot": proposed.robot,
        "build": proposed.build,
        "digest": proposed.digest,
        "ended": None,
    }
