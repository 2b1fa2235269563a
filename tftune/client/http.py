"""One request to the service, repeated while that can help. Standard library only.

What is transient (no connection, 429, 502, 503, 504) is tried again after a pause that doubles, for
25 s in all. What cannot pass is told at once: a refusal, no such host, another protocol.
Redirects are refused: they would carry the token to another host.
"""

from __future__ import annotations

import json
import random
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from functools import partial
from http.client import BadStatusLine, HTTPException, RemoteDisconnected
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from tftune.client.wait import LIMIT_S, bounded

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 8.0
"""Pauses double from the first; each is drawn from its upper half, so that many nodes spread out
("equal jitter"; Brooker, Exponential Backoff And Jitter, 2015)."""
TRANSIENT = (429, 502, 503, 504)
"""Statuses after which the same request may succeed: RFC 9110, 15.6, and RFC 6585, 4."""
LARGEST_REPLY = 64 << 20
"""Bytes: the largest artifact that ships has a tenth of a megabyte."""
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class ServiceError(ValueError):
    """The service did not do what was asked: the sentence says why. `status`: of HTTP; 0 for
    none."""

    def __init__(self, sentence: str, status: int = 0) -> None:
        super().__init__(sentence)
        self.status = status


class Unreachable(ServiceError):
    """Nobody answered, or only to say "later", as long as it was tried."""


@dataclass(frozen=True)
class Reply:
    """What came back. `status` is 2xx or 304."""

    status: int
    headers: Message
    body: bytes

    def json(self) -> Any:
        """The body as JSON; raises ServiceError where it is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise ServiceError(
                f"the service answered with what is no JSON: {self.body[:60]!r}; is it tftune's?"
            ) from error


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *given: Any) -> None:
        """urllib raises the status itself where this returns nothing."""


Send = Callable[[Request, float], Any]


def _send(request: Request, timeout_s: float) -> Any:
    return build_opener(_NoRedirects()).open(request, timeout=timeout_s)


@dataclass(frozen=True)
class Service:
    """A service and how it is asked."""

    url: str
    """Without a slash at the end."""
    token: str = field(default="", repr=False)
    limit_s: float = LIMIT_S
    """In which one request ends, with all its repetitions."""
    send: Send = field(default=_send, repr=False, compare=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False, compare=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False, compare=False)
    draw: Callable[[], float] = field(default=random.random, repr=False, compare=False)
    """Uniform in [0, 1): of the pauses."""

    @classmethod
    def at(cls, url: str, token: str = "", *, plain_http: bool = False, **more: Any) -> Service:
        """The service at `url`; raises ValueError for what is no web address, and for a token that
        would travel unencrypted to another machine."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r:.200} is no web address; give one as in https://tune.example")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError(
                f"the address of {parts.hostname} holds more than a host and a path; give a token "
                "by TFTUNE_TOKEN or token_file"
            )
        encrypted = parts.scheme == "https" or parts.hostname in LOOPBACK
        if token and not encrypted and not plain_http:
            raise ValueError(
                f"{url} is not encrypted, and a token would be read on its way; use https, or "
                "write plain_http = true into the configuration file"
            )
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise ValueError("the token holds characters that none has; write it alone in its file")
        return cls(url.rstrip("/"), token, **more)

    def get(self, *path: str, headers: Mapping[str, str] | None = None, **query: str) -> Reply:
        """GET a path; empty values of the query are left out."""
        asked = urlencode({name: value for name, value in query.items() if value})
        return self._ask("GET", f"{_joined(path)}{'?' * bool(asked)}{asked}", None, headers or {})

    def post(self, *path: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """POST a body of bytes."""
        return self._ask("POST", _joined(path), body, headers)

    def post_json(self, *path: str, value: Any) -> Any:
        """POST a value as JSON; returns what is answered."""
        body = json.dumps(value, sort_keys=True).encode()
        return self.post(*path, body=body, headers={"Content-Type": "application/json"}).json()

    def _ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        given = {**headers, **({"Authorization": f"Bearer {self.token}"} if self.token else {})}
        place = f"{self.url}{path}"
        # Each attempt has a request of its own: urllib's proxy handler changes the one that it is
        # given, and would send it in clear text the next time.
        request = partial(Request, place, data=body, headers=given, method=method)
        failures = [f"{place} does not answer"]
        try:
            return bounded(
                lambda: self._repeated(place, request, failures),
                lambda: f"{self.url} ({failures[-1]})",
                self.limit_s,
            )
        except TimeoutError as error:
            raise Unreachable(
                f"{failures[-1]} (tried for {self.limit_s:.0f} s); look at it with `curl "
                f"{self.url}/healthz`, then try again"
            ) from error

    def _repeated(self, place: str, request: Callable[[], Request], failures: list[str]) -> Reply:
        """The reply; `failures` grows by the cause of each repetition. Raises TimeoutError where
        the next one would begin too late."""
        end, longest_s = self.clock() + self.limit_s, FIRST_PAUSE_S
        while (left_s := end - self.clock()) > 0:
            try:
                return self._once(place, request(), left_s)
            except HTTPError as error:
                with error:
                    if error.code == 304:
                        return Reply(304, error.headers, b"")
                    failures.append(_refusal(place, error))
                    if error.code not in TRANSIENT:
                        raise ServiceError(failures[-1], error.code) from error
                    after = error.headers.get("Retry-After", "")
                    asked_s = float(after) if after.isdecimal() else 0.0  # a date counts as 0
            except (URLError, HTTPException, OSError) as error:
                reason, asked_s = getattr(error, "reason", None) or error, 0.0
                if why := _why_for_good(reason):
                    raise ServiceError(f"{self.url} {why}: {reason}; check the address") from error
                failures.append(f"{self.url} cannot be reached: {reason}")
            pause_s = max(asked_s, longest_s * (1 + self.draw()) / 2)
            longest_s = min(LONGEST_PAUSE_S, 2 * longest_s)
            if self.clock() + pause_s >= end:
                break
            self.sleep(pause_s)
        raise TimeoutError

    def _once(self, place: str, request: Request, timeout_s: float) -> Reply:
        with self.send(request, timeout_s) as answer:
            content = answer.read(LARGEST_REPLY + 1)
            if len(content) > LARGEST_REPLY:
                raise ServiceError(
                    f"{place} answers with more than {LARGEST_REPLY:,} bytes, the most that is read"
                )
            return Reply(answer.status, answer.headers, content)


def _joined(path: tuple[str, ...]) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in path)


def _why_for_good(reason: object) -> str | None:
    """What repeating cannot change, as words between the address and the cause; else None."""
    match reason:
        case ssl.SSLCertVerificationError():
            return "shows a certificate that is not trusted"
        case ssl.SSLEOFError() | RemoteDisconnected():
            return None
        case ssl.SSLError():
            return "does not speak TLS as asked"
        case BadStatusLine():
            return "does not speak HTTP"
        case socket.gaierror() if reason.errno != socket.EAI_AGAIN:
            return "names no host that is known here"
    return None


def _refusal(url: str, error: HTTPError) -> str:
    """What the service says of a refusal, as a sentence."""
    body = error.read(4096).decode(errors="replace")
    try:
        said = json.loads(body)
        detail = str(said.get("detail", said)) if isinstance(said, dict) else str(said)
    except ValueError:
        detail = body
    next_step = {
        401: "; give a token by TFTUNE_TOKEN or token_file",
        403: "; the token's scopes do not cover this",
    }.get(error.code, "")
    told = " ".join("".join(c if c.isprintable() else " " for c in detail).split())
    return f"{url} answered {error.code}: {told[:300] or error.reason}{next_step}"
