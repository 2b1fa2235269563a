"""The part of the API that nodes report to: verify reports, captures, findings; and tokens."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request

from tftune.serve import bodies, fleet, tokens
from tftune.serve.refusal import unknown
from tftune.serve.service import needs, service_of
from tftune.serve.telemetry import say
from tftune.serve.tokens import Caller

router = APIRouter(prefix="/v1", tags=["fleet"])
READ = [Depends(needs("read"))]
ADMIN = [Depends(needs("admin"))]
Node = Annotated[Caller, Depends(needs("rows"))]


@router.post("/reports")
def report(request: Request, body: bodies.VerifyReport, caller: Node) -> dict[str, Any]:
    """What `tftune verify` of a node said of an artifact; `why` is what it lacks to confirm."""
    node = caller.node_of(body.node)
    made = fleet.add_report(service_of(request).database, body, node, caller.name)
    say("report", node=node, digest=body.digest, confirms=made["confirms"], caller=caller.id)
    return made


@router.post("/captures")
def capture(request: Request, body: bodies.Capture, caller: Node) -> dict[str, int]:
    """How often a process ran which shapes. The same `id` sent again replaces its counts."""
    return fleet.add_capture(service_of(request).database, body, caller.node_of(body.node))


@router.get("/captures/{op}/{target}", dependencies=READ)
def captures(request: Request, op: str, target: str) -> dict[str, Any]:
    """The shapes that a fleet runs, by time at stake, and the share of its time on measured
    ones. Times are those that the stable artifact expects."""
    runs = fleet.captured(service_of(request).database, op, target)
    return {**fleet.share_measured(runs), "shapes": [run.to_dict() for run in runs]}


@router.post("/findings")
def open_finding(request: Request, body: bodies.Finding, caller: Node) -> dict[str, str]:
    """Open a finding: times moved by more than their interval."""
    node = caller.node_of(body.node)
    made = fleet.add_finding(service_of(request).database, body, node, caller.name)
    say("finding", node=node, caller=caller.id, **made)
    return made


@router.get("/findings", dependencies=READ)
def get_findings(
    request: Request, state: Literal["open", "acknowledged", "closed"] | None = None
) -> list[dict[str, Any]]:
    """Findings, newest first."""
    return fleet.findings(service_of(request).database, state)


@router.post("/findings/{number}/{action}")
def change_finding(
    request: Request,
    number: str,
    action: Literal["acknowledge", "close"],
    caller: Annotated[Caller, Depends(needs("promote"))],
) -> dict[str, str]:
    """Acknowledge or close a finding."""
    made = fleet.change_finding(service_of(request).database, number, action, caller.name)
    say("finding", caller=caller.id, **made)
    return made


@router.get("/tokens", dependencies=ADMIN)
def get_tokens(request: Request) -> list[dict[str, Any]]:
    """Every token, without its secret."""
    return tokens.listed(service_of(request).database)


@router.delete("/tokens/{number}", dependencies=ADMIN)
def revoke(request: Request, number: str) -> dict[str, str]:
    """Revoke a token, at once."""
    if not tokens.revoke(service_of(request).database, number):
        raise unknown(f"token {number[:32]!r}", "GET /v1/tokens lists them")
    say("revoke", token=number)
    return {"revoked": number}
