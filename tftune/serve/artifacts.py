"""Artifacts by operation, target, build and stage: what serves, what served, and how it got there.

An artifact's stages are rows of a journal that only grows. The newest row of an operation, target,
build and stage says which artifact has that stage.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any

import sqlalchemy as sa

from tftune.models.artifact import Artifact, parse_artifact
from tftune.serve import gate, jobs
from tftune.serve.database import Database, now
from tftune.serve.refusal import Refusal, unknown
from tftune.serve.tables import ARTIFACTS, PLACEMENTS, REPORTS, build_of

KEPT = 64
"""Artifacts that are kept parsed."""


def add(
    database: Database,
    content: bytes,
    document: Mapping[str, Any],
    nodes: Mapping[str, int],
    by: str,
    job: str | None = None,
    said: str = "",
) -> str:
    """Store an artifact and make it the candidate; returns its digest. `job`: what made it, which
    ends with this in the same transaction. Raises ValueError where it has ended already."""
    op, target, digest = document["op"], document["target"], document["sha256"]
    place = {"op": op, "target": target, "build": build_of(document["build"].get("triton", ""))}
    row = {
        **place, "digest": digest, "sha256": sha256(content).hexdigest(),
        "bench": document["bench"], "rows": document["rows"], "nodes": json.dumps(nodes),
        "created": document["created"], "content": content,
    }  # fmt: skip
    with database.writing() as connection:
        if job is not None:
            jobs.finish(connection, job, digest, said)
        new = database.insert(ARTIFACTS).values(row)
        connection.execute(new.on_conflict_do_nothing(index_elements=["digest"]))
        put(
            connection, **place, stage="candidate", digest=digest, action="build", by=by,
            reason=f"{document['rows']:,} rows",
        )  # fmt: skip
    return str(digest)


def put(connection: sa.Connection, **placement: str) -> None:
    """Write that an artifact has a stage from now on; the gate is the caller's to ask."""
    connection.execute(sa.insert(PLACEMENTS).values(at=now(), **placement))


def at_stage(
    connection: sa.Connection, op: str, target: str, stage: str, build: str | None = None
) -> str | None:
    """The digest that has a stage; `build`: only of that minor version of Triton, else the newest
    placement of any. None where there is none."""
    if stage not in gate.STAGES:
        raise Refusal(422, f"{stage!r} is no stage; the stages are {', '.join(gate.STAGES)}")
    query = sa.select(PLACEMENTS.c.digest).filter_by(op=op, target=target, stage=stage)
    if build:
        query = query.filter_by(build=build_of(build))
    return connection.execute(query.order_by(PLACEMENTS.c.number.desc()).limit(1)).scalar()


def digest_at(database: Database, op: str, target: str, stage: str, build: str | None) -> str:
    """The digest that has a stage, as `at_stage`. Raises Refusal 404 where there is none."""
    with database.reading() as connection:
        digest = at_stage(connection, op, target, stage, build)
    if digest is None:
        of = f"{stage} artifact for {op} on {target}" + (f" of Triton {build}" if build else "")
        raise unknown(of, f"POST /v1/artifacts/{op}/{target}/build makes a candidate")
    return digest


def stored(database: Database, digest: str) -> tuple[bytes, str | None]:
    """An artifact's bytes and their signature. Raises Refusal 404."""
    query = sa.select(ARTIFACTS.c.content, ARTIFACTS.c.signature).filter_by(digest=digest)
    with database.reading() as connection:
        row = connection.execute(query).one_or_none()
    if row is None:
        raise unknown(f"artifact {digest[:12]}", "the history lists the digests")
    return bytes(row.content), row.signature


def known_digest(database: Database, given: str) -> str:
    """The digest of the artifact that is named by its digest, or by that of its bytes. Raises
    Refusal 404."""
    where = sa.or_(ARTIFACTS.c.digest == given, ARTIFACTS.c.sha256 == given)
    with database.reading() as connection:
        digest = connection.execute(sa.select(ARTIFACTS.c.digest).where(where)).scalar()
    if digest is None:
        raise unknown(f"artifact {given[:12]}", "the history lists the digests")
    return str(digest)


def parsed(database: Database, digest: str, op: str, target: str) -> Artifact:
    """The artifact of a digest, kept for the next time. Raises Refusal 404 where it is none of
    this operation and target."""
    artifact = _parsed(database, digest)
    if (artifact.op, artifact.target.name) != (op, target):
        raise unknown(f"artifact {digest[:12]} for {op} on {target}", "the history lists digests")
    return artifact


@lru_cache(maxsize=KEPT)
def _parsed(database: Database, digest: str) -> Artifact:
    content, _ = stored(database, digest)
    return parse_artifact(json.loads(content), f"artifact {digest[:12]}")


def promote(
    database: Database, op: str, target: str, digest: str, stage: str, by: str
) -> dict[str, str]:
    """Give an artifact a stage, where the gate lets it. Raises Refusal 409 with the gate's
    sentence."""
    digest = known_digest(database, digest)
    artifact = parsed(database, digest, op, target)
    with database.writing() as connection:
        build, nodes = _origin(connection, digest)
        digest_of = {each: at_stage(connection, op, target, each, build) for each in gate.STAGES}
        at = next((each for each in reversed(gate.STAGES) if digest_of[each] == digest), None)
        if at == stage:
            return {"digest": digest, "stage": stage, "was": digest}
        stable = digest_of["stable"]
        why = gate.why_not(
            artifact,
            stage,
            at,
            _parsed(database, stable) if stable else None,
            reports_of(connection, digest),
            nodes,
        )
        if why is not None:
            raise Refusal(409, f"artifact {digest[:12]} does not become {stage}: {why}")
        put(
            connection, op=op, target=target, build=build, stage=stage, digest=digest,
            action="promote", by=by, reason="the gate let it",
        )  # fmt: skip
        return {"digest": digest, "stage": stage, "was": digest_of[stage] or ""}


def _origin(connection: sa.Connection, digest: str) -> tuple[str, dict[str, int]]:
    query = sa.select(ARTIFACTS.c.build, ARTIFACTS.c.nodes).where(ARTIFACTS.c.digest == digest)
    build, nodes = connection.execute(query).one()
    return build, json.loads(nodes)


def roll_back(
    database: Database, op: str, target: str, stage: str, build: str | None, by: str
) -> dict[str, str]:
    """Give a stage back to the artifact that had it before. Raises Refusal 409 where none did."""
    with database.writing() as connection:
        if (digest := at_stage(connection, op, target, stage, build)) is None:
            raise unknown(f"{stage} artifact for {op} on {target}", "nothing can be rolled back")
        build, _ = _origin(connection, digest)
        place = {"op": op, "target": target, "build": build, "stage": stage}
        query = sa.select(PLACEMENTS.c.digest, PLACEMENTS.c.action).filter_by(**place)
        before: list[str] = []
        for row in connection.execute(query.order_by(PLACEMENTS.c.number)):
            if row.action == "rollback":  # what it left behind is gone for good
                before = before[: before.index(row.digest) + 1]
            elif not before or before[-1] != row.digest:
                before.append(row.digest)
        if len(before) < 2:
            raise Refusal(409, f"no artifact was {stage} for {op} on {target} before {digest[:12]}")
        put(
            connection, **place, digest=before[-2], action="rollback", by=by,
            reason=f"from {digest[:12]}",
        )  # fmt: skip
        return {"digest": before[-2], "stage": stage, "was": digest}


def sign(database: Database, op: str, target: str, digest: str, signature: str) -> dict[str, str]:
    """Keep the signature that a release key made offline over the artifact's bytes. Clients hold
    it against the public key that they pinned; this service has no key. Raises Refusal 422 where
    it is no base64 of 64 bytes."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Refusal(422, f"the signature is no base64 ({error})") from error
    if len(raw) != 64:
        raise Refusal(422, f"an Ed25519 signature has 64 bytes, and this one has {len(raw)}")
    digest = known_digest(database, digest)
    parsed(database, digest, op, target)
    change = sa.update(ARTIFACTS).where(ARTIFACTS.c.digest == digest)
    with database.writing() as connection:
        connection.execute(change.values(signature=base64.b64encode(raw).decode()))
    return {"digest": digest}


def history(database: Database, op: str, target: str) -> list[dict[str, Any]]:
    """Every placement, newest first."""
    columns = PLACEMENTS.c["number", "at", "stage", "digest", "build", "action", "by", "reason"]
    extra = ARTIFACTS.c["rows", "bench", "nodes", "signature"]
    where = PLACEMENTS.c.op == op, PLACEMENTS.c.target == target
    query = sa.select(*columns, *extra).join_from(PLACEMENTS, ARTIFACTS).where(*where)
    with database.reading() as connection:
        placements = connection.execute(query.order_by(PLACEMENTS.c.number.desc())).mappings().all()
    return [
        dict(row) | {"nodes": json.loads(row["nodes"]), "signed": row["signature"] is not None}
        for row in placements
    ]


def reports_of(connection: sa.Connection, digest: str) -> list[gate.Report]:
    """The verify reports of an artifact, oldest first."""
    query = sa.select(REPORTS.c.record).where(REPORTS.c.digest == digest).order_by(REPORTS.c.at)
    return [gate.Report.of(json.loads(row.record)) for row in connection.execute(query)]
