"""Faults in kernels that only GPUs show: each must be found wrong on some rank."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any


def _mutants() -> dict[str, tuple[str, Any]]:
    """What the interpreter cannot show, since the programs of one rank run one after another there:
    the variant, and the changes."""
    parts = (
        'while tl.atomic_add(arrivals_ptr + tile, 0, sem="acquire", scope="gpu") - all_parts < 0:'
    )
    wait_tile = "if not at_home:\n            limit = wait"
    places = "places, number = first + tl"
    copies = (
        "                self._runtime.copy(piece, target, shard + piece.source, stream)\n"
        "                self._runtime.copy(_WORD, flag_at, self._staged.data_ptr(), stream)\n"
    )
    return {
        "no wait": (
            "staged",
            (("gemm", wait_tile, wait_tile.replace("not at_home", "source < 0")),),
        ),
        "waits for the wrong source": (
            "staged",
            (
                (
                    "gemm",
                    "((rank + (step + number) // K_CHUNKS) % problem.WORLD)",
                    "((rank + 1 + 0 * number) % problem.WORLD)",
                ),
            ),
        ),
        "row chunk off by one": (
            "staged",
            (("gemm", places, places.replace("first", "first + 1")),),
        ),
        "parts not waited for": ("push", (("gemm", parts, "while tile < 0:"),)),
        "flag before data": (
            "push_ce",
            (("copy_engine", copies, "".join(reversed(copies.splitlines(keepends=True)))),),
        ),
    }


def _decode_mutants() -> dict[str, tuple[str, Any]]:
    """The same of flash_decode; and what only delays some programs, which must be accepted."""
    parts = "wait_parts(arrived + piece // peers.SLICES * 4, cache.SPLITS)"
    last = "        if before + 1 == covered:\n            tl.store(word(arrivals + slot * 4), 0)\n"
    send = "        if SEND:\n            send("
    late = (
        "        for _ in range(0, tl.where(piece > 0, 20000, 0)):\n"
        f"            tl.debug_barrier()\n{send}"
    )
    return {
        "splits not waited for": ("persistent", (("flash_decode.persistent", parts, "pass"),)),
        "rows lost": (
            "persistent",
            (
                (
                    "flash_decode.persistent",
                    "work_range(programs - 1 - pid,",
                    "work_range(programs - pid,",
                ),
            ),
        ),
        "late pieces, control": ("fused", (("flash_decode.launches", send, late),)),
        "announced by the first": (
            "fused",
            (
                ("flash_decode.launches", send, late),
                ("attention", last, f"{last}        if before == 0:\n"),
            ),
        ),
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
    shape, decode = (
        AllGatherGemm(256, 3584, 1024 * workspace.world, workspace.world),
        FlashDecode(4, 64, 8, 128, 4096, workspace.world),
    )
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
        config = next(
            config for config in op.space.defaults(shape, chip) if config.variant == variant
        )
        config = Config.from_dict(config.to_dict() | knobs.get(variant, {}))
        with (
            in_place(Path(tempfile.mkdtemp()), variant, changes, shape.op)
            if changes
            else nullcontext()
        ):
            error = references.error(op.module("host").prepare(shape, config, workspace), workspace)
        errors: list[Any] = [None] * workspace.world
        dist.all_gather_object(errors, error)
        assert (max(errors) > references.tolerance) == (
            name in mutants and "control" not in name
        ), (name, errors)
    if workspace.rank == 0:
        refused = ", ".join(name for name in mutants if "control" not in name)
        print(f"refused on real ranks: {refused}", flush=True)
