"""What every request passes: bounds of size and time, security headers, one log line, metrics."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from time import monotonic

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tftune.serve.settings import MB, Limits
from tftune.serve.telemetry import Metrics, say

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Pages run no script at all."""
UPLOAD = ("POST", "/v1/rows")
SEND_S = 60.0
"""In which a client must take one part of an answer."""


@dataclass
class Body:
    """A request's body on its way in, held against its bounds."""

    receive: Receive
    most_bytes: int
    most_s: float
    idle_s: float
    began: float = field(default_factory=monotonic)
    taken: int = 0
    ended: bool = False

    async def next(self) -> Message:
        """The next part. Raises HTTPException 413 where the body is too large, 408 where it is
        too slow."""
        if self.ended:  # what follows is a disconnect, which may take as long as it likes
            return await self.receive()
        left = min(self.idle_s, self.began + self.most_s - monotonic())
        try:
            message = await asyncio.wait_for(self.receive(), max(left, 0.001))
        except TimeoutError as error:
            raise HTTPException(408, self._slow(), {"connection": "close"}) from error
        self.taken += len(message.get("body", b""))
        if self.taken > self.most_bytes:
            raise too_large(self.taken, self.most_bytes)
        self.ended = not message.get("more_body", False)
        return message

    def _slow(self) -> str:
        return (
            f"after {monotonic() - self.began:.0f} s {self.taken:,} bytes of the body had come; "
            f"it may take {self.most_s:.0f} s, and pause for {self.idle_s:.0f} s"
        )


def too_large(found: int, most: int) -> HTTPException:
    """413, with both numbers."""
    sentence = (
        f"the body may have {most // MB} MB, and this one has {found / MB:.3g} MB or more; "
        "send it in parts"
    )
    return HTTPException(413, sentence, {"connection": "close"})


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, limits: Limits, metrics: Metrics) -> None:
        self.app, self.limits, self.metrics = app, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = monotonic(), 500
        body = self._body(scope, receive)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                given = {name.lower() for name, _ in message["headers"]}
                extra = [(k.encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [
                    *message["headers"],
                    *(pair for pair in extra if pair[0] not in given),
                ]
            await asyncio.wait_for(send(message), SEND_S)

        try:
            if (why := self._why_refused(scope, body)) is not None:
                headers = {"connection": "close"}
                refused = JSONResponse({"detail": why.detail}, why.status_code, headers)
                await refused(scope, receive, answer)
            else:
                await self.app(scope, body.next, answer)
        finally:
            self._note(scope, status, monotonic() - began, body.taken)

    def _body(self, scope: Scope, receive: Receive) -> Body:
        limits = self.limits
        rows = (scope["method"], scope["path"]) == UPLOAD
        most = (limits.rows_bytes, limits.rows_s) if rows else (limits.body_bytes, limits.body_s)
        return Body(receive, *most, limits.idle_s)

    def _why_refused(self, scope: Scope, body: Body) -> HTTPException | None:
        """What is refused before anything is read."""
        if b"%00" in scope["query_string"] or "\x00" in scope["path"]:
            return HTTPException(400, "the address holds a NUL character")
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and len(length) < 20 and int(length) > body.most_bytes:
            return too_large(int(length), body.most_bytes)
        return None

    def _note(self, scope: Scope, status: int, seconds: float, taken: int) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        self.metrics.requests.labels(route, status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if status in (401, 403):
            self.metrics.refused.labels(status).inc()
        caller = scope.get("state", {}).get("caller", "-")
        client = (scope.get("client") or ("-",))[0]
        say(
            "request", method=scope["method"], path=scope["path"][:200], status=status,
            ms=1000 * seconds, bytes=taken, caller=caller, client=client,
        )  # fmt: skip
