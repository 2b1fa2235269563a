"""flash_prefill beside its contract: its shape and sets, its mappings, its space, what its kernel
compiles to, its host."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from audited import audited
from test_compile import spilled_bytes

from tftune.kernels.core.chips import CHIPS, H200, MI300X, Chip
from tftune.kernels.core.space import Config
from tftune.kernels.flash_prefill import FlashPrefill, host
from tftune.kernels.flash_prefill.limit import limit, part
from tftune.kernels.flash_prefill.mapping import MAPPINGS, SWIZZLED, place
from tftune.kernels.flash_prefill.space import SPACE
from tftune.kernels.flash_prefill.workloads import SHAPE_SETS
from tftune.kernels.runtime.compile import gpu_target

LLAMA = FlashPrefill(1, 32, 8, 128, 8192)
EVERY = [shape for make in SHAPE_SETS.values() for shape in make()]
ARCHES = {"sm_90": H200, "gfx942": MI300X, "gfx950": CHIPS["mi355x"]}


def test_pairs_are_counted_one_by_one() -> None:
    for causal in ("yes", "no"):
        shape = FlashPrefill(2, 6, 3, 64, 37, causal=causal)
        pairs = sum(key <= query or causal == "no" for query in range(37) for key in range(37))
        assert shape.pairs == pairs and shape.flops == 4 * 2 * 6 * 64 * pairs
        assert shape.local_bytes == 2 * 2 * 37 * 64 * (6 + 6 + 3 + 3)


def test_sets_hold_what_they_say() -> None:
    assert {s.q_heads for s in SHAPE_SETS["llama3"]()} == {32, 64, 128, 4, 8, 16}
    paper = SHAPE_SETS["paper-mha"]()
    assert {s.seq_len for s in paper} == {8192, 32_768, 131_072}
    assert {s.batch for s in paper} == {1, 2, 4, 8} and {s.causal for s in paper} == {"no"}
    assert len(EVERY) == len(set(EVERY)) and max(s.local_bytes for s in EVERY) <= 32 << 30
    assert any(s.q_heads % 8 and s.seq_len % 128 for s in SHAPE_SETS["odd"]())


SIZES = [*product((1, 2, 3), range(1, 19), (1, 2, 3, 5, 8), (1, 2, 3, 4, 8))]
SIZES += [*product((1, 2), (12, 24, 40, 71, 128), (64,), (8,))]


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_a_mapping_is_one_to_one_for_every_batch_and_every_number_of_heads(mapping: str) -> None:
    """The printed one covers half of the work for two sequences, and 34 of 48 for 12 heads."""
    for batch, heads, blocks, dies in SIZES:
        work = set(product(range(batch), range(heads), range(blocks)))
        count = len(work)
        found = [place(n, batch, heads, blocks, mapping, dies) for n in range(count)]
        assert len(set(found)) == count and set(found) == work, (batch, heads, blocks, dies)


def heads_of_dies(
    batch: int, heads: int, blocks: int, dies: int, mapping: str
) -> list[set[tuple[int, int]]]:
    """The (sequence, head) that each die has programs of."""
    found: list[set[tuple[int, int]]] = [set() for _ in range(dies)]
    for number in range(batch * heads * blocks):
        found[number % dies].add(place(number, batch, heads, blocks, mapping, dies)[:2])
    return found


@pytest.mark.parametrize("mapping", SWIZZLED)
def test_a_die_has_programs_of_as_few_heads_as_can_be(mapping: str) -> None:
    """Its share of them where dies divide the heads. Else one more on either side: of block-first,
    in each sequence, of those that are left over."""
    for batch, heads, blocks, dies in SIZES:
        most = max(map(len, heads_of_dies(batch, heads, blocks, dies, mapping)))
        if heads % dies == 0:
            assert most == batch * heads // dies
        elif mapping == "swizzled_head_first":
            programs = -(-batch * heads * blocks // dies)
            assert most <= -(-programs // blocks) + 1
        else:
            left = -(-(heads % dies) * blocks // dies)
            assert most <= batch * (heads // dies + -(-left // blocks) + 1)


def test_naive_mappings_spread_a_head_over_all_dies() -> None:
    assert heads_of_dies(1, 16, 64, 8, "naive_head_first") == [{(0, h) for h in range(16)}] * 8
    by_block = heads_of_dies(1, 16, 64, 8, "naive_block_first")
    assert by_block == [{(0, die), (0, die + 8)} for die in range(8)]


def test_groups_of_one_kv_head_for_each_die_stay_together() -> None:
    """8 groups on 8 dies: block-first, swizzled, is as pure as head-first."""
    for mapping in SWIZZLED:
        found = heads_of_dies(1, 64, 16, 8, mapping)
        assert [{head // 8 for _, head in one} for one in found] == [{die} for die in range(8)]


@pytest.mark.parametrize("chip", [H200, MI300X], ids=lambda chip: chip.name)
def test_defaults_are_possible_and_the_librarys_own_pick_comes_first(chip: Chip) -> None:
    for shape in EVERY:
        found = SPACE.defaults(shape, chip)
        assert [SPACE.why_invalid(shape, config, chip) for config in found] == [None] * len(found)
        assert found[0] == Config("bsp", backend="auto") and found[-1].variant == "flash"
        backends = {config["backend"] for config in found if config.variant == "bsp"}
        assert ("cudnn" in backends) == (chip is H200)
        assert ("efficient" in backends) == (shape.group == 1)
    assert SPACE.fallbacks(LLAMA) == (Config("bsp", backend="auto"),)


def test_a_die_more_or_less_decides_on_swizzles() -> None:
    for mapping in MAPPINGS:
        refused = SPACE.why_invalid(LLAMA, Config("flash", mapping=mapping), H200)
        assert ("on one it is the naive one" in (refused or "")) == (mapping in SWIZZLED)
        assert SPACE.why_invalid(LLAMA, Config("flash", mapping=mapping), MI300X) is None


def test_the_limit_counts_what_is_not_masked() -> None:
    full = FlashPrefill(1, 32, 8, 128, 8192, causal="no")
    found = limit(full, H200)
    assert found.bound == "compute" and found.us == found.compute
    assert found.us == pytest.approx(full.flops / H200.rates.matrix_flops_per_us)
    assert limit(LLAMA, H200).us / found.us == pytest.approx(0.5, abs=1e-3)
    assert limit(FlashPrefill(1, 32, 8, 128, 128), H200).bound == "memory"
    assert part(LLAMA, H200) == "tokens_from_8192"


COMPILED = {
    "wide": {"block_n": 128, "num_stages": 2},
    "small": {"block_m": 64, "num_warps": 4},
}


@pytest.mark.thorough
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", COMPILED)
def test_other_tiles_compile_without_spills(tmp_path: Path, arch: str, name: str) -> None:
    chip = ARCHES[arch]
    for shape in (LLAMA, FlashPrefill(1, 12, 12, 64, 777, dtype="fp16", causal="no")):
        default = SPACE.defaults(shape, chip)[-1].to_dict()
        config = Config.from_dict(default | COMPILED[name])
        if SPACE.why_invalid(shape, config, chip) is None:
            (source,) = host.kernel_sources(shape, config, chip)
            found = source.compile(gpu_target(arch))
            assert found.metadata.shared <= chip.shared_bytes
            assert spilled_bytes(found, arch, tmp_path) == 0, config


def test_audited_kernels_for_amd_spill_only_where_a_rule_says_so() -> None:
    """`tftune audit flash_prefill --pool 8`, which compiles what a learned rule refuses, too."""
    rows = audited("flash_prefill")
    assert len(rows) > 50 and not [row for row in rows if row.failure]
    assert {SPACE.complete(row.config)["mapping"] for row in rows} == set(MAPPINGS)
    spilling = [row for row in rows if row.resources and row.resources.spilled_bytes]
    for row in spilling:
        shape = FlashPrefill.parse(row.shape)
        assert SPACE.why_invalid(shape, row.config, MI300X) is not None, row
    assert spilling


def test_one_binary_serves_every_length_and_every_number_of_heads() -> None:
    config = Config("flash")
    keys = {
        host.kernel_sources(FlashPrefill(batch, heads, 4, 128, tokens), config, H200)[0].key
        for batch, heads, tokens in ((1, 4, 700), (3, 64, 8192), (1, 8, 131_072))
    }
    assert len(keys) == 1
