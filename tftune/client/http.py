"""One request to the service, repeated while that can help. Standard library only.

What is transient (no connection, a timeout, 429, 502, 503, 504) is tried again after a pause that
doubles; what the service refuses is told at once. Redirects are refused: they would carry the token
to another host.
"""

from __future__ import annotations

import json
import random
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

TIMEOUT_S = 30.0
"""Without a byte from the service."""
ATTEMPTS = 6
"""Of one request. With the pauses below the last one begins 31 s after the first, at most."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
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
    """Nobody answered, or only to say "later", as often as it was tried."""


@dataclass(frozen=True)
class Reply:
    """What came back. `status` is 2xx or 304."""

    status: int
    headers: Mapping[str, str]
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
    return _opener().open(request, timeout=timeout_s)


def _opener() -> OpenerDirector:
    return build_opener(_NoRedirects())


@dataclass(frozen=True)
class Service:
    """A service and how it is asked."""

    url: str
    """Without a slash at the end."""
    token: str = field(default="", repr=False)
    timeout_s: float = TIMEOUT_S
    attempts: int = ATTEMPTS
    send: Send = field(default=_send, repr=False, compare=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False, compare=False)
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
        why, pause_s = "", 0.0
        for attempt in range(self.attempts):
            if attempt:
                self.sleep(pause_s)
            try:
                return self._once(method, path, body, headers)
            except HTTPError as error:
                with error:
                    if error.code == 304:
                        return Reply(304, _lower(error.headers), b"")
                    why = _refusal(self.url, path, error)
                    if error.code not in TRANSIENT:
                        raise ServiceError(why, error.code) from error
                    asked_s = _retry_after_s(error.headers)
            except ssl.SSLCertVerificationError as error:
                raise ServiceError(
                    f"{self.url} shows a certificate that is not trusted: {error}"
                ) from error
            except (URLError, HTTPException, OSError) as error:
                reason = getattr(error, "reason", None) or error
                if isinstance(reason, ssl.SSLCertVerificationError):
                    raise ServiceError(
                        f"{self.url} shows a certificate that is not trusted: {reason}"
                    ) from error
                why, asked_s = f"{self.url} cannot be reached: {reason}", 0.0
            pause_s = max(asked_s, self._pause_s(attempt))
        raise Unreachable(f"{why} ({self.attempts} attempts); try again later")

    def _pause_s(self, attempt: int) -> float:
        longest = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**attempt)
        return longest * (1 + self.draw()) / 2

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        given = dict(headers)
        if self.token:
            given["Authorization"] = f"Bearer {self.token}"
        request = Request(f"{self.url}{path}", data=body, headers=given, method=method)
        with self.send(request, self.timeout_s) as answer:
            content = answer.read(LARGEST_REPLY + 1)
            if len(content) > LARGEST_REPLY:
                raise ServiceError(
                    f"{self.url}{path} answers with more than {LARGEST_REPLY:,} bytes, the most "
                    "that is read"
                )
            return Reply(answer.status, _lower(answer.headers), content)


def _joined(path: tuple[str, ...]) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in path)


def _lower(headers: Message) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _retry_after_s(headers: Message) -> float:
    """The seconds that the service asks to wait, at most the longest pause; a date counts as 0."""
    text = headers.get("Retry-After", "")
    return min(float(text), LONGEST_PAUSE_S) if text.isdecimal() else 0.0


def _refusal(url: str, path: str, error: HTTPError) -> str:
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
    return f"{url}{path} answered {error.code}: {told[:300] or error.reason}{next_step}"
