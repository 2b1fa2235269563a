"""The code that Triton emits for a GPU that is not here, and what is wrong with its memory order:
opcodes, control flow and the source line of each instruction."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from source_text import only_place

from tftune import kernels
from tftune.kernels.runtime.compile import KernelSource, gpu_target

SYMMETRIC, SHARDS, GEMM, ATTENTION = (
    Path(kernels.__path__[0]) / f"{name}.py"
    for name in ("comm/symmetric", "device/shards", "device/gemm", "device/attention")
)
LOADS_OF_A = "a = tl.load(a_ptrs)", "a = a_desc.load("


@dataclass(frozen=True)
class Instruction:
    text: str
    line: str
    """Where it comes from: `file.py:line`."""

    @property
    def words(self) -> set[str]:
        """The parts of the opcode: their order differs between versions of Triton."""
        return set(re.sub(r"^@\S+\s+", "", self.text).split()[0].split("."))


ACCESS = re.compile(
    r"\b(ld|st)\.\S*global|\b(ld|st)\.global|cp\.async\.c[ag]|(global|buffer|flat)_(load|store)"
)
TOUCHES_DATA = re.compile(r"mma|mfma|st\.\S*global|global_store|cp\.async|\.v4\.|dwordx4")


@dataclass(frozen=True)
class Assembly:
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    """The index of the instruction that follows a label."""

    @classmethod
    def parse(cls, text: str) -> Assembly:
        files = {
            found[1]: found[2]
            for found in re.finditer(r'\.file\s+(\d+) .*"([^"\n]*)"$', text, re.M)
        }
        comment = r"//.*" if ".target sm_" in text else r";.*"
        instructions: list[Instruction] = []
        labels, where, inline = {}, "", False
        for line in text.splitlines():
            code = re.sub(comment, "", line).strip()
            if "inline asm" in line:  # Triton 3.8 counts its own lines in it
                inline = "begin" in line
            if (found := re.match(r"\.loc\s+(\d+) (\d+)", code)) and not inline:
                where = f"{Path(files[found[1]]).name}:{found[2]}"
            elif found := re.match(r"([.$\w]+):$", code):
                labels[found[1]] = len(instructions)
            elif code and code[0] not in ".{}()":
                instructions.append(Instruction(code, where))
        return cls(tuple(instructions), labels)

    def find(self, pattern: str) -> list[int]:
        return [at for at, i in enumerate(self.instructions) if re.search(pattern, i.text)]

    def accesses(self, line: str) -> list[Instruction]:
        """The accesses to global memory that come from one line of the sources."""
        return [i for i in self.instructions if i.line == line and ACCESS.search(i.text)]

    def before(self, index: int, pattern: str) -> list[Instruction] | None:
        """The instructions back to the last one that matches, in order and without it; None where
        there is none."""
        starts = [start for start in self.find(pattern) if start < index]
        return list(self.instructions[starts[-1] + 1 : index]) if starts else None

    def successors(self, index: int) -> list[int]:
        text = self.instructions[index].text
        target = re.search(r"(?:\bbra\S*|s_c?branch\S*)\s+([.$\w]+)", text)
        falls = not re.match(r"bra|s_branch|s_endpgm|ret\b", text) and index + 1 < len(
            self.instructions
        )
        return ([self.labels[target[1]]] if target else []) + [index + 1] * falls

    def polled(self, index: int) -> bool:
        """Whether control can come back to an instruction without touching data in between."""
        todo, seen = self.successors(index), set()
        while todo:
            at = todo.pop()
            if at == index:
                return True
            if at >= len(self.instructions) or at in seen:
                continue
            if not TOUCHES_DATA.search(self.instructions[at].text):
                seen.add(at)
                todo += self.successors(at)
        return False


def line_of(file: Path, text: str) -> str:
    """`file.py:line` of where the only place with a text begins, in any layout."""
    source = file.read_text()
    before = source[: only_place(source, text, file.name).start()]
    return f"{file.name}:{before.count(chr(10)) + 1}"


def signal_faults(code: Assembly, hip: bool) -> list[str]:
    """What is wrong with the release of each flag; [] if nothing."""
    exchanges = code.find(r"atomic_swap" if hip else r"\batom\.\S*exch")
    if not exchanges:
        return ["no exchange"]
    return [
        fault
        for index in exchanges
        for fault in (_hip_release if hip else _cuda_release)(code, index)
    ]


def _cuda_release(code: Assembly, index: int) -> list[str]:
    since_barrier, faults = code.before(index, r"^bar\.sync|^barrier\.sync"), []
    if not {"release", "sys"} <= code.instructions[index].words:
        faults.append("the flag is not released at system scope")
    if since_barrier is None or any(re.search(r"st\.\S*global", i.text) for i in since_barrier):
        faults.append("no barrier between the block's stores and the flag")
    return faults


def _hip_release(code: Assembly, index: int) -> list[str]:
    """The gfx942 sequence of LLVM's AMDGPU memory model, "store atomic release, system", for the
    work-group's every wave."""
    since_barrier, faults = code.before(index, r"^s_barrier"), []
    if "sc1" not in code.instructions[index].text.split():
        faults.append("the flag is not at system scope")
    if since_barrier is None or any("_store" in i.text for i in since_barrier):
        return [*faults, "no barrier between the block's stores and the flag"]
    if not any(i.text == "buffer_wbl2 sc0 sc1" for i in since_barrier):
        faults.append("no write-back at system scope before the flag")
    barrier = index - len(since_barrier) - 1
    since_store = code.before(barrier, r"_store|atomic")
    if since_store and "_swap" in code.instructions[barrier - len(since_store) - 1].text:
        return faults  # no store since another flag, which is looked at, too
    if since_store is None:  # the stores' block comes later in the text
        since_store = list(code.instructions[:barrier])
    drained = iter([i.text for i in since_store])
    drain = "s_waitcnt vmcnt(0)", "buffer_wbl2 sc0 sc1", "s_waitcnt vmcnt(0)"
    if not all(text in drained for text in drain):
        faults.append("waves reach the barrier before their stores have left")
    return faults


def wait_faults(code: Assembly, hip: bool) -> list[str]:
    """What is wrong with the acquire of flags; [] if nothing."""
    polls = _hip_polls(code) if hip else _cuda_polls(code)
    faults = [] if polls else ["no acquire at system scope"]
    faults += ["the flag is read once, not polled" for index in polls if not code.polled(index)]
    polls_of = (
        (SYMMETRIC, "while ((tl.atomic_add"),
        (SYMMETRIC, "tl.pointer_type(tl.int32)"),
        (GEMM, "seen = tl.atomic_add(flags"),
    )
    reads = [i for line in {line_of(*poll) for poll in polls_of} for i in code.accesses(line)]
    if sum("load" in i.text or "ld" in i.words for i in reads) > len(polls):
        faults.append("a flag is read without acquire")
    return faults


def _cuda_polls(code: Assembly) -> list[int]:
    return [i for i, found in enumerate(code.instructions) if {"acquire", "sys"} <= found.words]


def _hip_polls(code: Assembly) -> list[int]:
    """Loads (or additions of 0) past every cache, each completed and followed by an invalidation
    before anything else. What is also a release counts, and does not poll."""
    found = code.find(r"_(load_dword|atomic_add|atomic_or) .*\bsc0 sc1$")
    texts = [instruction.text for instruction in code.instructions]
    return [
        index
        for index in found
        if texts[index + 1 : index + 3] == ["s_waitcnt vmcnt(0)", "buffer_inv sc0 sc1"]
        and "buffer_wbl2 sc0 sc1" not in texts[index - 2 : index]
    ]


def narrow(code: Assembly, hip: bool, *lines: str) -> list[str]:
    """Accesses from these lines that are not 16 bytes wide, and lines without any."""
    wide = r"dwordx4" if hip else r"\.v4\.b32|cp\.async\.cg.*, 0x10,"
    none = [f"nothing from {line}" for line in lines if not code.accesses(line)]
    return none + [
        i.text for line in lines for i in code.accesses(line) if not re.search(wide, i.text)
    ]


def early_loads(
    ttgir: str, file: Path = GEMM, loads_of_data: tuple[str, ...] = LOADS_OF_A, waits: int = 1
) -> list[str]:
    """Loads of A, or of other data, that Triton placed above the first wait of the kernel, or the
    last of so many: its pipeliner does so where it takes the wrong loop."""
    numbers = "|".join(line_of(file, load).partition(":")[2] for load in loads_of_data)
    from_there = set(
        re.findall(rf'^(#loc\d*) = loc\("[^"]*{file.stem}\.py":(?:{numbers}):', ttgir, re.M)
    )
    aliases = re.findall(r'^(#loc\d*) = loc\((?:callsite|"[^"]*")\((#loc\d*)', ttgir, re.M)
    for _ in aliases:  # the inlined copies, and copies of those
        from_there |= {name for name, of in aliases if of in from_there}
    lines = ttgir.splitlines()
    polls = [at for at, text in enumerate(lines) if "atomic_rmw" in text and "acquire" in text]
    wait_at = polls[waits - 1]
    loads = r"tt\.load |async_copy_global_to_local |async_tma_copy_global_to_local |buffer_load"
    found = [
        at
        for at, text in enumerate(lines)
        if re.search(loads, text)
        and (where := re.search(r"loc\((#loc\d*)\)$", text))
        and where[1] in from_there
    ]
    return [lines[at].strip() for at in found if at < wait_at] if found else ["no load of the data"]


def is_hip(arch: str) -> bool:
    return arch.startswith("gfx")


def assemble(kernel: KernelSource, arch: str) -> Assembly:
    return Assembly.parse(kernel.compile(gpu_target(arch)).asm["amdgcn" if is_hip(arch) else "ptx"])


def ttgir(kernel: KernelSource, arch: str) -> str:
    """For `early_loads`."""
    text: str = kernel.compile(gpu_target(arch)).asm["ttgir"]
    return text


def proxy_faults(code: Assembly, hip: bool) -> list[str]:
    """A descriptor reads through another proxy: between the poll of a flag and its loads must stand
    a fence for both."""
    first = code.find(r"cp\.async\.bulk\.tensor")[0]
    poll = max(index for index in _cuda_polls(code) if index < first)
    fences = [fence for fence in code.find(r"fence\.proxy\.async\.global") if poll < fence < first]
    return [] if fences else ["descriptors may read what was there before the wait"]
