"""The part of the API that takes and gives rows."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool

from tftune.serve import rows
from tftune.serve.refusal import Refusal
from tftune.serve.service import needs, service_of
from tftune.serve.settings import Limits
from tftune.serve.tables import WORD
from tftune.serve.telemetry import say
from tftune.serve.tokens import Caller

router = APIRouter(prefix="/v1", tags=["rows"])
Text = Annotated[str | None, Query(max_length=1000)]
SCHEMA = {"requestBody": {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}}


@router.post("/rows", openapi_extra=SCHEMA)
async def push(
    request: Request, caller: Annotated[Caller, Depends(needs("rows"))]
) -> dict[str, int]:
    """Store rows as `tftune trials export` writes them, plain or gzip: all of them or none. A row
    that is stored already is counted as known. Header `X-Tftune-Node` names the node."""
    service = service_of(request)
    node = caller.node_of(_node(request))
    if not service.uploads.acquire(blocking=False):
        raise Refusal(503, f"{service.settings.limits.uploads} uploads run; try again in a minute")
    try:
        with rows.Intake(service.settings.limits, node) as intake:
            async for part in request.stream():
                await run_in_threadpool(intake.feed, part)
            counts = await asyncio.shield(run_in_threadpool(intake.finish, service.database))
    finally:
        service.uploads.release()
    for outcome, count in counts.items():
        service.metrics.rows.labels(outcome).inc(count)
    say("rows", node=node, caller=caller.id, **counts)
    return counts


def _node(request: Request) -> str | None:
    """What the header says, as printable text."""
    given = request.headers.get("x-tftune-node")
    if given is not None and not (given.isprintable() and 0 < len(given) <= WORD):
        raise Refusal(422, f"X-Tftune-Node must be 1 to {WORD} printable characters")
    return given


@router.get("/rows", dependencies=[Depends(needs("read"))])
def get_rows(
    request: Request,
    op: Text = None,
    target: Text = None,
    build: Text = None,
    shape: Text = None,
    after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=Limits.page)] = 100,
) -> dict[str, Any]:
    """Rows and their runs in the order in which they came; `next` is the `after` of the next
    page. `build`: minor version of Triton, such as 3.6."""
    asked = {"op": op, "target": target, "build": build, "shape": shape}
    return rows.page(service_of(request).database, asked, after, limit)
