"""transformers' own Llama, unmodified, tensor parallel and compiled; one more line, and tftune
measures its collectives where they run and replaces those that a kernel does faster.

torchrun --nproc-per-node 2 examples/transformers_llama.py [--model PATH]
python examples/transformers_llama.py --cpu

--model loads what `save_pretrained` wrote, by transformers' own plan, which needs accelerate. Else
weights are random: two layers with the sizes of Llama 3.1 8B, or a tiny model on emulated ranks.
There nothing can be timed, and a fused kernel is taken at each place.
benchmarks/transformers_llama.py times whole models.
"""

from __future__ import annotations

import os
from typing import Any

import torch
import torch.distributed as dist
from llama_block import LIMIT, decided
from ranks import bind, relative_error, start
from torch.distributed.tensor import Replicate, init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from transformers import LlamaConfig, LlamaForCausalLM

import tftune

SIZES = {
    "8b": dict(hidden_size=4096, num_attention_heads=32, num_key_value_heads=8,
               intermediate_size=14336, vocab_size=32000),
    "tiny": dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2,
                 intermediate_size=96, vocab_size=128),
}  # fmt: skip
PLAN = {
    **{f"model.layers.*.{name}": ColwiseParallel() for name in (
        "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj", "mlp.up_proj"
    )},
    **{f"model.layers.*.{name}": RowwiseParallel() for name in (
        "self_attn.o_proj", "mlp.down_proj"
    )},
    "lm_head": ColwiseParallel(output_layouts=Replicate()),
}  # fmt: skip


def parallel_model(size: str, path: str | None, device: torch.device, dtype: torch.dtype) -> Any:
    """The model with its weights sharded over all ranks, the same on each."""
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    if path is not None:
        for name, number in (("RANK", mesh.get_rank()), ("WORLD_SIZE", mesh.size())):
            os.environ.setdefault(name, str(number))  # transformers shards where torchrun set these
        plan = dict(tp_plan="auto", device_mesh=mesh, dtype=dtype)
        return LlamaForCausalLM.from_pretrained(path, **plan).eval()
    torch.manual_seed(0)
    with device:
        model = LlamaForCausalLM(LlamaConfig(**SIZES[size], num_hidden_layers=2)).to(dtype).eval()
    return parallelize_module(model, mesh, PLAN)


@torch.no_grad()
def example(workspace: tftune.Workspace, artifact: str | None, path: str | None) -> str:
    emulated = workspace.arch == "interpreter"
    bind(workspace, artifact)
    size, dtype = ("tiny", torch.float16) if emulated else ("8b", torch.bfloat16)
    model = parallel_model(size, path, workspace.device, dtype)

    pass_ = tftune.compile_pass(  # the line
        workspace.group, training=False, workspace=workspace, confirm=not emulated
    )
    options = {"post_grad_custom_post_pass": pass_, "fx_graph_cache": False}
    compiled = torch.compile(model, dynamic=False, options=options)

    ids = torch.arange(4, device=workspace.device)[:, None]
    mask = torch.ones(4, 1, 1, 1, dtype=torch.bool, device=workspace.device)
    call = dict(input_ids=ids, attention_mask=mask, use_cache=False)
    error = relative_error(compiled(**call).logits, model(**call).logits)
    if not error < LIMIT:
        raise ValueError(f"the error is {error:.1e} and must be below {LIMIT:.1e}")
    lines = [decided(entry) for entry in pass_.report]
    replaced = sum(entry.replaced for entry in pass_.report)
    kept = len(pass_.report) - replaced
    return "\n".join([*lines, f"RESULT transformers {replaced=} {kept=} max_error={error:.1e}"])


if __name__ == "__main__":
    start(example, payload_bytes=1 << 26, model="a folder; default: random weights")
