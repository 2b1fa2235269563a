"""The application: routes, what an error looks like, and what starts and stops with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import sqlalchemy as sa
from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import generate_latest
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect

from tftune import __version__
from tftune.serve import api_artifacts, api_fleet, api_rows, pages
from tftune.serve.database import Database
from tftune.serve.guards import Guard
from tftune.serve.jobs import Worker
from tftune.serve.refusal import Refusal
from tftune.serve.service import Service, needs, service_of
from tftune.serve.settings import Settings
from tftune.serve.telemetry import say

ABOUT = (
    "One place for a fleet's rows and artifacts. Errors are JSON with one sentence under `detail`."
)


def create_app(settings: Settings, database: Database) -> FastAPI:
    """The application over a database at its newest schema."""
    service = Service(settings, database)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        worker = Worker(database, settings.db)
        if settings.builds:
            worker.start()
        yield
        worker.stop()
        say("stopped")

    guard = Middleware(Guard, limits=settings.limits, metrics=service.metrics)
    app = FastAPI(
        title="tftune", version=__version__, description=ABOUT, middleware=[guard],
        dependencies=[Depends(known_query)], docs_url=None, redoc_url=None, lifespan=running,
    )  # fmt: skip
    app.state.service = service
    for part in (api_rows, api_artifacts, api_fleet, pages):
        app.include_router(part.router)
    app.include_router(pages.style_router)
    app.add_api_route("/healthz", healthz, tags=["operation"], response_class=PlainTextResponse)
    app.add_api_route(
        "/metrics", metrics, tags=["operation"], dependencies=[Depends(needs("read"))],
        response_class=PlainTextResponse,
    )  # fmt: skip
    app.add_exception_handler(Refusal, refused)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(sa.exc.OperationalError, unavailable)
    app.add_exception_handler(ClientDisconnect, gone)
    return app


def known_query(request: Request) -> None:
    """Raises Refusal 422 for a parameter that the route would pass over, as a mistyped filter."""
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    if unknown := sorted(request.query_params.keys() - known):
        names = ", ".join(sorted(known)) or "none"
        raise Refusal(422, f"{unknown[0]!r:.80} is no parameter of this route; it takes: {names}")


def healthz(request: Request) -> Response:
    """200 and `ok` where the database answers."""
    with service_of(request).database.reading() as connection:
        connection.execute(sa.select(1))
    return PlainTextResponse("ok\n")


def metrics(request: Request) -> Response:
    """Counters in Prometheus' text format."""
    return PlainTextResponse(generate_latest(service_of(request).metrics.registry))


async def refused(request: Request, error: Exception) -> Response:
    """JSON for the API; for pages HTML, and 401 makes a browser ask for the token."""
    assert isinstance(error, Refusal)
    is_page = getattr(request.scope.get("route"), "include_in_schema", True) is False
    if is_page:
        page = pages.error_page(error)
        if error.status == 401:
            page.headers["www-authenticate"] = 'Basic realm="tftune: the token as password"'
        return page
    headers = {"www-authenticate": "Bearer"} if error.status == 401 else {}
    if error.status in (408, 413, 503):
        headers |= {"connection": "close"}
    if error.status == 503:
        headers |= {"retry-after": "5"}
    return JSONResponse({"detail": str(error)}, error.status, headers)


async def invalid(request: Request, error: Exception) -> Response:
    """A sentence for the first thing that does not fit; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])[:200]
    sentence = f"{place}: {first['msg']}".encode(errors="replace").decode()
    return JSONResponse({"detail": sentence}, 422)


async def gone(request: Request, error: Exception) -> Response:
    """The client left in the middle of its body; nobody reads this."""
    return JSONResponse({"detail": "the connection was closed"}, 400)


async def unavailable(request: Request, error: Exception) -> Response:
    """The database did not answer, or another process held it for too long."""
    assert isinstance(error, sa.exc.OperationalError)
    say("database", error=str(error.orig))
    sentence = "the database does not answer now; try again in a while"
    return JSONResponse({"detail": sentence}, 503, {"retry-after": "5"})
