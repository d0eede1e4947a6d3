"""The API's requests for agents: propose a motion, wait for its approval, begin it."""

from fastapi import APIRouter, Request, Response

from rote.bridge.tickets import Ticket
from rote.web.routes.robot import Caller, answer, hub_for_command, hub_of
from rote.web.schemas import robot as s

router = APIRouter(prefix="/api/agent", responses={"4XX": {"model": s.Problem}}, tags=["agents"])


@router.post("/propose", response_model=s.TicketNow)
async def propose(request: Request, body: s.ProposeMotion) -> Response:
    """Propose to play a take. It is checked and shown to the users; nothing moves."""
    return answer(_describe_ticket(await hub_of(request).agents.propose(body)))


@router.get("/ticket/{ticket}", response_model=s.TicketNow)
async def ticket_now(request: Request, ticket: str) -> Response:
    """The state of a proposal, and how its playback ended."""
    agents = hub_of(request).agents
    return answer(
        {**_describe_ticket(agents.ticket(ticket)), "ended": await agents.describe_end(ticket)}
    )


@router.post("/begin", response_model=s.TicketNow)
async def begin(request: Request, body: s.BeginProposed) -> Response:
    """Begin an approved motion, once; motion, speed, robot and build must be those approved."""
    hub = hub_of(request)
    hub.freshness.check()
    agents = hub.agents
    requested = s.ProposeMotion(**body.model_dump(exclude={"ticket"}))
    await agents.begin(body.ticket, requested)
    return answer(_describe_ticket(agents.ticket(body.ticket)))


@router.post("/press", response_model=s.Done)
async def press(request: Request, body: s.PressApproval, caller: Caller = None) -> Response:
    """Begin to hold the button that approves; the secret is in the server's terminal."""
    hub = hub_for_command(request, caller)
    hub.agents.begin_approval(body, caller or "")
    return answer({"done": True})


@router.post("/hold", response_model=s.Done)
async def hold(request: Request, body: s.OneTicket, caller: Caller = None) -> Response:
    """Approve the motion: the button was held long enough. The server's clock decides."""
    hub = hub_for_command(request, caller)
    hub.agents.approve(body.ticket, caller or "")
    return answer({"done": True})


@router.post("/let-go", response_model=s.Done)
async def let_go(request: Request, body: s.OneTicket, caller: Caller = None) -> Response:
    """Cancel the approval: the button was released too early."""
    hub = hub_for_command(request, caller)
    hub.agents.cancel_approval(body.ticket, caller or "")
    return answer({"done": True})


@router.post("/refuse", response_model=s.Done)
async def refuse(request: Request, body: s.OneTicket, caller: Caller = None) -> Response:
    """Refuse a proposal."""
    hub_for_command(request, caller).agents.refuse(body.ticket)
    return answer({"done": True})


def _describe_ticket(ticket: Ticket) -> s.TicketNow:
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
