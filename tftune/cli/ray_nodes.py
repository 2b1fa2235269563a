"""Nodes of a Ray cluster, each owned whole by one actor, and a search over them. Needs the extra
[fleet]."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from tftune.cli import fleet_search
from tftune.cli.captured import Part, timed
from tftune.cli.console import note
from tftune.cli.fleet_search import Dealer, Found, Job, Lost
from tftune.client.wait import LIMIT_S, SAID_S, bounded
from tftune.db.store import Store
from tftune.db.target import Target
from tftune.kernels.core.shape import Shape
from tftune.report.tables import Line


class Worker:
    """What runs on a node, in a process of its own that owns all GPUs there."""

    def describe(self, on: str) -> dict[str, str]:
        """The node's name, its target where that can be measured on, and versions."""
        import ray

        from tftune.client.push import node_name
        from tftune.db.target import build, detect

        name = f"{node_name()}-{ray.get_runtime_context().get_node_id()[:6]}"
        target = detect().name if on == "node" else ""
        return {"name": name, "target": target, **build()}

    def search(self, job: Job, shape: Shape) -> Found:
        return fleet_search.search_shape(job, shape, self.describe(job.on)["name"])

    def sample(self, job: Job, shapes: Sequence[Shape]) -> dict[str, float]:
        return fleet_search.measure_sample(job, shapes)


@dataclass(frozen=True, eq=False)
class RayNode:
    """A node and its actor."""

    actor: Any
    group: Any
    name: str = ""


class RayNodes:
    """Ray's part of `fleet_search.Nodes`."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}

    def start(self, node: RayNode, what: str, *given: Any) -> Any:
        reference = getattr(node.actor, what).remote(*given)
        self._names[reference] = node.name
        return reference

    def first(self, names: Collection[Any]) -> Any:
        import ray

        (done, *_), _ = ray.wait(list(names), num_returns=1)
        return done

    def result(self, name: Any) -> Any:
        """Raises Lost where the node is gone, ValueError where the search there was refused."""
        import ray
        from ray.exceptions import ActorDiedError, ActorUnavailableError, RayTaskError

        node = self._names.pop(name)
        try:
            return ray.get(name)
        except (ActorDiedError, ActorUnavailableError) as error:
            raise Lost(f"node {node} is lost") from error
        except RayTaskError as error:
            raise ValueError(f"node {node}: {error.cause or error}") from error


def over_nodes(
    address: str,
    op: str,
    on: str,
    machine: Target,
    parts: Sequence[Part],
    store: Store,
    how: Mapping[str, Any],
    until: float | None,
) -> list[Line]:
    """A search of each part on the nodes of a Ray cluster; `until` as of `time.monotonic`. Rows are
    frozen before the first part, so that parts do not warm each other."""
    rows, lines = fleet_search.packed_rows(store, op), list[Line]()
    for part, left_s in timed(parts, until):
        job = Job(op, machine.name, on, part.modes, how, left_s, rows)
        lines += search(address, job, part.shapes, store, machine, note)
    return lines


def search(
    address: str,
    job: Job,
    shapes: Sequence[Shape],
    store: Store,
    target: Target,
    told: Callable[[str], None],
) -> list[Line]:
    """Search the shapes on every node of the cluster that is of this target; rows are stored as
    they come. Returns the lines of a table, in the order of the shapes.

    Raises ValueError where there is no such node, or none is left before all shapes are done.
    """
    import ray
    from ray.util.placement_group import remove_placement_group

    began, lines, by_node = monotonic(), dict[Shape, tuple[Line, ...]](), dict[str, int]()
    connect(address)
    nodes, owned = RayNodes(), _owned(_bundle(target, job.on), told)
    try:
        dealer = Dealer(nodes, _fitting(nodes, owned, job, told), told)
        if len(dealer.idle) > 1:
            sample = tuple(shapes[: fleet_search.SAMPLED])
            times = {node.name: found for node, found in dealer.ask_all("sample", job, sample)}
            for sentence in fleet_search.disagreement(times):
                told(sentence)
        if job.budget_s is not None:
            left_s = max(0.0, job.budget_s - (monotonic() - began))
            job = replace(job, budget_s=left_s * len(dealer.idle) / len(shapes))

        def take(found: Found) -> None:
            fleet_search.take_rows(store, found.rows)
            lines[found.shape] = found.lines
            by_node[found.node] = by_node.get(found.node, 0) + 1
            told(f"{len(lines)} of {len(shapes)} shapes, {found.shape} on node {found.node}")

        dealer.deal(ray.put(job), shapes, take)
    finally:
        for node in owned:
            remove_placement_group(node.group)
        ray.shutdown()
    counts = ", ".join(f"{count} on {name}" for name, count in sorted(by_node.items()))
    told(f"{len(lines)} shapes in {monotonic() - began:.0f} s: {counts}")
    return [line for shape in shapes for line in lines[shape]]


def connect(address: str) -> None:
    """Make this process a driver of the cluster; Ray by itself tries for minutes. Raises ValueError
    where the cluster does not answer."""
    import ray

    try:
        bounded(
            lambda: ray.init(address=address, log_to_driver=False),
            lambda: f"the Ray cluster at {address}",
            LIMIT_S,
        )
    except (OSError, RuntimeError) as error:
        raise ValueError(
            f"the Ray cluster at {address} does not answer ({str(error) or f'{LIMIT_S:g} s'}); see "
            f"`ray status --address {address}`, or start one with `ray start --head`"
        ) from error


def _bundle(target: Target, on: str) -> dict[str, float]:
    """What one node gives to a search: all GPUs; without GPUs, all cores of the largest node."""
    import ray

    if on == "node":
        return {"GPU": float(target.gpus), "CPU": 1.0}
    alive = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    return {"CPU": max((resources.get("CPU", 0.0) for resources in alive), default=0.0)}


def _owned(bundle: dict[str, float], told: Callable[[str], None]) -> list[RayNode]:
    """An actor on each node that has as much as the bundle and is free in time: another job may
    hold it. One bundle in strict pack lies on one node, and all of a node is in no second one."""
    import ray
    from ray.exceptions import GetTimeoutError
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    fits = [
        node
        for node in ray.nodes()
        if node["Alive"]
        and all(node["Resources"].get(name, 0.0) >= much for name, much in bundle.items())
    ]
    groups = [placement_group([bundle], strategy="STRICT_PACK") for _ in fits]
    until, owned = monotonic() + LIMIT_S, []
    ready = [group.ready() for group in groups]
    if ready and (held := ray.wait(ready, num_returns=len(ready), timeout=SAID_S)[1]):
        told(f"waits for {len(held)} nodes that other jobs hold; gives up after {LIMIT_S:g} s")
    for group, placed in zip(groups, ready, strict=True):
        try:
            ray.get(placed, timeout=max(0.1, until - monotonic()))
        except GetTimeoutError:
            remove_placement_group(group)
            continue
        strategy = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0)
        given: dict[str, Any] = {"num_cpus": bundle["CPU"], "num_gpus": bundle.get("GPU", 0.0)}
        actor = ray.remote(Worker).options(scheduling_strategy=strategy, **given).remote()
        owned.append(RayNode(actor, group))
    return owned


def _fitting(
    nodes: RayNodes, owned: Sequence[RayNode], job: Job, told: Callable[[str], None]
) -> list[RayNode]:
    """The nodes of the target with the first one's versions; others are named. Raises ValueError
    where none is left."""
    answers = Dealer(nodes, list(owned), told).ask_all("describe", job.on)
    fitting, versions = list[RayNode](), None
    for node, said in answers:
        name, target = said.pop("name"), said.pop("target")
        if target not in ("", job.target):
            told(f"node {name} is {target}, and shapes are searched for {job.target}: left out")
            continue
        versions = versions or said
        if said != versions:
            told(f"node {name} has {said}, and the others have {versions}: left out")
            continue
        fitting.append(replace(node, name=name))
    if not fitting:
        raise ValueError(
            f"no free node of the Ray cluster is {job.target}; `ray status` shows what it has"
        )
    return fitting
