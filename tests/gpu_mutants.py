"""Faults in kernels that only GPUs show: each must be found wrong on some rank."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any


def _mutants() -> dict[str, tuple[str, Any]]:
    """What the interpreter cannot show, since the programs of one rank run one after another there:
    the variant, and the changes."""
    from test_contract_all_gather_gemm import COPIED, FLAGGED, GEMM, ONLY_ON_GPUS

    parts = (
        'while tl.atomic_add(arrivals_ptr + tile, 0, sem="acquire", scope="gpu") - all_parts < 0:'
    )
    return {name: ("staged", GEMM[name].changes) for name in ONLY_ON_GPUS} | {
        "parts not waited for": ("push", (("gemm", parts, "while tile < 0:"),)),
        "flag before data": ("push_ce", (("copy_engine", COPIED + FLAGGED, FLAGGED + COPIED),)),
    }


def _decode_mutants() -> dict[str, tuple[str, Any]]:
    """The same of flash_decode; and what only delays some programs, which must be accepted."""
    from test_contract_flash_decode import LAUNCHES, ONLY_ON_GPUS

    last = "        if before + 1 == covered:\n            tl.store(word(arrivals + slot * 4), 0)\n"
    send = "        if SEND:\n            send("
    slow = (
        LAUNCHES,
        send,
        "        for _ in range(0, tl.where(piece > 0, 20000, 0)):\n"
        f"            tl.debug_barrier()\n{send}",
    )
    early = ("attention", last, f"{last}        if before == 0:\n")
    only = ONLY_ON_GPUS["persistent"]
    return {name: ("persistent", found.changes) for name, found in only.items()} | {
        "late pieces, control": ("fused", (slow,)),
        "announced by the first": ("fused", (slow, early)),
    }


def refuse_mutants(workspace: Any) -> None:
    """The tuner's own check must find each of them wrong on some rank, and the kernel itself
    right."""
    from tftune.db.target import detect
    from tftune.kernels.all_gather_gemm import AllGatherGemm
    from tftune.kernels.core.registry import operation
    from tftune.kernels.flash_decode import FlashDecode

    mutants = _mutants()
    if workspace.world == 2:  # where the other rank is the only source that there is to wait for
        del mutants["waits for the wrong source"]
    shape = AllGatherGemm(256, 3584, 1024 * workspace.world, workspace.world)
    decode = FlashDecode(4, 64, 8, 128, 4096, workspace.world)
    one_flag = {  # for a row tile
        name: {"rows_per_flag": 256 if name == "push_ce" else 128}
        for name in operation(shape.op).space.variants
        if name != "bsp"
    }
    _judge(workspace, shape, mutants, one_flag, detect().chip)
    _judge(workspace, decode, _decode_mutants(), {}, detect().chip)


def _judge(
    workspace: Any,
    shape: Any,
    mutants: dict[str, tuple[str, Any]],
    knobs: dict[str, dict[str, int]],
    chip: Any,
) -> None:
    import torch.distributed as dist
    from mutant import in_place

    from tftune.kernels.core.registry import operation
    from tftune.kernels.core.space import Config
    from tftune.tuner.bench.check import References

    op, references = operation(shape.op), References(shape, workspace)
    themselves = {f"{variant} itself": (variant, ()) for variant, _ in mutants.values()}
    for name, (variant, changes) in {**themselves, **mutants}.items():
        config = next(c for c in op.space.defaults(shape, chip) if c.variant == variant)
        config = Config.from_dict(config.to_dict() | knobs.get(variant, {}))
        planted = in_place(Path(tempfile.mkdtemp()), variant, changes, shape.op)
        with planted if changes else nullcontext():
            error = references.error(op.module("host").prepare(shape, config, workspace), workspace)
        errors: list[Any] = [None] * workspace.world
        dist.all_gather_object(errors, error)
        wrong = name in mutants and "control" not in name
        assert (max(errors) > references.tolerance) == wrong, (name, errors)
    if workspace.rank == 0:
        refused = ", ".join(name for name in mutants if "control" not in name)
        print(f"refused on real ranks: {refused}", flush=True)
