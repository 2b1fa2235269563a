"""Who may ask for what: every route needs its scope, and tokens expire, are revoked and never
shown."""

from __future__ import annotations

import logging
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from fastapi.routing import APIRoute
from serving import Served, body, opened

from tftune.serve import tokens
from tftune.serve.guards import HEADERS
from tftune.serve.pages import router, style_router
from tftune.serve.tables import TOKENS

OPEN = {"/healthz", "/style.css", "/icon.svg"}
"""Routes that need no token."""
SCOPES = {
    ("POST", "/v1/rows"): "rows", ("POST", "/v1/reports"): "rows",
    ("POST", "/v1/captures"): "rows", ("POST", "/v1/findings"): "rows",
    ("POST", "/v1/findings/{number}/{action}"): "promote",
    ("POST", "/v1/artifacts/{op}/{target}/build"): "promote",
    ("POST", "/v1/artifacts/{op}/{target}/promote"): "promote",
    ("POST", "/v1/artifacts/{op}/{target}/signature"): "promote",
    ("POST", "/v1/artifacts/{op}/{target}/rollback"): "promote",
    ("GET", "/v1/tokens"): "admin", ("DELETE", "/v1/tokens/{number}"): "admin",
}  # fmt: skip
"""What a route needs; every other one needs `read`."""


def asked(path: str) -> str:
    """A path with its parts filled in."""
    parts = {"op": "flash_decode", "target": "h200x8", "number": "1", "action": "close"}
    for name, value in {**parts, "job": "1"}.items():
        path = path.replace(f"{{{name}}}", value)
    return path


def test_every_route_needs_its_scope(served: Served) -> None:
    seen = set()
    for method, path in served.routes():
        if path in OPEN:
            continue
        seen.add((method, path))
        scope = SCOPES.get((method, path), "read")
        assert served.ask(method, asked(path), None).status_code == 401, path
        others = " ".join(sorted({"read", "rows", "promote"} - {scope}))
        refused = served.ask(method, asked(path), others)
        assert refused.status_code == 403 and f"scope {scope}" in refused.json()["detail"]
        for enough in (scope, "admin"):
            assert served.ask(method, asked(path), enough).status_code not in (401, 403, 500)
    assert seen >= SCOPES.keys() and len(seen) >= 20


def test_no_route_is_outside_the_schema(served: Served) -> None:
    """The test above goes by the schema: pages, which are not in it, are tested on their own."""
    app: Any = served.client.app
    known = {path for _, path in served.routes()}
    hidden = {route.path for route in app.routes if isinstance(route, APIRoute)} - known
    assert all(not path.startswith("/v1") for path in hidden)


def test_a_token_is_stored_as_its_hash_alone(served: Served) -> None:
    token = tokens.create(served.database, "me", ["read"])
    secret = token.split("_", 2)[2]
    with served.database.reading() as connection:
        rows = connection.execute(sa.select(TOKENS)).all()
    assert len(secret) >= 43 and secret not in str(rows)
    assert secret not in str(tokens.listed(served.database))


@pytest.mark.parametrize(
    "change", ["expired", "revoked", "cut", "longer", "other", "empty", "basic", "prefix", "odd"]
)
def test_a_token_that_is_not_whole_and_valid_opens_nothing(served: Served, change: str) -> None:
    token = tokens.create(served.database, "me", ["admin"], days=1)
    number, secret = token.split("_", 2)[1:]
    if change == "expired":
        with served.database.writing() as connection:
            past = sa.update(TOKENS).where(TOKENS.c.id == number)
            connection.execute(past.values(expires="2026-11-22T00:00:00.000+00:00"))
    elif change == "revoked":
        assert served.get("/v1/rows", None, headers={"authorization": f"Bearer {token}"})
        assert tokens.revoke(served.database, number)
    other = tokens.create(served.database, "other", ["admin"])
    kind = "Basic" if change == "basic" else "Bearer"
    word = {
        "cut": token[:-1], "longer": token + "A", "other": f"tft_{number}_{other.split('_', 2)[2]}",
        "empty": "", "prefix": f"x{token}", "odd": f"tft_{number}'--_{secret}",
        "basic": b64encode(f"me:{token}".encode()).decode(),
    }.get(change, token)  # fmt: skip
    answer = served.get("/v1/rows", None, headers={"authorization": f"{kind} {word}"})
    assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert secret not in answer.text


def test_a_revoked_token_is_refused_at_once_over_http(served: Served) -> None:
    token = tokens.create(served.database, "me", ["read"])
    mine = {"authorization": f"Bearer {token}"}
    assert served.get("/v1/rows", None, headers=mine).status_code == 200
    number = token.split("_")[1]
    assert served.ask("DELETE", f"/v1/tokens/{number}").json() == {"revoked": number}
    assert served.get("/v1/rows", None, headers=mine).status_code == 401
    assert served.ask("DELETE", "/v1/tokens/none").status_code == 404


def test_a_token_of_a_node_speaks_for_no_other(served: Served) -> None:
    token = tokens.create(served.database, "me", ["rows"], node="node-7")
    for node, status in (("node-7", 200), ("node-8", 403)):
        headers = {"authorization": f"Bearer {token}", "x-tftune-node": node}
        answer = served.client.post("/v1/rows", content=body(1), headers=headers)
        assert answer.status_code == status


def test_reading_without_a_token_is_asked_for(tmp_path: Path) -> None:
    with opened("sqlite", tmp_path, anonymous_read=True) as served:
        assert served.get("/v1/rows", None).status_code == 200
        assert served.post("/v1/rows", None, content=body(1)).status_code == 401
        assert served.get("/v1/tokens", None).status_code == 401
        bad = {"authorization": "Bearer tft_1_2"}
        assert served.get("/v1/rows", None, headers=bad).status_code == 401


@pytest.mark.parametrize(
    ("scopes", "days", "name"),
    [([], None, "me"), (["root"], None, "me"), (["read"], -1, "me"), (["read"], None, "a\nb")],
)
def test_a_token_that_makes_no_sense_is_refused(
    served: Served, scopes: list[str], days: float | None, name: str
) -> None:
    with pytest.raises(ValueError):
        tokens.create(served.database, name, scopes, days)


def test_logs_hold_no_secret_and_one_line_for_each_request(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tftune.serve")
    token = served.token("admin")
    served.get(f"/v1/rows?op={token}", "admin")
    served.get("/v1/a%0Ab status=200", "admin")
    served.push(body(1), node="a b=c\x7f<script>")
    text = [record.getMessage() for record in caplog.records]
    assert token.split("_", 2)[2] not in "\n".join(text)
    assert len(text) >= 3 and not any("\n" in line for line in text)


def test_an_unknown_parameter_is_refused_with_the_known_ones(served: Served) -> None:
    """By every route, pages too: a mistyped filter would answer more than was asked for."""
    found = [("GET", route.path) for part in (router, style_router) for route in part.routes]
    for method, path in [*served.routes(), *found]:
        refused = served.ask(method, f"{asked(path)}?opp=x")
        assert refused.status_code == 422 and "opp" in refused.text, path
    assert len(found) >= 9
    refused = served.get("/v1/rows?op=x&opp=x")
    known = "after, build, limit, op, shape, target"
    assert refused.json() == {"detail": f"'opp' is no parameter of this route; it takes: {known}"}


def test_every_answer_has_the_headers(served: Served) -> None:
    for path in ("/healthz", "/v1/rows", "/nothing", "/v1/rows?limit=x"):
        found = served.get(path).headers
        assert {name: found[name] for name in HEADERS} == HEADERS
        assert "set-cookie" not in found and "server" not in found
