"""What the service says of itself: log lines of event and key=value, and Prometheus metrics."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

logger = logging.getLogger("tftune.serve")
PLAIN = re.compile(r"[\w./:@+-]+", re.ASCII)
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 60, 600)
"""Bounds of the histogram's buckets."""


def say(event: str, **values: Any) -> None:
    """One log line. A value that is not a plain word is written as JSON, so that nothing from
    outside can begin a line of its own."""
    logger.info("%s", line(event, **values))


def line(event: str, **values: Any) -> str:
    r"""The text of a log line.

    >>> line("request", path="/v1/rows", status=200, node="a b\n")
    'request path=/v1/rows status=200 node="a b\\n"'
    """
    return " ".join([event, *(f"{name}={_shown(value)}" for name, value in values.items())])


def _shown(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if PLAIN.fullmatch(text) else json.dumps(text)


class Metrics:
    """The counters of one service, with a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "tftune_requests", "Requests answered.", ["route", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "tftune_request_seconds", "Time of a request, from its headers to its last byte.",
            ["route"], buckets=SECONDS, registry=self.registry,
        )  # fmt: skip
        self.rows = Counter(
            "tftune_rows", "Rows that were pushed.", ["outcome"], registry=self.registry
        )
        self.selections = Counter(
            "tftune_selections", "Shapes that were selected for.", ["source"],
            registry=self.registry,
        )  # fmt: skip
        self.refused = Counter(
            "tftune_refused", "Requests refused for access, by status.", ["status"],
            registry=self.registry,
        )  # fmt: skip
