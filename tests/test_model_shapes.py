"""The shapes of a model's layers, from its config.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tftune.kernels.all_gather_gemm import AllGatherGemm
from tftune.kernels.all_reduce import AllReduce
from tftune.kernels.core.shape import Shape
from tftune.kernels.gemm_all_reduce import GemmAllReduce
from tftune.kernels.gemm_reduce_scatter import GemmReduceScatter
from tftune.pipeline.model_config import ModelConfig, read_config
from tftune.pipeline.model_shapes import APART, JOINED, Model, model_shapes

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-5, "torch_dtype": "bfloat16", "vocab_size": 128256,
}  # fmt: skip


def config_of(folder: Path, **changed: Any) -> ModelConfig:
    """The config of Llama 3.1 8B with these fields changed; None: left out."""
    values = {name: value for name, value in (LLAMA | changed).items() if value is not None}
    path = folder / "config.json"
    path.write_text(json.dumps(values))
    return read_config(path)


def made(folder: Path, tp: int = 2, plan: str = "both", m: int = 64, **changed: Any) -> Model:
    return model_shapes(config_of(folder, **changed), tp, plan, (m,), ())


def calls(model: Model) -> dict[str, tuple[Shape, int]]:
    return {layer.name: (layer.shape, layer.calls) for layer in model.layers}


def gathered(n: int, m: int = 64) -> AllGatherGemm:
    return AllGatherGemm(m, n, 4096, 2, "bf16", "m", "nk")


def test_every_call_of_llama(tmp_path: Path) -> None:
    assert calls(made(tmp_path)) == {
        "o_proj + all-reduce": (GemmAllReduce(64, 4096, 4096, 2), 32),
        "down_proj + all-reduce": (GemmAllReduce(64, 4096, 14336, 2), 32),
        "all-reduce + norm": (AllReduce(64, 4096, 2, norm="rms"), 64),
        "all-reduce": (AllReduce(64, 4096, 2), 64),
        "gather + qkv_proj": (gathered(3072), 32),
        "gather + q_proj": (gathered(2048), 32),
        "gather + k_proj, v_proj": (gathered(512), 64),
        "gather + gate_up_proj": (gathered(14336), 32),
        "gather + gate_proj, up_proj": (gathered(7168), 64),
        "o_proj + reduce-scatter": (GemmReduceScatter(64, 4096, 4096, 2), 32),
        "down_proj + reduce-scatter": (GemmReduceScatter(64, 4096, 14336, 2), 32),
    }


def test_joined_and_apart_compute_as_many_columns(tmp_path: Path) -> None:
    layers = made(tmp_path, plan="sequence-parallel").layers
    columns = {
        way: sum(layer.shape.to_dict()["n"] * layer.calls for layer in layers if way in layer.ways)
        for way in (JOINED, APART)
    }
    assert columns[JOINED] == columns[APART] > 0


@pytest.mark.parametrize("plan", ["all-reduce", "sequence-parallel"])
def test_one_plan_alone(plan: str, tmp_path: Path) -> None:
    ops = {shape.op for shape in made(tmp_path, plan=plan).shapes}
    assert ("gemm_all_reduce" in ops) == (plan == "all-reduce") != ("all_gather_gemm" in ops)


def test_an_odd_batch_has_no_sequence_parallel_calls(tmp_path: Path) -> None:
    model = made(tmp_path, m=1)
    assert {shape.op for shape in model.shapes} == {"gemm_all_reduce", "all_reduce"}
    assert model.left_out == ("sequence-parallel at M=1: 2 ranks cannot share them evenly",)


def test_heads_of_keys_are_kept_by_several_ranks_where_they_are_few(tmp_path: Path) -> None:
    found = calls(made(tmp_path, tp=16))
    assert found["gather + k_proj, v_proj"][0].to_dict()["n"] == 128
    assert found["gather + qkv_proj"][0].to_dict()["n"] == 2 * 128 + 2 * 128


def test_what_ranks_cannot_share_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    model = made(tmp_path, tp=4, num_attention_heads=30, num_key_value_heads=6, head_dim=128)
    assert not [name for name in calls(model) if "o_proj" in name or "q_proj" in name]
    assert "attention: 30 heads and 6 heads of keys and values cannot be" in model.left_out[0]


def test_a_text_model_within_a_larger_one(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "x", "text_config": LLAMA}))
    assert read_config(tmp_path) == config_of(tmp_path)


def test_an_explicit_head_dim_and_a_newer_dtype(tmp_path: Path) -> None:
    found = config_of(tmp_path, head_dim=64, torch_dtype=None, dtype="float16")
    assert (found.attention_columns, found.dtype) == (2048, "fp16")


def test_a_norm_before_the_residual_is_not_the_all_reduce_s(tmp_path: Path) -> None:
    model = made(tmp_path, model_type="gemma2")
    assert "all-reduce" in calls(model) and "all-reduce + norm" not in calls(model)


def test_experts_leave_attention_and_dense_layers(tmp_path: Path) -> None:
    model = made(tmp_path, model_type="qwen3_moe", num_experts=128, mlp_only_layers=[0, 1])
    found = calls(model)
    assert found["down_proj + all-reduce"][1] == 2 and found["o_proj + all-reduce"][1] == 32
    assert "30 of 32 layers route tokens to experts" in model.left_out[0]
    gpt_oss = made(
        tmp_path, model_type="gpt_oss", num_local_experts=32, intermediate_size=None, head_dim=64
    )
    assert "down_proj + all-reduce" not in calls(gpt_oss)


def test_latent_attention_gathers_latents(tmp_path: Path) -> None:
    found = calls(
        made(
            tmp_path, model_type="deepseek_v3", hidden_size=7168, intermediate_size=18432,
            num_attention_heads=128, num_key_value_heads=128, num_hidden_layers=61,
            n_routed_experts=256, first_k_dense_replace=3, q_lora_rank=1536, kv_lora_rank=512,
            qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128,
        )
    )  # fmt: skip
    sizes = {
        name: (shape.to_dict()["n"], shape.to_dict().get("k")) for name, (shape, _) in found.items()
    }
    assert sizes["gather + q_b_proj"] == (64 * 192, 1536)
    assert sizes["gather + kv_b_proj"] == (64 * 256, 512)
    assert sizes["o_proj + all-reduce"] == (7168, 128 * 128)
    assert found["down_proj + all-reduce"][1] == 3


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hidden_size": None}, "has no field hidden_size"),
        ({"intermediate_size": None}, "has no field intermediate_size"),
        ({"num_attention_heads": "many"}, "num_attention_heads='many', which is no size"),
        ({"num_attention_heads": 30}, "hidden_size=4096 and num_attention_heads=30"),
        ({"num_key_value_heads": 5}, "num_attention_heads=32 and num_key_value_heads=5"),
        ({"torch_dtype": "float32"}, "torch_dtype='float32', and kernels are for bfloat16"),
    ],
)
def test_a_missing_or_odd_field_is_named(
    changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=r"config\.json has") as error:
        config_of(tmp_path, **changed)
    assert said in str(error.value)


def test_what_is_no_config_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for text, said in (("[]", "no object with fields"), ("{", "is no JSON file")):
        path.write_text(text)
        with pytest.raises(ValueError, match=said):
            read_config(path)
    with pytest.raises(ValueError, match="--tp 1: ranks exchange nothing"):
        made(tmp_path, tp=1)
    with pytest.raises(ValueError, match="--plan 'x' is not one of both, all-reduce"):
        made(tmp_path, plan="x")
