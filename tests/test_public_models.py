"""Layers of public models at every number of tokens that an engine captures: each is answered by a
config that runs, or left out with a sentence. docs/engines.md has the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tftune.db.target import Target
from tftune.kernels.core.registry import operation
from tftune.kernels.flash_decode import FlashDecode
from tftune.models.artifact import SHIPPED, read_artifact
from tftune.models.selector import Selector
from tftune.pipeline.model_config import config_of
from tftune.pipeline.model_shapes import Model, model_shapes

ROOT = Path(__file__).resolve().parent.parent
RANKS = (2, 4, 8)
CAPTURED = (1, 2, 4, *range(8, 256, 8), *range(256, 513, 16))
"""What vLLM captures where nobody says otherwise: 51 sizes."""
SIZES = (
    "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size",
)  # fmt: skip
DENSE: dict[str, tuple[int, ...]] = {
    "Llama 3.2 1B": (2048, 32, 8, 64, 8192),
    "Llama 3.2 3B": (3072, 24, 8, 128, 8192),
    "Llama 3.1 8B": (4096, 32, 8, 128, 14336),
    "Llama 3.1 70B": (8192, 64, 8, 128, 28672),
    "Llama 3.1 405B": (16384, 128, 8, 128, 53248),
    "Qwen2.5 0.5B": (896, 14, 2, 64, 4864),
    "Qwen2.5 7B": (3584, 28, 4, 128, 18944),
    "Qwen2.5 14B": (5120, 40, 8, 128, 13824),
    "Qwen2.5 32B": (5120, 40, 8, 128, 27648),
    "Qwen2.5 72B": (8192, 64, 8, 128, 29568),
    "Qwen3 8B": (4096, 32, 8, 128, 12288),
    "Mistral 7B": (4096, 32, 8, 128, 14336),
    "Mistral Small 24B": (5120, 32, 8, 128, 32768),
    "Mistral Large 123B": (12288, 96, 8, 128, 28672),
    "Phi-3 mini": (3072, 32, 32, 96, 8192),
    "Yi 34B": (7168, 56, 8, 128, 20480),
}
OTHERS: dict[str, dict[str, Any]] = {
    "Gemma 2 9B": {"model_type": "gemma2", "sizes": (3584, 16, 8, 256, 14336)},
    "Gemma 2 27B": {"model_type": "gemma2", "sizes": (4608, 32, 16, 128, 36864)},
    "StarCoder2 15B": {"model_type": "starcoder2", "sizes": (6144, 48, 4, 128, 24576)},
    "Command R+": {"model_type": "cohere", "sizes": (12288, 96, 8, 128, 33792)},
    "Nemotron-4 340B": {"model_type": "nemotron", "sizes": (18432, 96, 8, 192, 73728)},
    "gpt-oss-120b": {
        "model_type": "gpt_oss", "sizes": (2880, 64, 8, 64, 2880), "rms_norm_eps": 1e-5,
        "num_local_experts": 128,
    },
    "DeepSeek-V3": {
        "model_type": "deepseek_v3", "sizes": (7168, 128, 128, 128, 18432), "rms_norm_eps": 1e-6,
        "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
        "v_head_dim": 128, "n_routed_experts": 256, "first_k_dense_replace": 3,
    },
}  # fmt: skip
MODELS = {name: {"sizes": sizes, "rms_norm_eps": 1e-5} for name, sizes in DENSE.items()} | OTHERS


def fields(name: str) -> dict[str, Any]:
    """The fields of the publisher's config.json."""
    rest = dict(MODELS[name])
    sizes = dict(zip(SIZES, rest.pop("sizes"), strict=True))
    return {"model_type": "llama", "num_hidden_layers": 32, **rest, **sizes}


def layers(name: str, ranks: int, tokens: tuple[int, ...] = CAPTURED) -> Model:
    return model_shapes(config_of(fields(name), name), ranks, "both", tokens, (1000, 8192))


@pytest.fixture(scope="module")
def selector() -> Selector:
    """All answers of 2x H200."""
    return Selector(*(read_artifact(path) for path in sorted(SHIPPED.glob("*__h200x2.json"))))


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_is_answered_by_what_runs(name: str, selector: Selector) -> None:
    chip = Target.parse("h200x2").chip
    for ranks in RANKS:
        asked = layers(name, ranks)
        assert {shape.to_dict()["m"] for shape in asked.shapes} == {*CAPTURED, 1000, 8192}
        for shape in asked.shapes:
            config = selector.select(shape, "graph").config
            assert operation(shape.op).space.why_refused(shape, config, chip) is None, shape


def table() -> Iterator[str]:
    """What tftune has for each model on 2, 4 and 8 GPUs."""
    calls = "o_proj + all-reduce", "down_proj + all-reduce", "all-reduce + norm"
    yield f"| model | {' | '.join(calls)} | `flash_decode` |"
    yield "|---|---|---|---|---|"
    for name in MODELS:
        names = [{layer.name for layer in layers(name, ranks, (8,)).layers} for ranks in RANKS]
        cells = [said([call in each for each in names]) for call in calls]
        attention = said([takes_attention(name, ranks) for ranks in RANKS])
        yield f"| {name} | {' | '.join(cells)} | {attention} |"


def takes_attention(name: str, ranks: int) -> bool:
    if "kv_lora_rank" in MODELS[name]:
        return False
    _, heads, kv_heads, head_dim, _ = MODELS[name]["sizes"]
    try:
        FlashDecode(8, heads, kv_heads, head_dim, 8192, ranks, "bf16", "heads", 16)
    except ValueError as error:
        assert "merge_attention" in str(error) or "divisible by world" in str(error)
        return False
    return True


def said(possible: list[bool]) -> str:
    on = [str(ranks) for ranks, yes in zip(RANKS, possible, strict=True) if yes]
    return "yes" if len(on) == len(RANKS) else f"on {', '.join(on)}" if on else "no"


def test_the_page_of_engines_has_the_table() -> None:
    shown = (ROOT / "docs/engines.md").read_text()
    assert "\n".join(table()) in shown, f"put this into docs/engines.md:\n{chr(10).join(table())}"
