"""docs/service.md says what the service does: its routes, scopes, limits and the gate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from serving import Served

from tftune.serve import gate
from tftune.serve.rows import MOST_RUNS
from tftune.serve.settings import MB, Limits
from tftune.serve.tokens import SCOPES

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/service.md").read_text()


def test_the_page_lists_every_route_and_no_other(served: Served) -> None:
    real = {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path in served.routes()}
    real -= {("POST", "/v1/findings/{}/{}")}
    table = PAGE.partition("## API")[2].partition("## Promotion")[0]
    told = {
        (method, re.sub(r"\{\w+\}", "{}", path))
        for method, path in re.findall(r"(GET|POST|DELETE) (/[\w/{}]*)", table)
    }
    assert told - {("POST", "/v1/findings/{}/acknowledge")} == real


def test_the_page_lists_every_scope() -> None:
    table = PAGE.partition("## Tokens")[2].partition("## API")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(SCOPES)


def test_the_page_has_the_numbers_of_the_gate() -> None:
    table = PAGE.partition("## Promotion")[2].partition("## Limits")[0]
    for text in (
        f"at most {gate.REGRET:.2f}", f"at most {gate.WORSE:.2f} times",
        f"at least {gate.CHECKS} checks", f"at least {gate.AGREES:.2f} of",
    ):  # fmt: skip
        assert text in table
    assert gate.SHARE == 0.5 and "at most half of the rows" in table


def test_the_page_has_the_limits() -> None:
    limits = Limits()
    table = PAGE.partition("## Limits")[2].partition("## PostgreSQL")[0]
    for text in (
        f"{limits.rows_bytes // MB} MB, {limits.rows_s / 60:.0f} minutes",
        f"{limits.line_bytes // MB} MB; {MOST_RUNS:,}; {limits.lines:,}", f"| {limits.uploads} |",
        f"{limits.body_bytes // MB} MB, {limits.body_s:.0f} s",
        f"{limits.idle_s:.0f} s; {limits.headers_s:.0f} s", f"{limits.shapes:,}",
        f"| {limits.connections} |",
    ):  # fmt: skip
        assert text in table, text


@pytest.mark.parametrize("name", ["compose.yaml", "serve.Dockerfile"])
def test_what_is_not_built_here_says_so(name: str) -> None:
    assert "Not built here" in (ROOT / "docker" / name).read_text()


def test_the_compose_file_holds_no_password_and_names_what_exists() -> None:
    text = (ROOT / "docker/compose.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    place = services["serve"]["environment"]["TFTUNE_SERVE_DB"]
    assert place == "postgresql://tftune:${POSTGRES_PASSWORD}@postgres/tftune"
    assert services["postgres"]["environment"]["POSTGRES_USER"] == "tftune"
    assert (ROOT / services["serve"]["build"]["dockerfile"]).exists()
    assert services["serve"]["ports"] == ["127.0.0.1:8377:8377"]
