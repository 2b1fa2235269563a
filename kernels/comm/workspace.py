"""Host side of the symmetric heap: the two symmetric blocks of one process group, made once before
any capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from math import prod
from pathlib import Path
from socket import gethostname
from typing import Any
from weakref import WeakValueDictionary

from tftune.kernels.comm.operand_heap import OperandHeap
from tftune.kernels.core.chip import Chip
from tftune.kernels.core.shape import check_kind
from tftune.kernels.core.space import MAX_WORLD

_NUMBERS = count()


@dataclass(frozen=True, repr=False)
class Workspace:
    """Control (epoch, flags), payload (two generations) and operands of every rank of one process
    group.

    One stream and one operation in flight per workspace; kernels whose programs wait for each other
    are launched cooperatively, so that two workspaces on one GPU cannot stop each other half
    resident. Memory on each rank: twice `generation_bytes`, and `operand_bytes`, each rounded up to
    a power of two, and 64 MiB for flags and mailboxes; in all a multiple of 256 MiB, as Iris maps
    it. Addresses are plain integers, since they belong to a heap and not to a tensor of this
    process.

    On every rank, once, sized for the largest call; all layers and shapes share it::

        workspace = tftune.Workspace.create(dist.group.WORLD, payload_bytes=1 << 22)
        assert workspace.world == dist.get_world_size()
    """

    rank: int
    world: int
    arch: str
    """`cuda`, `hip`, or `interpreter`: what the kernels' ARCH argument says."""
    units: int
    """Programs that are surely resident at once: one for each SM or CU."""
    device: Any
    """torch.device of the operands."""
    group: Any
    """torch.distributed group of the same ranks, for BSP's collectives."""
    control: int
    payload: int
    control_bases: Any
    """int64[world], on `device`: each rank's control block, as mapped by this process."""
    payload_bases: Any
    generation_bytes: int
    payload_tensor: Any
    """uint8 tensor over this rank's payload: to poison it, or to look into it."""
    operands: OperandHeap = field(default_factory=OperandHeap, compare=False)
    """What `empty` hands out. A peer's copy of an address here is as far away as one of the
    payload."""
    owner: Any = None
    """What keeps the memory alive."""
    _set_epoch: Callable[[int], None] | None = None
    _read_epoch: Callable[[], int] | None = None
    chip: Chip | None = None
    """What the rules of an operation ask; None for emulated ranks."""
    plans: dict[tuple[Any, ...], Any] = field(default_factory=dict, compare=False)
    """Compiled launches, by shape and config."""
    calls: dict[tuple[Any, ...], Any] = field(default_factory=dict, compare=False)
    """What `tftune.ops` has prepared, by selector, sizes of operands and mode: the plan of what was
    selected for them, the size of the result, and the shape, which a capture counts."""
    buffers: dict[str, list[Any]] = field(default_factory=dict, compare=False)
    """Local memory that plans share (`buffer`), by name, each tensor larger than the one before."""
    turns: Iterator[int] = field(default_factory=count, compare=False)
    """Numbers of the calls whose copies have fixed addresses: each takes the generation that the
    one before it did not."""
    streams: list[Any] = field(default_factory=list, compare=False)
    """Side streams of those calls, made when they are first wanted, and used by nothing else."""
    pools: list[Any] = field(default_factory=list, compare=False)
    """The memory that the library knows, made when it is first wanted."""
    ordinal: int = field(init=False, compare=False)
    """The number of its device, as tensors say it: -1 is host memory."""
    handle: str = field(
        init=False, default_factory=lambda: f"workspace-{next(_NUMBERS)}", compare=False
    )
    """Its name in this process, for calls that can only pass text: an operator that torch.compile
    traces."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "ordinal", -1 if self.device.type == "cpu" else self.device.index)
        _LIVING[self.handle] = self

    def __repr__(self) -> str:
        calls = f"{len(self.calls)} calls prepared"
        return (
            f"<Workspace: rank {self.rank} of {self.world} on {self.device} ({self.arch}), two "
            f"generations of {self.generation_bytes:,} bytes, {calls}>"
        )

    @staticmethod
    def of(handle: str) -> Workspace:
        """The workspace of that handle, which does not keep it alive; raises ValueError where it is
        gone."""
        if (workspace := _LIVING.get(handle)) is None:
            raise ValueError(
                f"{handle} is gone: keep the workspace as long as what was compiled with it"
            )
        return workspace

    @staticmethod
    def living() -> list[Workspace]:
        """Every workspace of this process."""
        return list(_LIVING.values())

    def renamed(self, handle: str) -> Workspace:
        """Itself, under another handle: one that compiled code finds at the next start, too. A
        workspace that had the handle before is found by it no more."""
        _LIVING.pop(self.handle, None)
        object.__setattr__(self, "handle", handle)
        _LIVING[handle] = self
        return self

    def check_world(self, shape: Any) -> None:
        """Raise ValueError where a shape whose ranks exchange something is of more or fewer than
        this workspace has."""
        if shape.EXCHANGES and shape.world != self.world:
            raise ValueError(
                f"{shape} is of world={shape.world} and the workspace has {self.world} ranks; give "
                f"the shape world={self.world}, or a workspace of a group of {shape.world}"
            )

    @cached_property
    def bases(self) -> tuple[list[int], list[int]]:
        """Where the control block and the payload of each rank lie, on the host. Read once: a read
        of a GPU's memory waits for all that is queued there, and every M of a server has a plan."""
        return self.control_bases.tolist(), self.payload_bases.tolist()

    def empty(self, size: Sequence[int], dtype: Any) -> Any:
        """An uninitialised tensor in the symmetric heap, for an operand that peers read in place:
        A of `all_gather_gemm`, x of `all_reduce`. Contiguous, at a multiple of 256 bytes.

        Every rank asks for the same sizes in the same order, and passes the tensor of the same turn
        to a call: a call on some ranks with another tensor, or with one outside of the heap, reads
        what it should not or does not end. A tensor lives as long as the workspace, or until
        `operands.clear()`. It may be written again as soon as a call that read it has ended on this
        rank, in stream order: the call ends after every peer has read it. Raises ValueError, with
        both numbers, where the `operand_bytes` of `create` are used up::

            workspace = tftune.Workspace.create(dist.group.WORLD, 1 << 22, operand_bytes=1 << 20)
            x = workspace.empty((8, 64), torch.bfloat16)
            assert workspace.holds(x) and workspace.holds(x[4:])
        """
        return self.operands.empty(size, dtype)

    def holds(self, tensor: Any) -> bool:
        """Whether a tensor lies in memory of `empty`, where peers can read it."""
        return self.operands.holds(tensor)

    def buffer(
        self,
        name: str,
        size: Sequence[int],
        dtype: Any,
        allocate: Callable[[int], Any] | None = None,
        zeros: bool = False,
        registered: bool = False,
    ) -> Any:
        """Local memory for a plan: all that ask under one name share it, since one call runs at a
        time. It holds anything between calls; with `zeros` every plan leaves what it found.

        Nothing is freed as long as the workspace lives, as captured graphs hold the addresses. Each
        allocation at least doubles the last, so that all of a name are at most four times the
        largest request. `allocate`: from bytes to a uint8 tensor. `registered`: memory
        registered with the group's library, where that is NCCL: its collectives copy straight
        between such buffers. Raises ValueError where memory is missing while a graph is captured.
        """
        import torch

        needed = prod(size) * dtype.itemsize
        known = self.buffers.setdefault(f"registered {name}" if registered else name, [])
        whole = next((tensor for tensor in known if tensor.numel() >= needed), None)
        if whole is None:
            if self.device.type == "cuda" and torch.cuda.is_current_stream_capturing():
                raise ValueError(
                    f"a call needs {needed} bytes for {name!r} of which the workspace has "
                    f"{known[-1].numel() if known else 0}; make this call once before the capture"
                )
            most = max(needed, 2 * known[-1].numel() if known else 0)

            def make() -> Any:
                if allocate is not None:
                    return allocate(most)
                with self._registered() if registered else nullcontext():
                    filled = torch.zeros if zeros else torch.empty
                    return filled(most, dtype=torch.uint8, device=self.device)

            whole = self._in_own_thread(make)
            if zeros and self.device.type == "cuda":  # whatever stream the first call is on
                torch.cuda.current_stream(self.device).synchronize()
            known.append(whole)
        with torch.inference_mode(False):
            return whole[:needed].view(dtype).view(*size)

    def _in_own_thread(self, make: Callable[[], Any]) -> Any:
        """`make()`, in a thread that is started for it, on the caller's stream.

        What the thread that warms up a CUDA graph of torch.compile allocates goes to a pool that
        later graphs overwrite (`_use_cuda_memory_pool_manager` in cudagraph_trees.py of
        torch/_inductor). The caller's inference mode does not reach the thread, either.
        """
        import torch

        on_gpu = self.device.type == "cuda"
        stream = torch.cuda.current_stream(self.device) if on_gpu else None

        def run() -> Any:
            if on_gpu:  # a new thread's device is GPU 0
                torch.cuda.set_device(self.device)
            with torch.cuda.stream(stream) if on_gpu else nullcontext():
                return make()

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(run).result()

    def set_epoch(self, epoch: int) -> None:
        """Start counting from here, on every rank alike and with no call in flight. The next call's
        epoch is `epoch | 1`, in 32 bits, which wrap. Flags stay as they are, old as they may
        be."""
        if self._set_epoch is None:
            raise NotImplementedError("this workspace cannot set its epoch")
        self._set_epoch(_signed(epoch & -2))

    def agree(self, gather: Callable[[tuple[int, int]], list[tuple[int, int]]]) -> None:
        """Let every rank go on with the same epoch and turn, after calls that some ranks did not
        make or did not capture. Collective, with no call in flight; `gather`: what each rank
        passes, by rank.

        The next epoch lies behind every rank's: a flag that is set already never passes for new.
        """
        if self._read_epoch is None:
            raise NotImplementedError("this workspace cannot read its epoch")
        turn = next(self.turns)
        told = gather((self._read_epoch(), turn))
        (first, _), latest = told[0], max(turn for _, turn in told)
        behind = max(_signed(epoch - first) for epoch, _ in told)
        self.set_epoch(first + behind + _SKIPPED)
        for _ in range(latest - turn):
            next(self.turns)

    @contextmanager
    def _registered(self) -> Iterator[None]:
        """Within it, memory that this thread allocates is registered with the group's library,
        where that is NCCL. Not while a graph is captured."""
        import torch
        import torch.distributed as dist

        group: Any = self.group or dist.group.WORLD
        backend = group._get_backend(self.device)
        if not hasattr(backend, "register_mem_pool"):
            yield
            return
        if not self.pools:
            self.pools.append(torch.cuda.MemPool(backend.mem_allocator))
            backend.register_mem_pool(self.pools[0])  # and what it grows by
        with torch.cuda.use_mem_pool(self.pools[0]):
            yield

    def barrier(self) -> Callable[[], None]:
        """A call that queues one small kernel, which ends when every rank has queued it and come so
        far. Compiled here."""
        from tftune.kernels.comm.symmetric import barrier
        from tftune.kernels.runtime.compile import KernelSource
        from tftune.kernels.runtime.plan import launcher

        types = {"control": "i64", "control_bases": "*i64", "rank": "i32"}
        source = KernelSource(
            barrier, types, {"WORLD": self.world}, ("control", "control_bases"), {"num_warps": 1}
        )
        values = {"control": self.control, "control_bases": self.control_bases, "rank": self.rank}
        return launcher(source, (1, 1, 1), (), values, self.arch)

    @classmethod
    def create(cls, group: Any, payload_bytes: int, operand_bytes: int = 0) -> Workspace:
        """Collectively, on every rank of the default group at once: a workspace for `group` whose
        calls gather at most `payload_bytes` bytes of A; `empty` hands out `operand_bytes`, the same
        on every rank. Uses Iris: CUDA maps a chunked virtual
        heap; ROCm keeps payload on Iris' default heap and flags in fine-grained memory, which alone
        is coherent while kernels run.

        Raises TypeError for what is no group or no number. Raises ValueError where there is no GPU,
        for more ranks than flags are kept for, and for ranks that Iris cannot map: those of other
        nodes, or that see some of the job's GPUs.
        """
        import torch
        import torch.distributed as dist

        check_group(group)
        check_kind("payload_bytes", payload_bytes, int, "a number of bytes, as in 1 << 22")
        check_kind("operand_bytes", operand_bytes, int, "a number of bytes, as in 1 << 20")
        if payload_bytes < 1 or operand_bytes < 0:
            raise ValueError(
                f"{payload_bytes=} must be at least 1, and {operand_bytes=} at least 0"
            )
        if not torch.cuda.is_available():
            raise ValueError(
                "a Workspace needs a GPU; without one, use tftune.kernels.comm.emulated"
            )
        ranks = dist.get_process_group_ranks(group if group is not None else dist.group.WORLD)
        views: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(views, (_host(), torch.cuda.device_count()))
        check_ranks(ranks, views, torch.version.hip is not None)
        from tftune.kernels.comm import iris_heap as heap

        return heap.workspace(cls, group, ranks, payload_bytes, operand_bytes)


_LIVING: WeakValueDictionary[str, Workspace] = WeakValueDictionary()
_SKIPPED = 1 << 10
"""Epochs between the furthest rank's last call and the next one of all, where ranks agree anew."""


def _signed(word: int) -> int:
    """An integer as 32 bits hold it: in -2^31 to 2^31 - 1."""
    return (word + (1 << 31)) % (1 << 32) - (1 << 31)


def check_group(group: Any) -> None:
    """Raise TypeError for what is no group of torch.distributed; None is the default one."""
    if group is not None and not callable(getattr(group, "size", None)):
        expected = "a group of torch.distributed that has this rank, or None"
        raise TypeError(f"group={group!r:.60} is a {type(group).__name__}; give {expected}")


def _host() -> str:
    """This node's name and the time of its boot, as a text that no other node has."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    return f"{gethostname()} {boot.read_text().strip() if boot.exists() else ''}"


def check_ranks(ranks: list[int], views: Sequence[tuple[str, int]], hip: bool = False) -> None:
    """Raise ValueError, on every rank alike, where these global ranks cannot share one symmetric
    heap. `views`: the host of each rank of the job, and how many GPUs it sees.

    A rank that sees its own GPU alone is mapped on CUDA: Iris asks for access from that GPU, and
    imports the peers' memory by handles.
    """
    if len(ranks) > MAX_WORLD:
        raise ValueError(f"a Workspace holds flags for at most {MAX_WORLD} ranks, not {len(ranks)}")
    world, hosts = len(views), sorted({host.split()[0] for host, _ in views})
    if (nodes := len({host for host, _ in views})) > 1:
        raise ValueError(
            f"the job has {world} ranks on {nodes} nodes ({', '.join(hosts)}): Iris maps the "
            "ranks of one node only; containers of one node need one hostname"
        )
    for rank, (_, gpus) in enumerate(views):
        if gpus < world and (gpus != 1 or hip):
            variable = "HIP_VISIBLE_DEVICES" if hip else "CUDA_VISIBLE_DEVICES"
            alone = "" if hip else ", or each rank its own GPU alone"
            raise ValueError(
                f"the job has {world} ranks on this node but rank {rank} sees {gpus} GPUs; let "
                f"{variable} show every rank all GPUs of the job{alone}"
            )
