"""What requests share: the database, the limits, the metrics, and who may ask for what."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Semaphore

from fastapi import Request

from tftune.serve.database import Database
from tftune.serve.refusal import Refusal
from tftune.serve.settings import Settings
from tftune.serve.telemetry import Metrics
from tftune.serve.tokens import ANYBODY, Caller, caller_of


@dataclass
class Service:
    """One running service."""

    settings: Settings
    database: Database
    metrics: Metrics = field(default_factory=Metrics)
    uploads: Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.uploads = Semaphore(self.settings.limits.uploads)


def service_of(request: Request) -> Service:
    """The service that answers this request."""
    service: Service = request.app.state.service
    return service


def needs(scope: str) -> Callable[[Request], Caller]:
    """A dependency: the caller, who has this scope by a bearer token. Raises Refusal 401 or
    403."""

    def caller(request: Request) -> Caller:
        kind, _, word = request.headers.get("authorization", "").partition(" ")
        token = word.strip() if kind.lower() == "bearer" else None
        return _admitted(request, scope, token)

    return caller


def reader(request: Request) -> Caller:
    """A dependency of pages: as `needs("read")`, but a browser may send the token as the password
    of HTTP Basic. Pages only read, so that a request forged by another site changes nothing."""
    kind, _, word = request.headers.get("authorization", "").partition(" ")
    token = word.strip() if kind.lower() == "bearer" else None
    if kind.lower() == "basic":
        try:
            token = base64.b64decode(word, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            token = ""
    return _admitted(request, "read", token)


def _admitted(request: Request, scope: str, token: str | None) -> Caller:
    service = service_of(request)
    if token is None:
        if scope == "read" and service.settings.anonymous_read:
            request.state.caller = ANYBODY.id
            return ANYBODY
        raise Refusal(401, f"this needs a token with scope {scope}: `Authorization: Bearer TOKEN`")
    caller = caller_of(service.database, token)
    request.state.caller = caller.id
    if not caller.may(scope):
        held = ", ".join(sorted(caller.scopes))
        raise Refusal(403, f"this needs scope {scope}, and token {caller.id} has {held}")
    return caller
