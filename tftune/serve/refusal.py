"""What the service refuses, as one sentence and an HTTP status."""

from __future__ import annotations


class Refusal(ValueError):
    """Raised where a request is refused: `status` goes out with the sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def unknown(what: str, next_step: str) -> Refusal:
    """404: there is no such thing, and what to do about it."""
    return Refusal(404, f"there is no {what}; {next_step}")
