"""Models of transformers made parallel by torch, and the calls that are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Model:
    """Sizes from the model's config.json, as its publisher gives them."""

    kind: str
    hidden: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    eps: float


MODELS = {
    "llama3.1-8b": Model("Llama", 4096, 32, 8, 14336, 128256, 1e-5),
    "qwen2.5-7b": Model("Qwen2", 3584, 28, 4, 18944, 152064, 1e-6),
    "qwen2.5-14b": Model("Qwen2", 5120, 40, 8, 13824, 152064, 1e-6),
}
TINY = Model("Llama", 128, 4, 2, 256, 512, 1e-5)


@dataclass(frozen=True)
class Case:
    """One call: so many sequences of so many tokens."""

    kind: str
    sequences: int
    tokens: int

    def __str__(self) -> str:
        return f"{self.kind} {self.sequences * self.tokens}"


CASES = (
    *(Case("decode", batch, 1) for batch in (1, 8, 16, 64, 200)),
    *(Case("prefill", 1, tokens) for tokens in (1024, 4096)),
)
TINY_CASES = Case("decode", 8, 1), Case("prefill", 1, 32)


def build(model: Model, layers: int, mesh: Any, device: Any) -> Any:
    """The parallel model, in bf16 on GPUs, with the same random weights on every rank."""
    import torch
    import transformers
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    config = getattr(transformers, f"{model.kind}Config")(
        hidden_size=model.hidden,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        intermediate_size=model.inner,
        vocab_size=model.vocabulary,
        rms_norm_eps=model.eps,
        num_hidden_layers=layers,
        attn_implementation="sdpa",
        use_cache=False,
    )
    torch.manual_seed(0)
    kept, dtype = torch.get_default_dtype(), torch.bfloat16 if device.type == "cuda" else None
    torch.set_default_dtype(dtype or kept)
    with device:
        made = getattr(transformers, f"{model.kind}ForCausalLM")(config).eval()
    torch.set_default_dtype(kept)
    columns = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "mlp.gate_proj")
    plan = {f"model.layers.*.{name}": ColwiseParallel() for name in (*columns, "mlp.up_proj")}
    for name in ("self_attn.o_proj", "mlp.down_proj"):
        plan[f"model.layers.*.{name}"] = RowwiseParallel()
    plan["lm_head"] = ColwiseParallel(output_layouts=Replicate())
    return parallelize_module(made, mesh, plan)


def operands(case: Case, vocabulary: int, device: Any) -> tuple[Any, Any]:
    """Token ids, the same on every rank, and a causal mask."""
    import torch
    import torch.distributed as dist

    size = (case.sequences, case.tokens)
    ids = torch.randint(0, vocabulary, size, device=device)
    dist.broadcast(ids, 0)
    square = torch.ones(case.tokens, case.tokens, dtype=torch.bool, device=device).tril()
    return ids, square.expand(case.sequences, 1, -1, -1).contiguous()
