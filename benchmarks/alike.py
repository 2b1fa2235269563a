"""Do two versions of tftune compile the same code for what was measured?

usage: python benchmarks/alike.py dump CHECKOUT OUT.json [--workers 8]
       python benchmarks/alike.py compare BEFORE.json AFTER.json

`dump` lowers the kernels of every config that has a final row under db/trials, or that a shipped
artifact answers a measured shape with, for sm_90 and gfx942, as far as Triton's IR, inlined and
optimised, without names and debug locations. It writes a digest of that and of all compile options:
the rest of the compiler sees nothing else. It also asks every shipped artifact for 5,000 random
shapes in both modes. `compare` prints how many are the same. The rows and artifacts are those of
the checkout that this file is in, so that both dumps have the same list. No GPU is needed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("kernels", "db", "tuner", "models")
CHIPS = {"sm_90": "H200", "gfx942": "MI300X"}
Call = tuple[str, str, str]
"""Operation, shape and config as text: they mean the same in both checkouts."""


def wanted() -> list[Call]:
    """Every call that a final row or an artifact's measured shape names, each once."""
    found = set()
    for path in sorted((ROOT / "db/trials").glob("*/*.jsonl.xz")):
        with lzma.open(path, "rt") as lines:
            for line in lines:
                row = json.loads(line).get("trial")
                if row and row["stage"] == "final" and "us" in row:
                    found.add((row["op"], row["shape"], json.dumps(row["config"], sort_keys=True)))
    for path in sorted((ROOT / "models/artifacts").glob("*.json")):
        found |= set(answered(json.loads(path.read_text())))
    return sorted(found)


def answered(artifact: dict[str, Any]) -> Iterator[Call]:
    """The best config of each measured shape of an artifact."""
    from tftune.models.artifact import parse_artifact
    from tftune.models.layout import layout_text

    parsed = parse_artifact(artifact)
    for model in parsed.models():
        fixed = layout_text(model.op, model.layout)
        for known in model.known:
            config = model.configs[known.best]
            sizes = ",".join(
                f"{n}={v}" for n, v in zip(_coordinates(model.op), known.sizes, strict=True)
            )
            if config.knobs:
                yield model.op, f"{sizes},{fixed}", json.dumps(config.to_dict(), sort_keys=True)


def _coordinates(op: str) -> tuple[str, ...]:
    from tftune.kernels.core.registry import operation

    return operation(op).shape.coordinates()


def lower(call: Call) -> dict[str, str]:
    """The digest of a call's code by architecture; a sentence where it does not compile."""
    import fingerprint_of as checkout

    return {arch: checkout.digest(call, arch, chip) for arch, chip in CHIPS.items()}


INSIDE = '''
"""Runs inside of a checkout, old or new."""
import json, random
from hashlib import sha256
from unittest import mock

import triton
from triton._C.libtriton import ir
from triton.compiler.compiler import make_backend
from tftune.models.selector import load_artifact
try:
    from tftune.kernels.core import chips
    from tftune.kernels.core.registry import operation
    from tftune.kernels.core.space import Config
    from tftune.kernels.runtime.compile import gpu_target
except ImportError:
    from tftune.kernels import chips
    from tftune.kernels.registry import operation
    from tftune.kernels.space import Config
    from tftune.kernels.compile import gpu_target

def sources(call, chip):
    op = operation(call[0])
    shape, config = op.shape.parse(call[1]), Config.from_dict(json.loads(call[2]))
    config = op.space.complete(config)
    if op.space.why_invalid(shape, config, getattr(chips, chip)):
        return ()
    return op.module("host").kernel_sources(shape, config, getattr(chips, chip))

def key(call, chip):
    return sha256(repr([source.key for source in sources(call, chip)]).encode()).hexdigest()[:16]

def lowered(source, arch):
    with mock.patch.object(triton, "compile", first_stage):
        text = source.compile(gpu_target(arch)).replace(source.kernel.fn.__name__, "kernel")
    options = sorted((name, str(value)) for name, value in source.options.items())
    return "\\n".join([text, repr(options), repr(list(source.types.values()))])

def first_stage(source, target, options):
    backend = make_backend(target)
    parsed, context = backend.parse_options(options), ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    functions, modules = backend.get_codegen_implementation(parsed), backend.get_module_map()
    module, stages = source.make_ir(target, parsed, functions, modules, context), {}
    backend.add_stages(stages, parsed, source.language)
    return stages["ttir"](module, {}).str_nodebug()

GEMM_LAYOUTS = ("fp16", "k", "kn"), ("bf16", "m", "nk"), ("fp16", "m", "kn"), ("bf16", "k", "kn")

def shapes(op, world, count):
    draw, found = random.Random(op), []
    while len(found) < count:
        if op == "all_gather_gemm":
            layout = draw.choice(GEMM_LAYOUTS)
            n, k = (8 * round(2 ** draw.uniform(5, 12)) for _ in range(2))
            values = (round(2 ** draw.uniform(0, 14)), n, k, world, *layout)
        else:
            kv_heads, dim = draw.choice((1, 4, 8, 12)), draw.choice((64, 128))
            sizes = draw.randint(1, 32), kv_heads * draw.choice((1, 4, 8)), kv_heads, dim
            length = 16 * round(2 ** draw.uniform(4, 13))
            layout = [draw.choice(of) for of in (("fp16", "bf16"), ("all", "heads"), (0, 0, 16))]
            values = (*sizes, length, world, *layout)
        try:
            found.append(operation(op).shape(*values))
        except ValueError:
            continue
    return found

def answers(path, count):
    """What an artifact answers for shapes drawn at random, in both modes."""
    selector = load_artifact(path, allow_modelled=True)
    op, _, target = path.stem.partition("__")
    world = int(target.rpartition("x")[2])
    given = [(shape, mode) for shape in shapes(op, world, count) for mode in ("graph", "eager")]
    found = [(shape, mode, selector.select(shape, mode)) for shape, mode in given]
    return [f"{shape} {mode} {a.config} {a.source} {a.expected_us}" for shape, mode, a in found]

def digest(call, arch, chip):
    try:
        text = "\\n".join(lowered(source, arch) for source in sources(call, chip))
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:80]
    return sha256(text.encode()).hexdigest()[:16]
'''


def dump(checkout: Path, out: Path, calls: Sequence[Call], workers: int) -> None:
    """Write the digests of these calls, each distinct kernel compiled once, by this checkout."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "tftune"
        package.mkdir()
        for path in (checkout / "tftune").iterdir():
            (package / path.name).symlink_to(path.resolve())
        for room in ROOMS:
            (package / room).symlink_to((checkout / room).resolve())
        (Path(folder) / "fingerprint_of.py").write_text(INSIDE)
        (Path(folder) / "alike.py").symlink_to(Path(__file__).resolve())
        (Path(folder) / "calls.json").write_text(json.dumps(calls))
        path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        command = [
            sys.executable,
            "-c",
            f"import alike; alike.inside({folder!r}, {str(out)!r}, {workers})",
        ]
        subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True)


def inside(folder: str, out: str, workers: int) -> None:
    """In a process that imports the checkout."""
    import fingerprint_of as checkout

    calls = [tuple(call) for call in json.loads((Path(folder) / "calls.json").read_text())]
    keys = {call: tuple(checkout.key(call, chip) for chip in CHIPS.values()) for call in calls}
    first = {key: call for call, key in reversed(keys.items())}
    with ProcessPoolExecutor(workers) as pool:
        digests = dict(zip(first, pool.map(lower, first.values(), chunksize=4), strict=True))
    found = {" ".join(call): digests[keys[call]] for call in calls}
    for path in sorted((Path(folder) / "tftune/models/artifacts").glob("*.json")):
        for number, answer in enumerate(checkout.answers(path, 5_000)):
            found[f"{path.stem} {number}"] = {"answer": answer}
    Path(out).write_text(json.dumps({"kernels": len(first), "calls": found}))
    print(f"{len(calls)} calls, {len(first)} distinct sets of kernels, written to {out}")


def compare(before: Path, after: Path) -> bool:
    """Print how many calls compile alike, and those that do not."""
    one, other = (json.loads(path.read_text()) for path in (before, after))
    same = {call for call in one["calls"] if one["calls"][call] == other["calls"].get(call)}
    changed = sorted((one["calls"].keys() | other["calls"].keys()) - same)
    answers = sum("answer" in one["calls"][call] for call in same)
    failed = [call for call in same if any("Error" in text for text in one["calls"][call].values())]
    for call in changed[:20]:
        print(call, one["calls"].get(call), other["calls"].get(call))
    total = len(same) + len(changed)
    lowered = f"kernels={other['kernels']} failed={len(failed)}"
    print(f"RESULT alike same={len(same)} of={total} answers={answers} {lowered}")
    return not changed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("dump", "compare"))
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--calls", type=Path, help="a list that was written before, as JSON")
    asked = parser.parse_args()
    if asked.what == "compare":
        sys.exit(not compare(asked.one, asked.other))
    listed = [tuple(c) for c in json.loads(asked.calls.read_text())] if asked.calls else wanted()
    dump(asked.one.resolve(), asked.other.resolve(), listed, asked.workers)


if __name__ == "__main__":
    main()
