"""The part of the API that builds, serves and promotes artifacts, and selects by them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from tftune.report.diff import diff as compare
from tftune.serve import artifacts, bodies, jobs, selection
from tftune.serve.refusal import Refusal
from tftune.serve.service import needs, service_of
from tftune.serve.telemetry import say
from tftune.serve.tokens import Caller

router = APIRouter(prefix="/v1", tags=["artifacts"])
READ = [Depends(needs("read"))]
Promoter = Annotated[Caller, Depends(needs("promote"))]
Build = Annotated[str | None, Query(max_length=64, description="Triton, such as 3.6")]
DigestText = Annotated[str, Query(pattern="^[0-9a-f]{64}$")]


@router.get("/artifacts/{op}/{target}", dependencies=READ)
def get_artifact(
    request: Request, op: str, target: str, stage: str = "stable", build: Build = None
) -> Response:
    """The artifact of a stage, as bytes that a release key may have signed; 304 where the client
    has it."""
    database = service_of(request).database
    digest = artifacts.digest_at(database, op, target, stage, build)
    headers = {"etag": f'"{digest}"'}
    if _has(request, digest):
        return Response(status_code=304, headers=headers)
    content, signature = artifacts.stored(database, digest)
    headers["x-tftune-digest"] = digest
    if signature is not None:
        headers["x-tftune-signature"] = signature
    return Response(content, media_type="application/json", headers=headers)


def _has(request: Request, digest: str) -> bool:
    tags = request.headers.get("if-none-match", "").split(",")
    return any(tag.strip().removeprefix("W/") in (f'"{digest}"', "*") for tag in tags)


@router.get("/artifacts/{op}/{target}/history", dependencies=READ)
def get_history(request: Request, op: str, target: str) -> list[dict[str, Any]]:
    """What had which stage when, and who put it there; newest first."""
    return artifacts.history(service_of(request).database, op, target)


@router.get("/artifacts/{op}/{target}/diff", dependencies=READ)
def get_diff(
    request: Request, op: str, target: str, a: DigestText, b: DigestText
) -> dict[str, Any]:
    """What differs from artifact a to artifact b, as `tftune diff --json`."""
    database = service_of(request).database
    one, other = (artifacts.parsed(database, digest, op, target) for digest in (a, b))
    return compare(one, other).to_dict()


@router.post("/artifacts/{op}/{target}/build", status_code=202)
def build(
    request: Request, op: str, target: str, caller: Promoter, body: bodies.Build | None = None
) -> dict[str, str]:
    """Train on all nodes' current rows, judge it held out, and make it the candidate: a job."""
    service = service_of(request)
    bench = (body or bodies.Build()).bench
    job = jobs.queue(service.database, op, target, bench, caller.name)
    say("job", id=job, op=op, target=target, state="queued", caller=caller.id)
    return {"job": job}


@router.get("/jobs/{job}", dependencies=READ)
def get_job(request: Request, job: str) -> dict[str, Any]:
    """A job's state (queued, running, done, failed), what it said, and the digest that it made."""
    return jobs.found(service_of(request).database, job)


@router.post("/artifacts/{op}/{target}/promote")
def promote(
    request: Request, op: str, target: str, body: bodies.Promotion, caller: Promoter
) -> dict[str, str]:
    """candidate -> canary -> stable, where the gate lets it; 409 says what it misses."""
    database = service_of(request).database
    made = artifacts.promote(database, op, target, body.digest, body.stage, caller.name)
    say("promote", op=op, target=target, caller=caller.id, **made)
    return made


@router.post("/artifacts/{op}/{target}/signature")
def sign(
    request: Request, op: str, target: str, body: bodies.Signature, caller: Promoter
) -> dict[str, str]:
    """Keep a signature that was made offline over the artifact's bytes."""
    made = artifacts.sign(service_of(request).database, op, target, body.digest, body.signature)
    say("sign", op=op, target=target, caller=caller.id, digest=body.digest)
    return made


@router.post("/artifacts/{op}/{target}/rollback")
def roll_back(
    request: Request, op: str, target: str, caller: Promoter, body: bodies.Rollback | None = None
) -> dict[str, str]:
    """Give a stage back to the artifact that had it before."""
    database, asked = service_of(request).database, body or bodies.Rollback()
    made = artifacts.roll_back(database, op, target, asked.stage, asked.build, caller.name)
    say("rollback", op=op, target=target, caller=caller.id, **made)
    return made


@router.post("/select", dependencies=READ)
def select(request: Request, body: bodies.Ask) -> Response:
    """The config of each shape with its source, reason and expected time in microseconds."""
    service = service_of(request)
    if len(body.shapes) > (most := service.settings.limits.shapes):
        raise Refusal(413, f"{len(body.shapes):,} shapes were asked for, and {most:,} are allowed")
    database = service.database
    selector = selection.selector_at(database, body.op, body.target, body.stage, body.build)
    shapes = selection.parsed_shapes(body.op, body.shapes)
    answers = [{"shape": str(shape), **selector.select(shape, body.mode).to_dict()}
               for shape in shapes]  # fmt: skip
    for source, count in Counter(each["source"] for each in answers).items():
        service.metrics.selections.labels(source).inc(count)
    return Response(json.dumps(answers), media_type="application/json")
