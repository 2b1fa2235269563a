"""Eight processes that select: the same answer for 10,000 shapes, and BSP on all of them where one is in doubt."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from tftune.db.trial import Trial
from tftune.kernels import emulated
from tftune.kernels.all_gather_gemm import AllGatherGemm, paper
from tftune.kernels.workspace import Workspace

OP = "all_gather_gemm"
WORLD, BROKEN = 8, 5
LARGE = AllGatherGemm(m=4096, n=3584, k=8192, world=8)


def random_shapes(seed: int, count: int) -> list[AllGatherGemm]:
    """Half of them as the artifact's, but for M; the others anything that is a shape."""
    pick = random.Random(seed)
    found = [AllGatherGemm(pick.randint(1, 1 << 15), 3584, 8192, 8) for _ in range(count // 2)]
    for _ in range(count - len(found)):
        world, sizes = pick.choice([1, 2, 4, 8]), [pick.randint(1, 1 << 13) for _ in range(3)]
        words = pick.choice(["fp16", "bf16"]), pick.choice("km"), pick.choice(["kn", "nk"])
        found.append(AllGatherGemm(sizes[0] * world, sizes[1], sizes[2] * world, world, *words))
    return found


def asked(workspace: Workspace, sound: Path, edited: Path, cut: Path) -> dict[str, Any]:
    """What this rank answers once all ranks bound the same artifact, and once one of them had a bad one or failed its checks."""
    import tftune

    def bound(path: Path, verdict: str = "ok") -> Any:
        tftune._default = None
        broken = workspace.rank == BROKEN
        tftune.bind(workspace.group, verdict if broken else "ok", path=path if broken else sound, allow_modelled=True)
        return tftune.select_kernel(LARGE)

    first = bound(sound)
    answers = [tftune.select_kernel(shape) for shape in random_shapes(3, 10_000)]
    return {
        "variant": first.config.variant,
        "variants": sorted({answer.config.variant for answer in answers}),
        "answers": sha256(repr([(str(answer.config), answer.reason) for answer in answers]).encode()).hexdigest(),
        "edited": bound(edited),
        "cut": bound(cut),
        "failed": bound(sound, "link 3 is slow"),
    }


def test_all_ranks_agree_or_all_refuse_alike(make_rows: Callable[..., list[Trial]], tmp_path: Path) -> None:
    from tftune.models.dataset import load
    from tftune.models.export import export, provenance
    from tftune.models.selector import digest
    from tftune.models.train import train

    dataset = load(make_rows(paper()), OP, "h200x8", "graph", "model")
    sound = export({"graph": train(dataset)}, tmp_path / "sound.json", provenance({"graph": dataset}, {}, {}))
    content = json.loads(sound.read_text())
    (edited := tmp_path / "edited.json").write_text(json.dumps(content | {"rows": 7}))
    (cut := tmp_path / "cut.json").write_text(sound.read_text()[:-100])
    first, *others = emulated.run(WORLD, asked, sound, edited, cut)
    assert first["variants"] == ["bsp", "push"] and first["variant"] == "push"
    assert [other == first for other in others] == [True] * (WORLD - 1)
    for name in ("edited", "cut", "failed"):
        assert first[name].config.variant == "bsp" and first[name].reason.endswith("every rank selects BSP")
    mine, changed = content["sha256"][:12], digest(content | {"rows": 7})[:12]
    assert f"rank {BROKEN} has not loaded: " in first["edited"].reason and f"the digest {changed}, not {mine}" in first["edited"].reason
    assert f"rank 0 has {{'{OP}': '{mine}'}}" in first["edited"].reason and f"rank 0 has {{'{OP}': '{mine}'}}" in first["cut"].reason
    assert "cut off" in first["cut"].reason and f"machine check of rank {BROKEN} says 'link 3 is slow'" in first["failed"].reason
