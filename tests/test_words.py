"""What users of torch and NumPy write is taken as it is; what is no shape, knob or command says
what is."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

import tftune


def test_integers_of_numpy_and_torch_are_sizes() -> None:
    plain = tftune.AllGatherGemm(64, 3584, 8192, 8)
    for m in (np.int64(64), np.uint8(64), torch.tensor(64)):
        shape = tftune.AllGatherGemm(m, 3584, 8192, 8)
        assert shape == plain
        assert type(shape.m) is int
        assert shape.key == plain.key
        assert hash(shape) == hash(plain)


@pytest.mark.parametrize(
    "m", [64.0, np.float32(64), True, "64", None, torch.tensor([1, 2]), -1, np.int64(0)]
)
def test_what_is_no_positive_integer_is_no_size(m: Any) -> None:
    with pytest.raises(ValueError, match=r"^m=.* must be an integer of at least 1$"):
        tftune.AllGatherGemm(m, 3584, 8192, 8)


@pytest.mark.parametrize(
    ("dtype", "word"),
    [
        ("float16", "fp16"),
        ("half", "fp16"),
        ("bfloat16", "bf16"),
        (torch.float16, "fp16"),
        (np.float16, "fp16"),
        (np.dtype("float16"), "fp16"),
        (torch.bfloat16, "bf16"),
    ],
)
def test_dtypes_have_the_names_that_torch_gives_them(dtype: Any, word: str) -> None:
    assert tftune.AllGatherGemm(64, 3584, 8192, 8, dtype=dtype) == tftune.AllGatherGemm(
        64, 3584, 8192, 8, dtype=word
    )
    assert tftune.FlashDecode(1, 64, 8, 128, 8192, 8, dtype=dtype).to_dict()["dtype"] == word
    text = getattr(dtype, "__name__", dtype)
    assert tftune.AllGatherGemm.parse(f"m=64,n=3584,k=8192,world=8,dtype={text}").dtype == word


@pytest.mark.parametrize("dtype", ["float32", torch.float8_e4m3fn, "half2", None])
def test_a_dtype_that_is_not_served_lists_those_that_are(dtype: Any) -> None:
    with pytest.raises(ValueError, match=r"^dtype=.* is not one of fp16, bf16$"):
        tftune.AllGatherGemm(64, 3584, 8192, 8, dtype=dtype)


def test_a_knob_is_an_attribute() -> None:
    config = tftune.Config("push", block_m=64, order="group")
    assert (config.block_m, config.order, config.variant) == (64, "group", "push")
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config
    with pytest.raises(AttributeError, match="a config of push has no knob 'block_q'"):
        _ = config.block_q
    assert not hasattr(config, "__array__")


def test_the_public_names_are_listed() -> None:
    assert dir(tftune) == sorted([*tftune.__all__, "ops"])


@pytest.mark.parametrize(
    "words", [("--version",), ("-h",), ("search", "-h"), ("trials", "export", "-h")]
)
def test_version_and_short_help(words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-m", "tftune", *words], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
    if "-h" in words:
        assert done.stdout.startswith("Usage: ")
    else:
        assert done.stdout == f"tftune {tftune.__version__}\n"
