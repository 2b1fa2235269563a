"""The ranges of tokens that the plug-in for vLLM asks vLLM to compile apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tftune.engines import vllm


@pytest.mark.parametrize(
    ("ranks", "ends", "captured", "given", "found"),
    [
        (2, [2048], [1, 2, 512], {}, [32, 256, 512, 2048]),
        (2, [2048], [1, 256], {}, [32, 256, 2048]),
        (8, [100, 2048], [1, 128], {}, [32, 100, 128, 2048]),
        (8, [31, 255, 2048], [512], {}, [31, 255, 512, 2048]),
        (2, [2048], [33], {}, [33, 2048]),
        (2, [2048], [8], {}, [8, 2048]),
        (8, [64], [128], {}, [32, 64]),
        (2, [2048], None, {}, [2048]),
        (2, [], [512], {}, []),
        (1, [2048], [512], {}, [2048]),
        (2, [2048], [512], {"fuse_allreduce_rms": True}, [2048]),
        (2, [2048], [512], {"fuse_allreduce_rms": True, "variable": "first"}, [32, 256, 512, 2048]),
        (2, [2048], [512], {"compile_mm_encoder": True}, [2048]),
    ],
)
def test_ranges_of_tokens_get_graphs_of_their_own(
    ranks: int, ends: list[int], captured: list[int] | None, given: dict[str, Any],
    found: list[int], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """In addition to those that vLLM's user gave, below the most that a step has."""
    monkeypatch.setenv(vllm.VARIABLE, given.get("variable", "1"))
    fused = SimpleNamespace(fuse_allreduce_rms=given.get("fuse_allreduce_rms", False))
    compiled = SimpleNamespace(
        compile_ranges_endpoints=ends, cudagraph_capture_sizes=captured, pass_config=fused,
        compile_mm_encoder=given.get("compile_mm_encoder", False),
    )  # fmt: skip
    sharing = SimpleNamespace(tensor_parallel_size=ranks)
    config = SimpleNamespace(compilation_config=compiled, parallel_config=sharing)
    for _ in range(2):
        vllm.split(config)
        assert compiled.compile_ranges_endpoints == found
