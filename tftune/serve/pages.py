"""The pages, rendered here by Jinja: no script runs in the browser. They only read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from tftune.report.glossary import prose
from tftune.report.page_style import STYLE
from tftune.report.results_table import folded, results, shapes_of
from tftune.report.series import Series, layout_title
from tftune.report.tables import BENCH_WORDS, after_discount
from tftune.serve import artifacts, fleet, plots, views
from tftune.serve.refusal import Refusal
from tftune.serve.selection import parsed_shapes, stable_selector
from tftune.serve.service import reader, service_of

style_router = APIRouter(include_in_schema=False)
router = APIRouter(include_in_schema=False, dependencies=[Depends(reader)])
Word = Annotated[str, Query(max_length=200)]
ICON = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path fill='none' "
    "stroke='#0072b2' stroke-width='3' d='M1 4h14M1 11h8'/></svg>"
)
MOST = 400
"""Measurements of a shape's story that are listed."""


@cache
def templates() -> Environment:
    """Every value is escaped; an unknown name is an error."""
    made = Environment(
        loader=PackageLoader("tftune.serve"), autoescape=select_autoescape(),
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.globals["link"] = link
    made.filters |= {"breaks": breaks, "prose": lambda text: Markup(prose(text))}
    made.filters["day"] = lambda text: text[:16].replace("T", " ")
    return made


def link(page: str, **values: str) -> str:
    """The address of a page; values are quoted."""
    return f"{page}?{urlencode(values)}" if values else page


def breaks(text: object) -> Markup:
    """Long names may take a new line after these characters."""
    escaped = str(Markup.escape(str(text)))
    return Markup(re.sub(r"([,/(_])", r"\1<wbr>", escaped))


def rendered(template: str, code: int = 200, here: str = "/", **values: Any) -> HTMLResponse:
    """`here`: the page of the menu that this one belongs to."""
    return HTMLResponse(templates().get_template(template).render(here=here, **values), code)


@style_router.get("/style.css")
def style() -> Response:
    """The report's style sheet, and what these pages have beside it."""
    own = templates().get_template("style.css").render()
    return Response(STYLE + own, media_type="text/css", headers={"cache-control": "max-age=300"})


@style_router.get("/icon.svg")
def icon() -> Response:
    """A line below a line: a kernel's time beside BSP's."""
    return Response(ICON, media_type="image/svg+xml", headers={"cache-control": "max-age=86400"})


@router.get("/")
def targets(request: Request) -> Response:
    """Which operations, targets and builds are measured, and what serves them."""
    database = service_of(request).database
    return rendered(
        "targets.html",
        covered=views.coverage(database),
        jobs=views.newest_jobs(database),
        findings=views.open_findings(database),
    )


@router.get("/operation")
def operation(request: Request, op: Word, target: Word, bench: Word | None = None) -> Response:
    """One operation's speed-ups on one target."""
    database = service_of(request).database
    measured = views.measured(database, op, target, bench)
    return rendered(
        "operation.html",
        op=op,
        target=target,
        found=measured,
        word=BENCH_WORDS[measured.source.bench],
        wins=views.variants(measured.source),
        after=after_discount(measured.source.bench),
        plots=Markup(_plots(op, measured.series)),
        results=Markup(results(op, measured.series)),
        captured=_captured(request, op, target),
    )


def _captured(request: Request, op: str, target: str) -> dict[str, Any] | None:
    """The shapes that the fleet runs, if a node said any."""
    runs = fleet.captured(service_of(request).database, op, target)
    return {**fleet.share_measured(runs), "runs": runs[:20], "all": len(runs)} if runs else None


def _plots(op: str, series: Sequence[Series]) -> str:
    """A plot for each series of several sizes, folded by mode and layout; the first is open."""
    made: list[str] = []
    several = [each for each in series if len(each.lines) > 1]
    for (mode, layout), group in groupby(several, key=lambda each: (each.mode, each.layout)):
        of_layout = list(group)
        figures = "".join(
            f"<figure><h3>{Markup.escape(each.name)}</h3>{plots.speedups(each)}</figure>"
            for each in of_layout
        )
        title = f"Mode {mode}, {layout_title(op, layout)}"
        body = f"<div class='grid'>{figures}</div>"
        made.append(folded(title, shapes_of(of_layout), body, is_open=not made))
    return "".join(made)


@router.get("/artifacts")
def artifact_list(request: Request, op: Word, target: Word) -> Response:
    """What has which stage, and how it got there."""
    database = service_of(request).database
    return rendered(
        "artifacts.html",
        op=op,
        target=target,
        staged=views.staged(database, op, target),
        history=artifacts.history(database, op, target),
    )


@router.get("/artifact")
def artifact(request: Request, op: Word, target: Word, digest: Word) -> Response:
    """An artifact's held-out report, verify reports and trees."""
    database = service_of(request).database
    parsed = artifacts.parsed(database, digest, op, target)
    history = [row for row in artifacts.history(database, op, target) if row["digest"] == digest]
    return rendered(
        "artifact.html",
        op=op,
        target=target,
        artifact=parsed,
        layouts=views.layouts(parsed),
        reports=views.reports(database, digest),
        history=history,
        Markup=Markup,
    )


@router.get("/shape")
def shape(request: Request, op: Word, target: Word, shape: Annotated[str, Query(max_length=1000)]
) -> Response:  # fmt: skip
    """A shape's story: all measurements, what is selected, and why."""
    database = service_of(request).database
    asked = parsed_shapes(op, [shape])[0]
    story = views.story(database, target, asked)
    selector = stable_selector(database, op, target)
    chosen = [(mode, selector.select(asked, mode), selector.path(asked, mode))
              for mode in ("graph", "eager")] if selector else []  # fmt: skip
    return rendered(
        "shape.html",
        op=op,
        target=target,
        shape=asked,
        story=story[:MOST],
        count=len(story),
        chosen=chosen,
    )


@router.get("/findings")
def findings(request: Request) -> Response:
    """What sentinels saw move."""
    rows = fleet.findings(service_of(request).database)
    return rendered("findings.html", here="/findings", findings=rows)


@router.get("/nodes")
def nodes(request: Request) -> Response:
    """Who sent what."""
    return rendered("nodes.html", here="/nodes", nodes=views.nodes(service_of(request).database))


@router.get("/api")
def api(request: Request) -> Response:
    """Every route of the API, from its OpenAPI schema."""
    paths = request.app.openapi()["paths"]
    routes = [
        (method.upper(), path, of.get("description", of["summary"]))
        for path, methods in paths.items()
        for method, of in methods.items()
    ]
    return rendered("api.html", here="/api", routes=routes)


def error_page(error: Refusal) -> HTMLResponse:
    """A refusal for people."""
    return rendered("error.html", error.status, here="", status=error.status, said=str(error))
