"""The column-parallel layer in a CUDA graph, which is how servers run it.

torchrun --nproc-per-node 8 examples/cuda_graph.py
python examples/cuda_graph.py --cpu
"""

from __future__ import annotations

import torch
from column_parallel import checked, make
from ranks import bind, start

import tftune


def example(workspace: tftune.Workspace, artifact: str | None) -> str:
    bind(workspace, artifact)
    layer, x = make(workspace, "graph")  # captured and eager calls have different winners
    if workspace.device.type == "cpu":
        return f"graphs need a GPU, so this ran eagerly; {checked(layer, x, layer(x))}"
    for _ in range(2):  # compiles and allocates: never inside of a capture
        layer(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    # Other threads, such as NCCL's watchdog, may call CUDA meanwhile.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        y = layer(x)
    for seed in range(3):  # new tokens in the same place, then a replay; results are in y
        torch.manual_seed(100 * seed + workspace.rank)
        x.copy_(torch.randn_like(x))
        graph.replay()
    torch.cuda.synchronize()
    return f"captured, replayed 3 times; {checked(layer, x, y)}"


if __name__ == "__main__":
    start(example, payload_bytes=1 << 26)
