"""flash_prefill on a real GPU: every form of the library and random configs of the kernel, held
against the reference, also from a captured graph."""

from __future__ import annotations

import random

import pytest
from draws import draw

CONFIGS = 12
"""Random configs of the kernel at each shape."""
SHAPES = (
    "batch=1,q_heads=8,kv_heads=2,head_dim=128,seq_len=1000",
    "batch=2,q_heads=12,kv_heads=12,head_dim=64,seq_len=777,dtype=fp16,causal=no",
    "batch=3,q_heads=9,kv_heads=3,head_dim=128,seq_len=130,dtype=fp16",
    "batch=1,q_heads=4,kv_heads=4,head_dim=64,seq_len=1",
    "batch=1,q_heads=16,kv_heads=2,head_dim=128,seq_len=4096,causal=no",
)


@pytest.mark.gpu
@pytest.mark.parametrize("words", SHAPES)
def test_every_config_is_right_on_a_gpu(words: str) -> None:
    import torch

    from tftune.db.target import detect
    from tftune.kernels.comm.workspace import Workspace
    from tftune.kernels.flash_prefill import FlashPrefill, reference
    from tftune.kernels.flash_prefill.host import prepare
    from tftune.kernels.flash_prefill.space import SPACE
    from tftune.tuner.bench.check import relative_error

    shape, chip = FlashPrefill.parse(words), detect().chip
    workspace = Workspace(
        rank=0, world=1, arch=chip.can.backend, units=chip.units,
        device=torch.device("cuda", torch.cuda.current_device()), group=None, control=0, payload=0,
        control_bases=None, payload_bases=None, generation_bytes=16, payload_tensor=None, chip=chip,
    )  # fmt: skip
    inputs = reference.make_inputs(shape, 0, 0, workspace.device)
    exact = reference.reference(shape, *inputs, None)
    drawn = list(draw(SPACE, shape, chip, "flash", 4000))
    configs = [*SPACE.defaults(shape, chip), *random.Random(0).sample(drawn, CONFIGS)]
    for config in configs:
        plan = prepare(shape, config, workspace)
        out = reference.make_output(shape, workspace.device).fill_(torch.nan)
        plan(*inputs, out)
        eager = out.clone()
        assert relative_error(out, exact) <= reference.tolerance(shape), config
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            plan(*inputs, out)
        out.fill_(torch.nan)
        graph.replay()
        assert torch.equal(out, eager), config
