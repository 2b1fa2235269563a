"""A planted fault, and the test that must fail by it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """One fault. A refactoring that moves its text must move the mutant, too."""

    name: str
    file: str
    before: str
    """The text as it stands, in any layout: it must occur exactly once in the file."""
    after: str
    test: str
    """The pytest node id of the test that must fail."""
