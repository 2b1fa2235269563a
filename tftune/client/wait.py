"""A call that waits for another machine: it says so, and ends in time. Standard library only."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")
SAID_S = 2.0
"""After which a call says what it waits for."""
LIMIT_S = 25.0
"""After which a call is given up, whatever it waits for; a command has started up before."""


def bounded(
    call: Callable[[], Answer], waits_for: Callable[[], str], limit_s: float = LIMIT_S
) -> Answer:
    """What `call` returns or raises. Raises TimeoutError after `limit_s`.

    It runs in a thread of its own, since neither a name look-up nor an answer that comes byte by
    byte ends with the timeout of a socket. After `limit_s` the thread is left alone, and ends with
    the process.
    """
    answer = Future[Answer]()

    def run() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    wait([answer], min(SAID_S, limit_s))
    if not answer.done() and limit_s > SAID_S:
        said = f"waits for {waits_for()}; gives up after {limit_s:.3g} s"
        logging.getLogger("tftune").warning("%s", said)
        wait([answer], limit_s - SAID_S)
    return answer.result(0)
