"""Distributions of lengths and the facts of a rank: what a row names draws the same lengths
anywhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.lengths import DISTRIBUTIONS, Facts, Lengths


def shape(batch: int = 7, kv_len: int = 4096, world: int = 2) -> FlashDecode:
    return FlashDecode(batch, 64, 8, 128, kv_len, world, "bf16", "heads")


@given(
    st.sampled_from(sorted(DISTRIBUTIONS)),
    st.integers(0, 50),
    st.integers(1, 300),
    st.integers(1, 9000),
    st.integers(1, 8),
)
def test_ranks_hold_every_token_once(
    name: str, seed: int, batch: int, kv_len: int, world: int
) -> None:
    asked = FlashDecode(batch, 64, 8, 128, kv_len, world)
    lengths = Lengths(name, seed)
    whole, parts = lengths.of(asked), [lengths.local(asked, rank) for rank in range(world)]
    assert tuple(map(sum, zip(*parts, strict=True))) == whole and len(whole) == batch
    assert all(0 <= tokens <= kv_len for part in parts for tokens in part)
    for part in parts:
        Facts.of(part).check(asked)


def test_a_row_names_the_same_lengths_on_any_machine() -> None:
    assert Lengths("uniform", 1).of(shape(4)) == (7401, 6140, 2822, 4059)
    assert Lengths("uniform", 2).of(shape(4)) != Lengths("uniform", 1).of(shape(4))
    assert sorted(Lengths("zipf", 1).of(shape(4))) == [2048, 2730, 4096, 8192]
    assert sorted(Lengths("one_long", 1).of(shape(4))) == [512, 512, 512, 8192]
    assert 0 in Lengths("chat", 3).of(shape(200))
    assert set(Lengths("full").of(shape())) == {8192}


@pytest.mark.parametrize("text", ["full", "uniform/0", "uniform/12", "one_long/3", "chat/1"])
def test_text_reads_back(text: str) -> None:
    assert str(Lengths.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("even/1", "not one of full, uniform, zipf, one_long, chat"),
        ("uniform/x", "must be a number"),
        ("uniform/-1", "must be a number"),
        ("full/1", "full has no seed"),
        ("", "not one of"),
    ],
)
def test_bad_text_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Lengths.parse(text)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((10, 11, 0), "part of the total"),
        ((-1, 0, 0), "negative"),
        ((5000, 5000, 0), "longest=5000 is above kv_len=4096"),
        ((10, 10, 8), "empty=8 is above batch=7"),
        ((100, 10, 0), "total=100 is above the 70 tokens that 7 sequences"),
    ],
)
def test_facts_that_no_lengths_have_are_refused(facts: tuple[int, int, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Facts(*facts).check(shape())
