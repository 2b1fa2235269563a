"""What BSP is on a machine: its library, NVLink multicast, and the variables of its algorithms."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import fake_gpu
import pytest
from fake_gpu import torch_with

import tftune
from tftune import doctor
from tftune.db import collectives
from tftune.db.target import Machine
from tftune.models.artifact import SHIPPED, parse_artifact
from tftune.models.compatibility import warnings
from tftune.models.selector import Selector

OP = "all_gather_gemm"
SHAPE = tftune.AllGatherGemm(m=64, n=3584, k=8192, world=8)


class Driver:
    """A libcuda that answers one question."""

    def __init__(self, supported: int, status: int = 0) -> None:
        self.supported, self.status, self.asked = supported, status, list[str]()

    def cuInit(self, flags: int) -> int:
        self.asked.append("cuInit")
        return self.status

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:
        self.asked.append("cuDeviceGet")
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        assert attribute == 132
        value._obj.value = self.supported
        return 0


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def installed(*arguments: int) -> None:
        monkeypatch.setattr(ctypes, "CDLL", lambda name: Driver(*arguments))

    return installed


def nvidia(version: Any = (2, 28, 3)) -> Any:
    torch = torch_with(fake_gpu.H200)
    torch.cuda.nccl = SimpleNamespace(version=lambda: version)
    return torch


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        ((1,), {}, "on"),
        ((1,), {"NCCL_NVLS_ENABLE": "2"}, "on"),
        ((1,), {"NCCL_NVLS_ENABLE": "0"}, "off"),
        ((0,), {}, "off"),
        ((1, 100), {}, "off"),
    ],
)
def test_multicast_is_on_where_the_gpu_and_the_variables_allow_it(
    driver: Callable[..., None], arguments: tuple[int, ...], environment: Any, said: str
) -> None:
    driver(*arguments)
    assert collectives.identity(nvidia(), environment)["multicast"] == said


def test_a_machine_without_the_driver_or_of_amd_is_without_multicast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", absent)
    assert collectives.identity(nvidia(), {}) == {"nccl": "2.28.3", "multicast": "off"}
    amd = torch_with(fake_gpu.MI300X)
    amd.cuda.nccl = SimpleNamespace(version=lambda: (2, 27, 7))
    found = collectives.identity(amd, {"RCCL_MSCCL_ENABLE": "1", "NCCL_DEBUG": "WARN"})
    variables = "RCCL_MSCCL_ENABLE=1"
    assert found == {"rccl": "2.27.7", "multicast": "off", "collective_variables": variables}


DOCUMENT: dict[str, Any] = json.loads((SHIPPED / f"{OP}__h200x8.json").read_text())


def machine(**build: str) -> Machine:
    return Machine("h200x8", "sm_90", DOCUMENT["build"] | build)


def test_times_without_multicast_wait_where_it_is_on_to_be_confirmed_in_place() -> None:
    artifact = parse_artifact(DOCUMENT)
    selector = Selector(artifact, machine=machine(multicast="on"))
    found = selector.select(SHAPE)
    assert found.config.variant == "bsp"
    assert "its BSP was timed without NVLink multicast, which NCCL may use here" in found.reason
    assert "confirm it in place with `tftune.warm_up`, run `tftune verify all" in found.reason
    usual = Selector(artifact, machine=machine(multicast="off"))
    assert usual.select(SHAPE).config.variant == "push"
    assert selector.shortlist(SHAPE) == usual.shortlist(SHAPE) != ()
    verified = {"at": "2026-11-25", "leaves": 3, "build": DOCUMENT["build"] | {"multicast": "on"}}
    again = parse_artifact(DOCUMENT | {"verified": verified})
    assert Selector(again, machine=machine(multicast="on")).select(SHAPE).config.variant == "push"
    (told,) = warnings(again.document, machine(multicast="off"))
    assert "multicast off (timed with on)" in told


def test_one_gpu_exchanges_nothing_and_does_not_ask() -> None:
    document = json.loads((SHIPPED / "flash_prefill__h200x1.json").read_text())
    here = Machine("h200x1", "sm_90", document["build"] | {"multicast": "on"})
    assert Selector(parse_artifact(document), machine=here).disabled() == {}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nccl": "2.28.9"}, []),
        ({"nccl": "2.29.1"}, ["nccl 2.29.1 (timed with 2.28.3)"]),
        ({"collective_variables": "NCCL_ALGO=Ring"}, ["NCCL_ALGO=Ring (timed with none)"]),
        ({"collective_variables": "NCCL_NVLS_ENABLE=0"}, []),
    ],
)
def test_another_library_or_algorithm_is_served_with_a_warning(
    change: dict[str, str], told: list[str]
) -> None:
    build = DOCUMENT["build"] | {"nccl": "2.28.3", "multicast": "off"}
    document, here = DOCUMENT | {"build": build}, Machine("h200x8", "sm_90", build | change)
    said = " ".join(warnings(document, here))
    assert bool(said) == bool(told) and all(one in said for one in told)
    older = DOCUMENT["build"].keys() - {"nccl", "collective_variables", "multicast"}
    document = DOCUMENT | {"build": {name: DOCUMENT["build"][name] for name in older}}
    assert list(warnings(document, machine(nccl="2.29", collective_variables="NCCL_ALGO=x"))) == []


def test_doctor_says_what_bsp_is(monkeypatch: pytest.MonkeyPatch) -> None:
    build = {"nccl": "2.28.3", "multicast": "on", "collective_variables": "NCCL_ALGO=Ring"}
    monkeypatch.setattr("tftune.db.target.build", lambda: build)
    line = "collectives: nccl 2.28.3, NVLink multicast on, NCCL_ALGO=Ring"
    assert line in doctor.sentences(doctor.examine())
