"""The sizes of a model, from the `config.json` that comes with it on Hugging Face. Standard library
only."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tftune.kernels.core.dtypes import DTYPE_BYTES

POST_NORM = ("gemma2", "gemma3", "gemma3_text", "olmo2", "olmo3", "exaone4")
"""Models that normalise what a layer adds before they add it: no residual goes with the norm that
follows an all-reduce."""
UNGATED = ("phi", "gpt2", "gpt_neox", "starcoder2", "nemotron")
"""Models whose MLP has no gate beside its projection up."""
DTYPES = {"bfloat16": "bf16", "float16": "fp16"}
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
"""How many experts of a layer tokens are routed to; where a file names more than one of these, it
has a mixture of experts."""


@dataclass(frozen=True)
class ModelConfig:
    """What of a decoder decides the shapes of its linear layers, of all ranks together."""

    layers: int
    dense_layers: int
    """Layers whose MLP is dense; the others route tokens to experts."""
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    """Inner size of a dense MLP."""
    dtype: str
    gated: bool
    """Whether the MLP has a gate beside its projection up."""
    normed: bool
    """Whether RMSNorm follows the residual, which an all-reduce may do with its sum."""
    q_rank: int = 0
    """In multi-head latent attention, as DeepSeek has it, the rank of the latent of queries; 0
    where queries are projected at once."""
    kv_rank: int = 0
    """The rank of the latent of keys and values; 0: no latent attention."""
    qk_dim: int = 0
    """Columns of a query in one head of latent attention, rotated ones included."""
    qk_plain: int = 0
    """The same without the rotated ones, which a key takes from its own projection."""
    v_dim: int = 0

    @property
    def attention_columns(self) -> int:
        """K of the output projection."""
        return self.heads * (self.v_dim if self.kv_rank else self.head_dim)


def read_config(path: Path) -> ModelConfig:
    """The sizes in a `config.json`; raises ValueError naming the file and the field that is missing
    or odd, and OSError where there is no such file."""
    path = path / "config.json" if path.is_dir() else path
    try:
        values = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is no JSON file: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} holds no object with fields, so it is no config.json of a model")
    return config_of(values, str(path))


def config_of(fields: Mapping[str, Any], source: str) -> ModelConfig:
    """The sizes in the fields of a `config.json`; raises ValueError naming the source and the field
    that is missing or odd."""
    return _Fields(source, fields).config()


class _Fields:
    """The fields of one file; those of its text model, where it has several."""

    def __init__(self, path: str, values: Mapping[str, Any]) -> None:
        inner = values.get("text_config")
        self._path = path
        self._values = {**values, **inner} if isinstance(inner, dict) else dict(values)

    def config(self) -> ModelConfig:
        hidden, heads = self.size("hidden_size"), self.size("num_attention_heads")
        layers, kind = self.size("num_hidden_layers"), str(self._values.get("model_type", ""))
        latent = {} if not self._values.get("kv_lora_rank") else self.latents()
        head_dim = 0 if latent else self.head_dim(hidden, heads)
        kv_heads = self.size("num_key_value_heads", heads)
        if heads % kv_heads:
            raise self.odd(f"num_attention_heads={heads} and num_key_value_heads={kv_heads}")
        dense = self.dense_layers(layers)
        return ModelConfig(
            layers, dense, hidden, heads, kv_heads, head_dim,
            self.size("intermediate_size", None if dense else 1),
            self.dtype(), kind not in UNGATED,
            "rms_norm_eps" in self._values and kind not in POST_NORM, **latent,
        )  # fmt: skip

    def size(self, name: str, default: int | None = None) -> int:
        value = self._values.get(name)
        value = default if value is None else value
        if value is None:
            raise ValueError(
                f"{self._path} has no field {name}, so the shapes of the model are not known; "
                "give the config.json that is published with its weights"
            )
        if type(value) is not int or value < 1:
            raise self.odd(f"{name}={value!r}, which is no size")
        return value

    def odd(self, what: str) -> ValueError:
        return ValueError(f"{self._path} has {what}; correct it, or leave the model out")

    def head_dim(self, hidden: int, heads: int) -> int:
        """As it is written, else the hidden size shared by the heads."""
        if self._values.get("head_dim") is None and hidden % heads:
            raise self.odd(
                f"hidden_size={hidden} and num_attention_heads={heads}, which does not divide it, "
                "and no head_dim"
            )
        return self.size("head_dim", hidden // heads)

    def latents(self) -> dict[str, int]:
        plain, rotated = self.size("qk_nope_head_dim"), self.size("qk_rope_head_dim")
        q_rank = self.size("q_lora_rank") if self._values.get("q_lora_rank") else 0
        return {
            "q_rank": q_rank,
            "kv_rank": self.size("kv_lora_rank"),
            "qk_dim": plain + rotated,
            "qk_plain": plain,
            "v_dim": self.size("v_head_dim"),
        }

    def dense_layers(self, layers: int) -> int:
        """Layers without routed experts."""
        if max(int(self._values.get(name) or 0) for name in EXPERTS) <= 1:
            return layers
        first = self._values.get("first_k_dense_replace") or 0
        return min(layers, first + len(self._values.get("mlp_only_layers") or ()))

    def dtype(self) -> str:
        name = self._values.get("torch_dtype") or self._values.get("dtype") or "bfloat16"
        word = DTYPES.get(str(name).removeprefix("torch."))
        if word is None or word not in DTYPE_BYTES:
            raise self.odd(f"torch_dtype={name!r}, and kernels are for {' and '.join(DTYPES)}")
        return word
