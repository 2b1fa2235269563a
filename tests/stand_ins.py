"""Stand-ins that other processes import by name."""

from __future__ import annotations

import os
import pickle
import random
import signal
import time
from hashlib import sha256
from pathlib import Path
from typing import Any


def compiler(shape: Any, config: Any, chip: Any, number: int) -> None:
    """A compiler that hangs for configs of 2 stages and dies for those of 3."""
    if config["num_stages"] == 2:
        time.sleep(60)
    if config["num_stages"] == 3:
        os.kill(os.getpid(), signal.SIGKILL)


def signalled(words: list[str], row: int, number: int) -> None:
    """The command of these words, which gets the signal once it has stored so many rows."""
    import sys

    from tftune.__main__ import main
    from tftune.db.store import Store

    add, rows = Store.add_trial, list[str]()

    def add_trial(store: Store, trial: Any) -> None:
        add(store, trial)
        rows.append(trial.id)
        if len(rows) == row:
            os.kill(os.getpid(), number)

    Store.add_trial = add_trial  # type: ignore[method-assign]
    sys.argv = ["tftune", *words]
    main()


def serve_rivals(connection: Any, spec: Any, rank: int) -> None:
    """A rank of benchmarks/rivals.py that also has rivals which are right, wrong, computed once, or
    slow to end."""
    import rival_calls

    rival_calls.RIVALS |= {
        name: _rival(name) for name in ("right", "wrong", "stale", "hang", "tired")
    }
    rival_calls.serve(connection, spec, rank)


def _rival(kind: str) -> Any:
    import rival_calls

    from tftune.kernels.all_gather_gemm.variants.bsp import bsp

    class StandIn(rival_calls.Rival):
        """BSP with a result of its own, and a fault: wrong by a hundredth, none on the clock, no
        end, or no end after 8 calls there."""

        def __init__(self, shape: Any, workspace: Any) -> None:
            import torch

            self.results, self.into_c, self.timed = {}, True, 0
            self.plan = bsp(shape, workspace, torch.float16, "gather_copy")

        def stage(self, operands: Any) -> None:
            pass

        def __call__(self, a: Any, b: Any, c: Any) -> None:
            self.timed += not self.into_c
            if kind == "hang" or (kind == "tired" and self.timed > 8):
                time.sleep(60)
            if kind == "stale" and not self.into_c:
                return
            result = c.new_empty(c.shape)
            self.plan(a, b, result)
            result *= 1.01 if kind == "wrong" else 1
            if self.into_c:
                c.copy_(result)
            else:
                self.results[c.data_ptr()] = result

    return StandIn


def random_shapes(seed: int, count: int) -> list[Any]:
    """Half of them as the artifact's, but for M; the others anything that is a shape."""
    from tftune.kernels.all_gather_gemm import AllGatherGemm

    pick = random.Random(seed)
    found = [AllGatherGemm(pick.randint(1, 1 << 15), 3584, 8192, 8) for _ in range(count // 2)]
    for _ in range(count - len(found)):
        world, sizes = pick.choice([1, 2, 4, 8]), [pick.randint(1, 1 << 13) for _ in range(3)]
        words = pick.choice(["fp16", "bf16"]), pick.choice("km"), pick.choice(["kn", "nk"])
        found.append(AllGatherGemm(sizes[0] * world, sizes[1], sizes[2] * world, world, *words))
    return found


def join(rank: int, world: int, folder: Path) -> None:
    """A rank of gloo's default group."""
    import torch.distributed as dist

    meeting = f"file://{folder}/rendezvous"
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world)


def asked(rank: int, world: int, folder: Path, broken: int) -> dict[str, Any]:
    """What this rank answers once all ranks bound the same artifact, and once the broken one had a
    bad file or failed its checks."""
    import tftune

    join(rank, world, folder)

    def bound(file: str, verdict: str = "ok") -> Any:
        tftune._default = None
        mine, said = (file, verdict) if rank == broken else ("sound", "ok")
        tftune.bind(None, said, path=folder / f"{mine}.json", allow_modelled=True)
        return tftune.select_kernel(tftune.AllGatherGemm(m=4096, n=3584, k=8192, world=8))

    first = bound("sound")
    answers = [tftune.select_kernel(shape) for shape in random_shapes(3, 10_000)]
    told = repr([(str(answer.config), answer.reason) for answer in answers])
    return {
        "variant": first.config.variant,
        "variants": sorted({answer.config.variant for answer in answers}),
        "answers": sha256(told.encode()).hexdigest(),
        "edited": bound("edited"),
        "cut": bound("cut"),
        "failed": bound("sound", "link 3 is slow"),
    }


def swapped(rank: int, world: int, folder: Path, late: int) -> dict[str, Any]:
    """What this rank runs before and after swaps, of which the late rank has no new file, a broken
    one, or another one at first; and what its graph still runs at the end."""
    import logging

    import torch

    import tftune
    from tftune import ops
    from tftune.kernels.all_gather_gemm import host
    from tftune.kernels.comm.workspace import Workspace

    join(rank, world, folder)
    logged, ran = list[str](), list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("tftune").addHandler(handler)

    def prepare(shape: Any, config: Any, workspace: Any) -> Any:
        name = f"{config.variant} of {tftune._default.artifacts[shape.op].digest[:6]}"
        return lambda *operands: ran.append(name)

    host.prepare = prepare
    device = torch.device("cpu")
    here = Workspace(rank, 8, "interpreter", 4, device, None, 0, 0, None, None, 1 << 20, None)
    a, b = torch.zeros(64, 1024).half(), torch.zeros(8192, 3584).half()

    def step() -> str:
        ops.all_gather_gemm(a, b, here, shard="k", b_layout="kn")
        return ran[-1]

    def swap(mine: str | None) -> bool:
        given = folder / f"{mine}.json" if mine else None
        return tftune.swap(None, path=given)

    tftune.bind(None, path=folder / "old.json")
    first = step()
    graph = next(plan for plan, *_ in here.calls.values())  # what a capture would hold
    tries = {
        name: (swap(file if rank == late else "new"), step())
        for name, file in {"none": None, "cut": "cut", "other": "old"}.items()
    }
    nobody, logs = swap(None), len(logged)
    done, last = swap("new"), step()
    graph()
    return {
        "first": first, "tries": tries, "nobody": nobody, "logs": logs, "done": done,
        "last": last, "graph": ran[-1], "logged": logged,
    }  # fmt: skip


def supervise() -> None:
    """A supervisor whose compiler hangs; it says so, and waits to be killed."""
    from tftune.kernels.all_gather_gemm import AllGatherGemm
    from tftune.kernels.all_gather_gemm.space import SPACE
    from tftune.kernels.core.chips import H200
    from tftune.tuner.bench.compile_pool import CompilePool

    pool, shape = CompilePool(H200, 60, workers=1), AllGatherGemm(64, 256, 512, 2)
    pool.ahead(shape, [SPACE.defaults(shape, H200)[-1]])
    while not all(job.running() for job in pool._jobs.values()):
        time.sleep(0.01)
    print("compiling", flush=True)
    time.sleep(60)


if __name__ == "__main__":
    supervise()


def say_what_triton_does(connection: Any, spec: Any, rank: int) -> None:
    import triton.language as tl

    while True:
        connection.recv()
        connection.send_bytes(pickle.dumps(("ok", type(tl.cdiv).__name__)))


class Wordless:
    def __init__(self, spec: Any, rank: int) -> None:
        raise AssertionError
