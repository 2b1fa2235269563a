"""benchmarks/decode_stages.py on emulated ranks and made times: which stages are left out, and what
they leave undone."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import decode_stages
import pytest

from tftune.db.target import Target
from tftune.kernels.comm import emulated
from tftune.kernels.core.space import Config
from tftune.kernels.flash_decode import FlashDecode
from tftune.kernels.flash_decode.space import SPACE

SHAPE = FlashDecode(1, 4, 2, 64, 32, 2, "bf16", "heads", 16)
CONFIG = Config("persistent_ll", kv_splits=2, block_n=32, heads_per_program=1)


def test_every_arm_has_a_time_and_says_what_it_is() -> None:
    """Emulated times say nothing. The whole arms are checked on the way."""
    found = decode_stages.measured(SHAPE, CONFIG, Target.parse("h200x2"), emulated=True, rounds=2)
    assert list(found) == [
        *decode_stages.STAGES,
        "bsp",
        "fused",
        "persistent",
        "persistent empty",
        "persistent_ll",
        "persistent_ll empty",
        "persistent_ll alone",
    ]
    assert all(isinstance(us, float) and us > 0 for us in found.values())
    text = decode_stages.report(SHAPE, CONFIG, "emulated-h200x2", found).splitlines()
    assert len(text) == 4 + len(found) and text[-1].startswith(
        f"RESULT stages op=flash_decode target=emulated-h200x2 {str(SHAPE).replace(',', ' ')} "
        "launch_us="
    )


def left(workspace: Any, folder: Path) -> dict[str, tuple[bool, bool, bool]]:
    """Of each stage: whether the output was written, whether it is right, and whether the epoch
    went on."""
    import torch

    from tftune.kernels.flash_decode.host import prepare
    from tftune.kernels.flash_decode.reference import make_inputs, make_output

    inputs = make_inputs(SHAPE, workspace.rank, 0)
    whole = make_output(SHAPE)
    prepare(SHAPE, CONFIG, workspace)(*inputs, whole)
    found = {}
    for name in (*decode_stages.STAGES, "persistent_ll empty"):
        config = Config(name, **dict(CONFIG.knobs))
        call = decode_stages.stage(SHAPE, config, workspace)
        out, before = make_output(SHAPE).fill_(7.0), int(workspace.owner[workspace.rank][:4].sum())
        call(*inputs, out)
        found[name] = (
            not bool((out == 7).all()),
            torch.equal(out, whole),
            int(workspace.owner[workspace.rank][:4].sum()) != before,
        )
        out.zero_()
        assert not bool(inputs[3].eq(0).any()), "a stage may not change the operands"
    return found


def test_stages_leave_out_what_they_say(tmp_path: Path) -> None:
    """Nothing is written before the merge; without tokens the output is zero, and the epoch goes on
    as in any other call."""
    for found in emulated.run(2, left, tmp_path, timeout_s=120):
        assert {name: written for name, (written, _, _) in found.items()} == {
            "launch": False, "read": False, "local": False, "no_waiting": True,
            "persistent_ll empty": True,
        }  # fmt: skip
        assert not found["persistent_ll empty"][1]
        assert [name for name, (_, _, moved) in found.items() if moved] == [
            "no_waiting", "persistent_ll empty",
        ]  # fmt: skip


def test_an_arm_that_a_rule_refuses_says_so() -> None:
    """Too many splits of too few tokens: every arm has the rule's sentence instead of a config."""
    few = Config("persistent", kv_splits=8, block_n=32)
    found = decode_stages.arms(SHAPE, few, None)
    assert set(map(str, found.values())) == {"kv_splits must leave at least 16 tokens to each"}
    assert SPACE.why_invalid(SHAPE, few, None) in found.values()


def test_an_unknown_stage_is_refused() -> None:
    with pytest.raises(ValueError, match="no stage 'sleep'; there are launch, read, local"):
        decode_stages.stage(SHAPE, Config("sleep"), SimpleNamespace(device="cpu"))


def test_an_unknown_variant_is_refused() -> None:
    with pytest.raises(SystemExit, match="no default of variant pusher at batch=1,"):
        decode_stages.main([str(SHAPE), "--emulated", "--variant", "pusher"])
