"""What each rank does in the tests with the real SGLang: its pass manager, its hooks and its
collectives, on CPU. Imported by ranks alone."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

from tftune.kernels.comm.workspace import Workspace

HIDDEN, INNER, EPS = 64, 128, 1e-5


def compiled(workspace: Workspace, faster: Any, kind: str) -> dict[str, Any]:
    """A row-parallel layer with its all-reduce of this kind and the norm behind it, compiled by
    inductor with SGLang's manager: what the graph calls, and the largest error."""
    os.environ["TFTUNE_SGLANG"] = "1"
    import told
    import torch
    import torch._inductor.config
    from sglang.srt.compilation.inductor_pass import pass_context
    from sglang.srt.compilation.pass_manager import PostGradPassManager
    from sglang.srt.distributed import parallel_state
    from sglang.srt.plugins.hook_registry import HookRegistry

    import tftune
    from tftune.engines import engine_pass, sglang
    from tftune.models.selector import Selector

    group = parallel_state.GroupCoordinator(
        [list(range(workspace.world))], workspace.rank, "gloo", use_pynccl=False,
        use_mscclpp=False, use_custom_allreduce=False, use_torch_symm_mem_all_reduce=False,
        use_hpu_communicator=False, use_xpu_communicator=False,
        group_name="tp",
    )  # fmt: skip
    # SGLang's own context and sizes come of a server's arguments.
    sglang._group, sglang._sizes = lambda: group, lambda: [4, 8]  # type: ignore[assignment]
    original = tftune.compile_pass
    tftune.compile_pass = lambda group, training: original(  # no GPU makes a workspace here
        group, training=training, workspace=workspace
    )
    tftune.select_kernel = told.select(faster)  # type: ignore[assignment]
    tftune.use(Selector())
    sglang.register()
    HookRegistry.apply_hooks()
    manager = PostGradPassManager()
    own = torch.Generator().manual_seed(1 + workspace.rank)
    shared = torch.Generator().manual_seed(0)
    projection = (0.1 * torch.randn(HIDDEN, INNER, generator=own)).half()
    weight = torch.randn(HIDDEN, generator=shared).half()
    x = torch.randn(8, INNER, generator=own).half()
    residual = torch.randn(8, HIDDEN, generator=shared).half()

    def summed(y: Any) -> Any:
        if kind == "inplace":
            torch.ops.sglang.inplace_all_reduce(y, group.unique_name)
            return y
        return torch.ops.sglang.outplace_all_reduce(y, group.unique_name, "pynccl")

    def forward(x: Any, residual: Any) -> Any:
        """The norm as SGLang's RMSNorm.forward_native has it."""
        wide = summed(x @ projection.t()).float() + residual.float()
        scale = torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + EPS)
        return (wide * scale * weight).half(), wide.half()

    calls: Counter[str] = Counter()

    class Counted(type(manager)):  # type: ignore[misc]
        def __call__(self, graph: Any) -> None:
            super().__call__(graph)
            calls.update(_name(node) for node in graph.nodes)

    manager.__class__ = Counted
    torch._inductor.config.force_disable_caches = True
    group._all_reduce_out_place = lambda y, method: _all_reduced(y, group)
    # SGLang implements its operators for CUDA alone; their bodies are these.
    library = torch.library.Library("sglang", "IMPL")
    library.impl("inplace_all_reduce", lambda y, name: group._all_reduce_in_place(y), "CPU")
    library.impl(
        "outplace_all_reduce", lambda y, name, how: group._all_reduce_out_place(y, how), "CPU"
    )
    options = {"post_grad_custom_post_pass": manager, "enable_auto_functionalized_v2": False}
    with torch.no_grad(), pass_context(8):
        expected = forward(x, residual)
        found = torch.compile(forward, fullgraph=True, options=options)(x, residual)
        applicable = [manager.passes[0].is_applicable_for_shape(size) for size in (8, None)]
    errors = [
        float((a.double() - b.double()).norm() / b.double().norm())
        for a, b in zip(found, expected, strict=True)
    ]
    del calls["other"]
    (pass_,) = engine_pass._MADE.values()
    uuid = manager.uuid()
    pass_.training = None
    return {
        "calls": dict(calls), "error": max(errors), "table": pass_.table(),
        "applicable": applicable, "uuid follows": manager.uuid() != uuid,
    }  # fmt: skip


def _all_reduced(y: Any, group: Any) -> Any:
    """In the place of SGLang's methods for GPUs."""
    import torch.distributed as dist

    total = y.clone()
    dist.all_reduce(total, group=group.device_group)
    return total


def _name(node: Any) -> str:
    text = f"{node.target} {node.args[0]}" if "functional" in str(node.target) else f"{node.target}"
    known = ("tftune.", "sglang.", "auto_functionalized", "_c10d_functional.")
    return text if text.startswith(known) else "other"
