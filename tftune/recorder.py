"""Count the shapes that a process runs, so that a search can take those first that cost most time.
Standard library only.

While nothing is captured a call costs nothing more: plans are wrapped when a capture starts. A
captured graph makes no Python call when it is replayed, so `count_replays` counts for it.
"""

from __future__ import annotations

import atexit
import json
import os
import platform
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

import tftune
from tftune.db.captured import FORM, Count, merged
from tftune.db.files import replace_file
from tftune.db.trial import MODES, now
from tftune.kernels.core.shape import Shape

EVERY_S = 60.0
"""Between two writes of the file: what a killed process loses at most."""

G = TypeVar("G")
Place = tuple[Shape, str]
Counts = dict[Place, int]


class Recorder:
    """Counts of one process, written to a file every minute and at the end; a context manager.

    A call adds one to a dictionary, without a lock: where several threads call at once, a count may
    be lost.
    """

    def __init__(self, path: Path, every_s: float = EVERY_S) -> None:
        self.path = path
        self.into: dict[_Place, int] = {}
        """Where calls count now: `calls`, or the contents of a graph that is being captured."""
        self.calls = self.into
        self._places: dict[Place, _Place] = {}
        self._cells: defaultdict[str, dict[Any, list[Any]]] = defaultdict(dict)
        """Selections, by mode and a shape's key: the shape and a count. One look-up a call."""
        self.replayed: Counts = {}
        """Counts of graphs that were captured again, and of what an engine reported."""
        self.graphs: list[_Graph] = []
        self._began = now("seconds")
        self._end = threading.Event()
        self._writer = threading.Thread(target=self._write_on, args=(every_s,), daemon=True)

    def counted(self, plan: Callable[..., None], shape: Shape, mode: str) -> Callable[..., None]:
        """The plan, which from now on counts its calls."""
        place, recorder = self._places.setdefault((shape, mode), _Place(shape, mode)), self

        def call(*operands: Any) -> None:
            into = recorder.into
            into[place] = into.get(place, 0) + 1
            plan(*operands)

        call.uncounted = plan  # type: ignore[attr-defined]
        return call

    def asked(self, shape: Shape, mode: str) -> None:
        """Code that launches by itself was told what to run. Values that are no shape or mode are
        for the selector to refuse."""
        key = getattr(shape, "key", None)
        cell = self._cells[mode].get(key)
        if cell is None:
            cell = self._cells[mode][key] = [shape, 0]
        cell[1] += 1

    def report(self, shape: Shape, mode: str, runs: int) -> None:
        """So many runs that no call shows: for an engine that counts the replays of its graphs
        itself. Raises ValueError for fewer than none."""
        if runs < 0:
            raise ValueError(f"{runs=} must be at least 0")
        self.replayed[shape, mode] = self.replayed.get((shape, mode), 0) + runs

    def counts(self) -> list[Count]:
        """What was run until now."""
        replays = dict(self.replayed)
        for graph in self.graphs:
            graph.add_to(replays)
        called = [
            Count(place.shape, place.mode, calls=count) for place, count in dict(self.calls).items()
        ]
        kinds = {"replays": replays, "selections": self._selections()}
        others = [
            Count(shape, mode, **{kind: count})
            for kind, count_of in kinds.items()
            for (shape, mode), count in count_of.items()
        ]
        return merged([*called, *others])

    def _selections(self) -> Counts:
        return {
            (shape, mode): count
            for mode in MODES
            for shape, count in list(self._cells[mode].values())
            if isinstance(shape, Shape)
        }

    def write(self) -> None:
        """Replace the file by what was counted until now."""
        process = {"host": platform.node(), "pid": os.getpid(), "began": self._began}
        shapes = [count.to_dict() for count in self.counts()]
        written = now("seconds")
        document = {"capture": FORM, "process": process, "written": written, "shapes": shapes}
        replace_file(self.path, json.dumps(document, indent=1), make_folder=True)

    def start(self) -> Self:
        """Count from here on, plans that were made before included. Raises ValueError where
        something counts already, StoreError where the file cannot be written."""
        if tftune._capture is not None:
            raise ValueError(f"this process is captured into {tftune._capture.path} already")
        self.write()
        from tftune.kernels.comm.workspace import Workspace

        tftune._capture = self
        for workspace in Workspace.living():
            from tftune.operator import mode_at  # torch is there where a workspace is

            for key, (plan, size, shape) in list(workspace.calls.items()):
                plan = getattr(plan, "uncounted", plan)  # prepared just now, in another thread
                counted = self.counted(plan, shape, mode_at(key[-1], shape))
                workspace.calls[key] = counted, size, shape
        self._writer.start()
        atexit.register(self.stop)
        return self

    def stop(self) -> None:
        """Count no more, and write the file once more. Stopping twice is harmless."""
        if tftune._capture is not self:
            return
        tftune._capture = None
        from tftune.kernels.comm.workspace import Workspace

        for workspace in Workspace.living():
            for key, (plan, *more) in list(workspace.calls.items()):
                workspace.calls[key] = getattr(plan, "uncounted", plan), *more
        self._end.set()
        self._writer.join()
        atexit.unregister(self.stop)
        self.write()

    def _write_on(self, every_s: float) -> None:
        while not self._end.wait(every_s):
            self.write()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.stop()


def capture(path: str | PathLike[str], every_s: float = EVERY_S) -> Recorder:
    """Count the shapes that this process runs from now on, into a file that `tftune search
    --captured` reads; a context manager, or ended by `stop()`.

    Calls of `tftune.ops` and of `select_kernel` count, by mode. Of graphs, see `count_replays`. The
    file is written every `every_s` seconds, and at the end of the process. TFTUNE_CAPTURE=FILE does
    the same in a process whose code stays as it is. Raises ValueError where this process is
    captured already.

    >>> import json, pathlib, tempfile, tftune
    >>> selector = tftune.use(tftune.load(target="h200x8"))
    >>> path = pathlib.Path(tempfile.mkdtemp(), "shapes.json")
    >>> with tftune.capture(path):
    ...     _ = tftune.select_kernel(tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8))
    >>> json.loads(path.read_text())["shapes"][0]["selections"]
    1
    """
    return Recorder(Path(path), every_s).start()


def count_replays(graph: G) -> G:
    """The same CUDA graph, whose replays count from now on; call it before its capture begins.

    What is called while it is captured is run by each replay. Where nothing is captured by
    `tftune.capture` or TFTUNE_CAPTURE, the graph stays as it is. Raises TypeError for what has no
    `capture_begin`, `capture_end` and `replay`, as torch.cuda.CUDAGraph has them::

        graph = tftune.count_replays(torch.cuda.CUDAGraph())
        with torch.cuda.graph(graph):
            y = layer(x)
        graph.replay()
    """
    if missing := [name for name in _METHODS if not callable(getattr(graph, name, None))]:
        raise TypeError(f"{graph!r:.80} is no graph to be captured: it has no {missing[0]}")
    if tftune._capture is not None:
        tftune._capture.graphs.append(_Graph(tftune._capture, graph))
    return graph


def of_this_process(path: str | PathLike[str]) -> Path:
    r"""The file of one process among those that were told one name: ranks of a node, or nodes that
    share a folder.

    >>> import re
    >>> bool(re.fullmatch(r"shapes\.[\w.-]+-\d+-\d+\.json", of_this_process("shapes.json").name))
    True
    """
    asked = Path(path)
    host = "".join(c if c.isalnum() else "_" for c in platform.node()) or "unnamed"
    return asked.with_name(
        f"{asked.stem}.{host}-{os.getpid()}-{time.time_ns() // 10**6}{asked.suffix}"
    )


_METHODS = ("capture_begin", "capture_end", "replay")


@dataclass(frozen=True, eq=False)
class _Place:
    """A shape and a mode that hash by identity: a shape's own hash takes longer than all else of a
    count."""

    shape: Shape
    mode: str


class _Graph:
    """A graph whose methods count: what its capture called, and how often that is replayed."""

    def __init__(self, recorder: Recorder, graph: Any) -> None:
        self._recorder = recorder
        self._begin, self._end, self._replay = (getattr(graph, name) for name in _METHODS)
        self._contents: dict[_Place, int] = {}
        self._replays = 0
        graph.capture_begin, graph.capture_end, graph.replay = self.begin, self.end, self.replay

    def begin(self, *given: Any, **named: Any) -> Any:
        self.add_to(self._recorder.replayed)
        self._contents, self._replays = {}, 0
        result = self._begin(*given, **named)
        self._recorder.into = self._contents
        return result

    def end(self, *given: Any, **named: Any) -> Any:
        self._recorder.into = self._recorder.calls
        return self._end(*given, **named)

    def replay(self, *given: Any, **named: Any) -> Any:
        self._replays += 1
        return self._replay(*given, **named)

    def add_to(self, counts: Counts) -> None:
        """Add what its replays have run."""
        for place, calls in dict(self._contents).items():
            key = place.shape, place.mode
            counts[key] = counts.get(key, 0) + calls * self._replays
