"""The plug-in for SGLang, as entry point `sglang.srt.plugins`. It is on where TFTUNE_SGLANG=1.

SGLang compiles graphs of prefill by inductor where its `tc_compiler` says so. Each backend makes
one `PostGradPassManager`, to which the pass is added. Collectives that write in place are read
where torch has made them functional. SGLang cuts its graphs at `inplace_all_reduce`, so that the
pass seldom sees one.
"""

from __future__ import annotations

import os
from typing import Any

VARIABLE = "TFTUNE_SGLANG"
TARGET = "sglang.srt.compilation.pass_manager.PostGradPassManager.__init__"


def register() -> None:
    """Hook SGLang where the variable says so. An SGLang without one of the interfaces is left
    alone, with one warning."""
    if os.environ.get(VARIABLE, "0") in ("", "0"):
        return
    from tftune.models.compatibility import log_once

    try:
        from sglang.srt.compilation.inductor_pass import InductorPass, get_pass_context
        from sglang.srt.compilation.pass_manager import PostGradPassManager
        from sglang.srt.plugins.hook_registry import HookRegistry, HookType

        for owner, name in (
            (PostGradPassManager, "add"),
            (InductorPass, "is_applicable_for_shape"),
        ):
            getattr(owner, name)
        after = HookType.AFTER
    except (ImportError, AttributeError) as error:
        log_once(f"tftune's plug-in does not fit this SGLang, which runs unchanged: {error}")
        return

    def shape_now() -> tuple[int, int]:
        shape = get_pass_context().runtime_shape
        return (1, 1 << 62) if shape is None else (shape, shape)

    def made(_: None, manager: Any) -> None:
        from tftune.engines.engine_pass import engine_pass, pass_of, tell_sizes

        group = _group()
        if group.world_size < 2:
            return
        pass_ = pass_of(group.unique_name, group.device_group, "SGLang")
        if pass_ is not None:
            tell_sizes(pass_, _sizes(), 0)
            manager.add(engine_pass(InductorPass, pass_, lambda size: (), shape_now))

    HookRegistry.register(TARGET, made, after)


def _group() -> Any:
    from sglang.srt.distributed.parallel_state import get_tp_group

    return get_tp_group()


def _sizes() -> list[int]:
    """The numbers of tokens that SGLang captures for prefill."""
    from sglang.srt.runtime_context import get_exec

    return list(get_exec().graph.cuda_graph_config.prefill.bs or [])
