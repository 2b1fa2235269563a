"""What requests hold, as pydantic models: each field with its bounds. What does not fit is 422."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tftune.kernels.core.chip import SLUG
from tftune.serve.tables import WORD

LARGEST = 2**53
"""The largest count: what JSON numbers hold exactly."""
PLAIN = r"^[^\x00]*$"
"""PostgreSQL stores no NUL."""
PRINTABLE = r"^[^\x00-\x1f\x7f-\x9f]*$"
"""Names are printed by terminals, which obey control characters."""
Word = Annotated[str, StringConstraints(min_length=1, max_length=WORD, pattern=PRINTABLE)]
TargetName = Annotated[
    str, StringConstraints(max_length=WORD, pattern=rf"^{SLUG.pattern}x[1-9][0-9]*$")
]
"""As of rows: names of targets become names of files."""
Sentence = Annotated[str, StringConstraints(max_length=4000, pattern=PLAIN)]
ShapeText = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=PLAIN)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Mode = Literal["graph", "eager"]
Ratio = Annotated[float, Field(gt=0, lt=1e9, allow_inf_nan=False)]


class Body(BaseModel):
    """Unknown fields are passed over: clients are newer than the service at times."""

    model_config = ConfigDict(extra="ignore")


class Build(Body):
    """What to train on; everything of the operation and target by default."""

    bench: Literal["node", "model", "replay"] = "node"


class Promotion(Body):
    digest: Digest
    stage: Literal["canary", "stable"]


class Signature(Body):
    digest: Digest
    signature: Annotated[str, StringConstraints(max_length=200)]


class Rollback(Body):
    stage: Literal["canary", "stable"] = "stable"
    build: Word | None = None


class Ask(Body):
    op: Word
    target: TargetName
    mode: Mode = "graph"
    stage: Literal["candidate", "canary", "stable"] = "stable"
    build: Word | None = None
    shapes: list[ShapeText]


class VerifyRow(Body):
    """One check, as `tftune verify --json` has it."""

    shape: ShapeText
    mode: Mode
    holds: bool
    promised: Ratio
    speedup: Ratio | None = None
    verdict: Sentence = ""


class VerifyReport(Body):
    digest: Digest
    node: Word | None = None
    rows: Annotated[list[VerifyRow], Field(min_length=1, max_length=1000)]


Counted = Annotated[int, Field(ge=0, le=LARGEST)]


class Count(Body):
    """How often one shape ran, as `db.captured` counts it."""

    op: Word
    shape: ShapeText
    mode: Mode = "graph"
    calls: Counted = 0
    replays: Counted = 0
    selections: Counted = 0


class Capture(Body):
    """Counts since a process began."""

    capture: Literal[1] = 1
    """Version of the form."""
    id: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z_.:-]{1,64}$")] | None = None
    """The same id again replaces what it said; without one, the same content is one capture."""
    target: TargetName | None = None
    """None: that of the node's newest rows."""
    node: Word | None = None
    shapes: Annotated[list[Count], Field(max_length=10_000)]


class Finding(Body):
    """What a sentinel saw move."""

    op: Word
    target: TargetName
    node: Word | None = None
    shape: ShapeText | None = None
    mode: Mode | None = None
    text: Annotated[Sentence, StringConstraints(min_length=1)]
    at: Word | None = None
