"""Distributions of lengths and the facts of a rank: what a row names draws the same lengths
anywhere."""

from __future__ import annotations

from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.core.chips import H200
from tftune.kernels.core.registry import operation
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.lengths import DISTRIBUTIONS, Facts, Lengths
from tftune.kernels.flash_decode.limit import limit
from tftune.kernels.flash_decode.space import SPACE
from tftune.kernels.flash_decode.timeline import _busiest
from tftune.models.timeline.simulator import predict, timeline


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


POOL = list(islice(SPACE.configs(shape(), H200), 0, None, 997))


@given(st.sampled_from(POOL), st.sampled_from(["graph", "eager"]))
def test_full_lengths_have_the_time_of_a_shape_alone(config: Config, mode: str) -> None:
    """To the bit: artifacts and rows of full caches stay what they are."""
    plain = timeline(shape(), config, mode, H200)
    assert timeline(shape(), config, mode, H200, "full") == plain


@given(st.sampled_from(POOL), st.sampled_from(["uniform/1", "zipf/2", "one_long/3", "chat/4"]))
def test_a_ragged_batch_takes_at_most_as_long_as_a_full_one(config: Config, lengths: str) -> None:
    times = [predict(shape(), config, "graph", H200, text) for text in (lengths, "full")]
    assert 0 < times[0] <= times[1]


def test_equal_lengths_are_dealt_as_full_ones_are() -> None:
    """The busiest program's share, against the quotients by which full caches are modelled."""
    for each, on, in_turn in product((8, 64, 304), (1, 7, 132, 264), (True, False)):
        blocks, share = _busiest((4096,) * 7, each, on, 256, in_turn)
        rounds = -(-7 * each // on)
        assert (blocks, share) == (rounds * 16, pytest.approx(rounds / (7 * each)))


def test_one_long_sequence_is_attended_to_sooner_in_more_splits() -> None:
    """Its eight units are all that runs at the end; splits share them out. Too many splits leave
    the short sequences less than a block each."""
    few, many = (
        Config("gather", kv_splits=splits, block_n=64, num_warps=4, num_stages=3, xcds=1,
               heads_per_program=4) for splits in (1, 4)
    )  # fmt: skip
    batch = shape(64)
    one = [predict(batch, config, "graph", H200, "one_long/1") for config in (few, many)]
    assert one[0] > 1.5 * one[1]
    full = [predict(batch, config, "graph", H200) for config in (few, many)]
    assert full[0] < 1.2 * full[1]


def test_the_limit_reads_what_there_is() -> None:
    whole, part = limit(shape(), H200), limit(shape(), H200, "one_long/1")
    tokens = sum(Lengths("one_long", 1).local(shape(), 0))
    rows = (shape().q_heads + shape().own_heads) * 7 * 128 * 2
    read = part.memory * H200.rates.hbm_bytes_per_us
    assert read == pytest.approx(tokens * 2 * 8 * 128 * 2 + rows)
    assert part.us < whole.us and limit(shape(), H200, "full") == whole


def test_other_operations_have_no_lengths() -> None:
    gemm = AllGatherGemm(m=64, n=3584, k=8192, world=8)
    config = operation("all_gather_gemm").space.defaults(gemm, H200)[0]
    with pytest.raises(ValueError, match=r"all_gather_gemm has no lengths.*leave it out"):
        predict(gemm, config, "graph", H200, "uniform/1")
