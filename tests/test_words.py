"""Words that carry their epoch, in the code emitted for sm_90: 16 bytes at a time, no fence, and polls that no warp leaves alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from assembly import Assembly, assemble, line_of
from mutant import mutant
from test_memory_order import DECODE, decode_source

from tftune import kernels
from tftune.kernels.compile import gpu_target

LOW_LATENCY = Path(kernels.__path__[0]) / "flash_decode" / "persistent_ll.py"


@pytest.mark.parametrize("heads", [1, 2])
def test_words_are_polled_by_all_warps_alike(heads: int, tmp_path: Path) -> None:
    """Stores and polls of 16 bytes, no fence, and all warps leave a loop of polls together: they ask each other at a barrier."""
    plain = decode_source("persistent_ll", "decode_ll", "sm_90")
    kernel = replace(plain, constants={**plain.constants, "R": heads})
    assert poll_faults(assemble(kernel, "sm_90")) == []
    assert kernel.compile(gpu_target("sm_90")).asm["ttgir"].count("isVolatile = true") == 4  # each of two loads before its loop, and in it
    change = ("words", 'if ARCH == "cuda":', 'if ARCH == "none":')
    rebuilt = mutant(tmp_path, "persistent_ll", (change,), DECODE.op)(plain.constants["SPLITS"])[0].kernel
    assert poll_faults(assemble(replace(kernel, kernel=rebuilt), "sm_90")) == ["2 loops of polls end without asking all warps"]


def poll_faults(code: Assembly) -> list[str]:
    """What is wrong with words that carry their epoch; [] if nothing."""
    lines = [line_of(LOW_LATENCY, text) for text in ("    store(o_ptrs, tl.reshape(words", "store(word64(parts + rows")]
    faults = [i.text for line in lines for i in code.accesses(line) if not {"v2", "b64"} <= i.words]
    loops = {loop for poll in code.find(r"ld\.volatile\.global\.v2\.b64") if code.polled(poll) and (loop := loop_of(code, poll))}
    faults += [] if len(loops) == 2 else [f"{len(loops)} loops of polls"]
    faults += ["a fence"] if code.find(r"^fence|^membar") else []
    unasked = [loop for loop in loops if not any({"barrier", "red"} <= code.instructions[at].words for at in loop)]
    return faults + ([f"{len(unasked)} loops of polls end without asking all warps"] if unasked else [])


def loop_of(code: Assembly, index: int) -> tuple[int, ...]:
    """The instructions from an instruction round to itself, the shortest way; () where there is none."""
    came, todo = {index: -1}, [index]
    for at in todo:
        for after in code.successors(at):
            if after == index:
                way = [at]
                while way[-1] != index:
                    way.append(came[way[-1]])
                return tuple(sorted(way))
            if after < len(code.instructions) and after not in came:
                came[after] = at
                todo.append(after)
    return ()
