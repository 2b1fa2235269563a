"""How full a cache is: distributions of the lengths of a batch's sequences, and the facts of one
rank's lengths. Standard library only.

A shape says how many tokens a rank can hold; engines fill batches with sequences of many lengths.
A distribution with its seed is part of a row, not of a shape: the same call, other data.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tftune.kernels.flash_decode import FlashDecode

DISTRIBUTIONS = {
    "full": "every sequence as long as the cache holds",
    "uniform": "lengths between one token and all, each as likely",
    "zipf": "the longest is full, the next ones a half, a third, a quarter, ... of it, shuffled",
    "one_long": "one sequence is full, the others have a sixteenth of it",
    "chat": "log-normal lengths around an eighth of what fits, one sequence of twenty is empty",
}
"""What each name stands for."""
FULL = "full"
SHORT = 16
"""In `one_long`, how many times shorter than the long sequence the others are."""
CHAT_MEDIAN, CHAT_SIGMA, CHAT_EMPTY = 1 / 8, 1.0, 0.05
"""Parameters of `chat`: the median as a share of what fits, the standard deviation of the
logarithm, and the share of sequences without a token. Assumed; synthetic, after no trace."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What an engine knows of one rank's part of a batch, and no shape tells: its tokens, those of
    its longest sequence, and how many of its sequences have none.

    Raises ValueError where no lengths have such facts.

    >>> Facts.of([4096, 17, 0])
    Facts(total=4113, longest=4096, empty=1)
    """

    total: int
    longest: int
    empty: int = 0

    def __post_init__(self) -> None:
        if min(self.total, self.longest, self.empty) < 0 or self.longest > self.total:
            raise ValueError(
                f"total={self.total}, longest={self.longest}, empty={self.empty}: none may be "
                "negative, and the longest sequence is part of the total"
            )

    @classmethod
    def of(cls, lengths: Sequence[int]) -> Facts:
        """Those of these lengths, of one rank."""
        return cls(sum(lengths), max(lengths, default=0), sum(not tokens for tokens in lengths))

    def check(self, shape: FlashDecode) -> None:
        """Raises ValueError where they cannot be facts of this shape, naming both numbers."""
        if self.longest > shape.kv_len:
            raise ValueError(f"longest={self.longest} is above kv_len={shape.kv_len} of the shape")
        if self.empty > shape.batch:
            raise ValueError(f"empty={self.empty} is above batch={shape.batch} of the shape")
        if self.total > (most := self.longest * (shape.batch - self.empty)):
            raise ValueError(
                f"total={self.total} is above the {most} tokens that {shape.batch - self.empty} "
                f"sequences of at most {self.longest} hold"
            )


@dataclass(frozen=True, slots=True)
class Lengths:
    """A distribution of lengths with its seed, as rows name it.

    Raises ValueError for an unknown name, or a seed below 0.

    >>> Lengths.parse("uniform/3")
    Lengths(name='uniform', seed=3)
    >>> str(Lengths.parse("full"))
    'full'
    """

    name: str
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in DISTRIBUTIONS:
            raise ValueError(
                f"lengths={self.name!r:.60} is not one of {', '.join(DISTRIBUTIONS)}; a seed "
                "follows a slash, as in uniform/1"
            )
        if self.seed < 0:
            raise ValueError(f"the seed {self.seed} of lengths={self.name} must be at least 0")

    @classmethod
    def parse(cls, text: str) -> Lengths:
        """Read from text such as `uniform/1`; without a seed it is 0. Raises ValueError."""
        name, slash, seed = text.partition("/")
        if slash and not (seed.isascii() and seed.isdecimal() and len(seed) < 10):
            raise ValueError(f"lengths={text!r:.60}: the seed after the slash must be a number")
        if name == FULL and slash:
            raise ValueError(f"lengths={text!r:.60}: full has no seed")
        return cls(name, int(seed or 0))

    def __str__(self) -> str:
        return FULL if self.name == FULL else f"{self.name}/{self.seed}"

    def of(self, shape: FlashDecode) -> tuple[int, ...]:
        """Tokens of each sequence over all ranks, from 0 to world * kv_len."""
        return _drawn(self.name, self.seed, shape.batch, shape.world * shape.kv_len)

    def local(self, shape: FlashDecode, rank: int) -> tuple[int, ...]:
        """Tokens of each sequence on one rank, where token t lies on rank t mod world, as decode
        context parallelism deals them."""
        return tuple((tokens + shape.world - 1 - rank) // shape.world for tokens in self.of(shape))


def fill(shape: FlashDecode, text: str) -> float:
    """The share of a rank's cache that lengths of this name hold, above 0: what one call reads, on
    the last rank, which holds fewest."""
    local = Lengths.parse(text).local(shape, shape.world - 1)
    return max(sum(local), 1) / (shape.batch * shape.kv_len)


@lru_cache(maxsize=4096)
def _drawn(name: str, seed: int, batch: int, most: int) -> tuple[int, ...]:
    """Lengths of a batch, 0 to `most`; the same for the same arguments, on any machine."""
    dice = random.Random(f"{name}/{seed}/{batch}")
    match name:
        case "full":
            return (most,) * batch
        case "uniform":
            return tuple(1 + math.floor(dice.random() * most) for _ in range(batch))
        case "zipf":
            lengths = [max(1, most // place) for place in range(1, batch + 1)]
            dice.shuffle(lengths)
        case "one_long":
            lengths = [max(1, most // SHORT)] * batch
            lengths[math.floor(dice.random() * batch)] = most
        case _:
            middle = math.log(CHAT_MEDIAN * most)
            lengths = [
                0
                if dice.random() < CHAT_EMPTY
                else min(most, max(1, round(math.exp(dice.gauss(middle, CHAT_SIGMA)))))
                for _ in range(batch)
            ]
    return tuple(lengths)
