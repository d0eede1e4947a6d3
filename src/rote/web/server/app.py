"""The web application: the page, the API, its documentation, and the security checks before
them.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from rote import __version__
from rote.errors import BadRequestError, RoteError
from rote.platform.distribution import NAME
from rote.web.access.roles import PendantRole
from rote.web.access.security import VIEW_PATH, Gate, Guard
from rote.web.routes import agents as agent_routes
from rote.web.routes import robot as robot_routes
from rote.web.routes import shows as show_routes
from rote.web.routes import takes as take_routes
from rote.web.routes.live import serve_browser, serve_viewer
from rote.web.server.compression import Compression
from rote.web.server.problems import ProblemError, make_problem, status_of, to_json
from rote.web.services.hub import Hub, Start

STATIC = Path(__file__).parents[1] / "static"
_CHECKOUT = Path(__file__).parents[4]

_log = logging.getLogger("rote")
_ABOUT = """Teach a robot by hand and play it back.

Open the WebSocket `/api/live` first: it sends `{"type":"hello","client":ID}`, then the robot's
state 30 times a second and the status whenever it changes. Send `{"type":"alive"}` every second,
and the id as `X-Rote-Client` with each request that moves the robot or changes something. The id is
a secret of that client. One client commands; all clients may watch, and all clients may stop.
With the `time_s` of the newest `{"type":"beat"}` as `X-Rote-Beat`, a request that was delayed for
more than 2 s begins no motion.
"""
_MISSING_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>rote</title>
<h1>The page is missing</h1>
<p>This server works, but it has no page to show. {remedy} Then start this server
again.</p>
<p>The API is described in <a href="/openapi.json">/openapi.json</a>.</p></html>
"""


def has_page(static: Path = STATIC) -> bool:
    """Whether this installation has the page."""
    return (static / "index.html").is_file()


def page_remedy(checkout: Path = _CHECKOUT) -> str:
    """Return what to do if the page is missing: build it in a checkout, or reinstall."""
    if (checkout / "page" / "package.json").is_file():
        return "Build it in this checkout: make page."
    return (
        "This package was built without it: install one that has it, with "
        f"pip install --force-reinstall --no-deps {NAME}."
    )


def create_app(start: Start, gate: Gate, static: Path = STATIC) -> Guard:
    """Return the whole server, for any ASGI server."""
    if start.secret is not None and gate.token is None:
        raise BadRequestError(
            "a server that accepts agents would accept every program on this computer",
            "Set a token.",
        )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        hub = app.state.hub = Hub(start)
        try:
            await hub.open()
            yield
        finally:
            await hub.close()

    app = FastAPI(
        title="rote pendant",
        description=_ABOUT,
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # both would load scripts from other servers
        redoc_url=None,
    )
    app.state.tokens = gate.tokens
    _add_routes(app)
    _add_error_handlers(app)

    @app.websocket("/api/live")
    async def _live(socket: WebSocket) -> None:
        await serve_browser(socket, app.state.hub)

    @app.websocket(VIEW_PATH)
    async def _view(socket: WebSocket) -> None:
        await serve_viewer(socket, app.state.hub.views)

    if has_page(static):
        app.mount("/", StaticFiles(directory=static, html=True))
    else:
        app.get("/", include_in_schema=False, response_class=HTMLResponse)(_show_missing_page)

    def find_client_role(client: str) -> PendantRole | None:
        hub: Hub | None = getattr(app.state, "hub", None)
        return None if hub is None else hub.clients.role_of(client)

    return Guard(Compression(app), gate, find_client_role)


def _add_routes(app: FastAPI) -> None:
    # `include_router` would build every route again, a quarter of a second for each app.
    for module in (robot_routes, take_routes, show_routes, agent_routes):
        app.router.routes.extend(module.router.routes)


def openapi_document() -> dict[str, Any]:
    """Return the content of /openapi.json, from which the page's types are generated."""
    app = FastAPI(title="rote pendant", version=__version__)
    _add_routes(app)
    return app.openapi()


async def _show_missing_page() -> str:
    return _MISSING_PAGE.format(remedy=page_remedy())


def _add_error_handlers(app: FastAPI) -> None:
    """Answer every error with a message and a remedy."""
    for kind in (ProblemError, RoteError, TimeoutError):
        app.add_exception_handler(kind, _answer_error)
    app.add_exception_handler(RequestValidationError, _answer_schema_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(Exception, _answer_unexpected_error)


async def _answer_error(_: Request, error: Exception) -> Response:
    if isinstance(error, ProblemError):
        return _json_response(error.status, error.document())
    return _json_response(status_of(error), make_problem(error))


async def _answer_schema_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    message = "; ".join(
        f"{'.'.join(str(part) for part in mistake['loc'])}: {mistake['msg']}"
        for mistake in error.errors()
    )
    remedy = "Compare with /openapi.json."
    return _json_response(422, {"error": "schema", "message": message[:2000], "remedy": remedy})


async def _answer_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kinds = {404: "not-found", 405: "not-allowed", 408: "too-slow", 413: "too-large"}
    kind = kinds.get(error.status_code, "bad-request")
    document = {"error": kind, "message": str(error.detail), "remedy": ""}
    return _json_response(error.status_code, document, dict(error.headers or {}))


async def _answer_unexpected_error(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    remedy = "This is a defect of rote; its log has more."
    return _json_response(
        500, {"error": "defect", "message": type(error).__name__, "remedy": remedy}
    )


def _json_response(status: int, document: Any, headers: dict[str, str] | None = None) -> Response:
    if status in {408, 413}:  # the rest of the request's body is not read
        headers = {**(headers or {}), "connection": "close"}
    return Response(to_json(document), status, headers, media_type="application/json")
