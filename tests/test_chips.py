"""Chips are found by exact names; capabilities replace names; what a driver says travels; rates may
be unknown."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace
from typing import Any

import fake_gpu
import pytest
from fake_gpu import L40S, MB, Gpu, ampere, cdna3, cdna4, hopper, torch_with

from tftune.db import target
from tftune.db.target import Target, target_of
from tftune.kernels.core import chips, devices
from tftune.kernels.core.architecture import capabilities
from tftune.kernels.core.chip import ALONE, LINK_NAMES, NAMES, RATE_NAMES, Chip, constants
from tftune.kernels.core.chips import CHIPS, H200, MI300X
from tftune.kernels.core.registry import OPS, operation

FOUND = [
    (ampere("NVIDIA A100-SXM4-80GB"), "a100x1"),
    (ampere("A100-SXM4-80GB"), "a100x1"),  # drivers before 470 left the maker out
    (ampere("NVIDIA A100-SXM4-40GB"), "a100-40gbx1"),
    (ampere("NVIDIA A100 80GB PCIe"), "a100-pciex1"),
    (ampere("NVIDIA A100-PCIE-40GB"), "a100-pcie-40gbx1"),
    (hopper("NVIDIA H100 80GB HBM3"), "h100x1"),
    (hopper("NVIDIA H100 PCIe", 114), "h100-pciex1"),
    (hopper("NVIDIA H100 NVL"), "h100-nvlx1"),
    (fake_gpu.H200, "h200x1"),
    (hopper("NVIDIA H200 NVL", cache=60 * MB), "h200-nvlx1"),
    (hopper("NVIDIA GH200 480GB", cache=60 * MB), "gh200x1"),
    (hopper("NVIDIA GH200 120GB", cache=60 * MB), "gh200x1"),
    (hopper("NVIDIA GH200 144G HBM3e", cache=60 * MB), "gh200-144gbx1"),
    (Gpu("NVIDIA B200", "sm_100", 148, 228 * 1024, 126 * MB), "b200x1"),
    (cdna3("AMD Instinct MI300X"), "mi300x1"),
    (cdna3("AMD Instinct MI300X VF"), "mi300x1"),
    (cdna3("AMD Instinct MI325X"), "mi325x1"),
    (cdna4("AMD Instinct MI350X"), "mi350x1"),
    (cdna4("AMD Instinct MI355X VF"), "mi355x1"),
    # Near misses: other GPUs, parts of GPUs, and what a substring would take for another.
    (hopper("NVIDIA H20", 78), "nvidia-h20x1"),
    (hopper("NVIDIA H800"), "nvidia-h800x1"),
    (hopper("NVIDIA H200 SomethingNew"), "nvidia-h200-somethingnewx1"),
    (Gpu("NVIDIA GB200", "sm_100", 152, 228 * 1024, 126 * MB), "nvidia-gb200x1"),
    (Gpu("NVIDIA B300 SXM6 AC", "sm_103", 148, 228 * 1024, 126 * MB), "nvidia-b300-sxm6-acx1"),
    (ampere("NVIDIA A100 80GB PCIe MIG 1g.10gb", 14), "nvidia-a100-80gb-pcie-mig-1g-10gbx1"),
    (cdna3("AMD Instinct MI325X", 38), "amd-instinct-mi325x-38-unitsx1"),  # one partition of eight
    (cdna3("AMD Instinct MI300X HF", 152), "amd-instinct-mi300x-hfx1"),
    (cdna3("AMD Instinct MI300A", 228), "amd-instinct-mi300ax1"),
    (replace(fake_gpu.H200, arch="sm_100"), "nvidia-h200-132-unitsx1"),
    (L40S, "nvidia-l40sx1"),
    (Gpu("Tesla V100-SXM2-16GB", "sm_70", 80, 96 * 1024, 6 * MB), "tesla-v100-sxm2-16gbx1"),
    (Gpu("AMD Radeon RX 7900 XTX", "gfx1100", 96, 64 * 1024, 6 * MB), "amd-radeon-rx-7900-xtxx1"),
]


@pytest.mark.parametrize(("gpu", "name"), FOUND, ids=[gpu.name for gpu, _ in FOUND])
def test_a_gpu_is_found_by_its_exact_name_architecture_and_units(
    gpu: Gpu,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_with(gpu))
    found = target.detect()
    assert found.name == name and found == Target.parse(name)
    assert (found.chip.arch, found.chip.units) == (gpu.arch, gpu.units)
    assert gpu.name in found.chip.gpu_names
    assert found.chip.cache_bytes >= gpu.cache
    # What the table says of a known GPU is what its device says.
    assert found.chip.shared_bytes == devices.Seen.of(torch_with(gpu), 0).shared_bytes
    assert found.chip.wave_size == gpu.properties.warp_size


def test_no_two_chips_share_a_name() -> None:
    names = [name for chip in CHIPS.values() for name in chip.gpu_names]
    assert len(set(names)) == len(names) and {chip.name for chip in CHIPS.values()} == CHIPS.keys()
    targets = [Target.of(chip, 8).name for chip in CHIPS.values()]
    assert len(set(targets)) == len(targets)


def test_names_that_end_in_x_stay_apart() -> None:
    """The x of MI300X is written once, but two other GPUs may differ in that letter alone."""
    xt = Gpu("AMD Radeon RX 7900 XT", "gfx1100", 84, 64 * 1024, 6 * MB)
    xtx = replace(xt, name="AMD Radeon RX 7900 XTX", units=96)
    one, other = (Target.of(devices.Seen.of(torch_with(gpu), 0).as_chip(), 2) for gpu in (xt, xtx))
    assert (one.name, other.name) == ("amd-radeon-rx-7900-xtx2", "amd-radeon-rx-7900-xtxx2")
    assert Target.parse(one.name) == one and Target.parse(other.name) == other


def test_two_gpus_without_a_marketing_name_are_told_apart_by_their_memory() -> None:
    """MI300X and MI325X have one architecture and as many units."""
    unnamed = cdna3("AMD Radeon Graphics")
    names = []
    for memory in (206_141_652_992, 274_861_129_728):  # 192 and 256 GB, less what firmware keeps
        gpus = torch_with(*[replace(unnamed, memory=memory)] * 8)
        names.append(Target.of(devices.Seen.of(gpus, 0).as_chip(), 8).name)
    assert names == ["amd-radeon-graphics-192gbx8", "amd-radeon-graphics-256gbx8"]
    mixed = [str(devices.Seen.of(torch_with(replace(unnamed, memory=m << 30)), 0)) for m in (1, 2)]
    assert mixed[0] != mixed[1]


def test_a_known_gpu_with_a_larger_cache_is_rotated_past_it() -> None:
    """Times of warm caches would be too good: the device's word counts where it is the larger."""
    found = devices.Seen.of(torch_with(replace(fake_gpu.H200, cache=80 * MB)), 0).as_chip()
    assert found.cache_bytes == 80 * MB and replace(found, cache_bytes=H200.cache_bytes) == H200


def test_an_amd_driver_tells_the_cache_of_one_die() -> None:
    unknown = devices.Seen.of(torch_with(cdna3("AMD Instinct MI300A", 228)), 0).as_chip()
    assert (unknown.cache_bytes, unknown.dies) == (256 * MB, 6)


def test_older_torch_tells_less() -> None:
    torch = torch_with(L40S)
    properties = L40S.properties
    del properties.shared_memory_per_block_optin, properties.L2_cache_size
    torch.cuda.get_device_properties = lambda index: properties
    found = devices.Seen.of(torch, 0)
    assert (found.shared_bytes, found.cache_bytes) == (99 * 1024, 126 * MB)
    assert max(c.cache_bytes for c in CHIPS.values() if c.can.backend == "cuda") == 126 * MB


@pytest.mark.parametrize(
    ("arch", "can"),
    [
        ("sm_80", {"wave_size": 32, "descriptors": False, "warp_group_products": False}),
        ("sm_89", {"descriptors": False, "registered_buffers": True, "coherent_stores": True}),
        ("sm_90", {"descriptors": True, "warp_group_products": True, "backend": "cuda"}),
        ("sm_100", {"descriptors": True, "warp_group_products": True, "wave_size": 32}),
        ("sm_120", {"descriptors": True, "warp_group_products": False}),
        ("gfx90a", {"wave_size": 64, "unified_registers": True, "die_units": 0}),
        ("gfx942", {"wave_size": 64, "descriptors": False, "unified_registers": True}),
        ("gfx950", {"stage_in_registers": True, "registered_buffers": False, "backend": "hip"}),
        ("gfx1100", {"wave_size": 32, "unified_registers": False, "coherent_stores": False}),
    ],
)
def test_capabilities_come_from_the_architecture(arch: str, can: dict[str, Any]) -> None:
    found = capabilities(arch)
    assert {name: getattr(found, name) for name in can} == can


@pytest.mark.parametrize("arch", ["", "sm90", "sm_9", "gfx", "h200", "sm_90a", "../sm_90"])
def test_other_text_is_no_architecture(arch: str) -> None:
    with pytest.raises(ValueError, match="is no architecture"):
        capabilities(arch)


def test_every_need_of_a_knob_is_a_capability() -> None:
    variants = [variant for op in OPS for variant in operation(op).space.variants.values()]
    needs = {choice.needs for choices in variants for choice in choices if choice.needs}
    assert needs == {"descriptors", "several_dies", "occupancy_hint", "unified_registers"}
    assert {need for need in needs if H200.has(need)} == {"descriptors"}
    assert {need for need in needs if MI300X.has(need)} == needs - {"descriptors"}
    with pytest.raises(AttributeError):
        H200.has("telepathy")


def test_knobs_follow_capabilities_and_not_names() -> None:
    """B200 has tensor descriptors and L40S has none; one die of an MI300X has no neighbours."""
    b200, l40s = CHIPS["b200"], devices.Seen.of(torch_with(L40S), 0).as_chip()
    die = devices.Seen.of(torch_with(cdna3("AMD Instinct MI300X", 38)), 0).as_chip()
    choices = {c.name: c for c in operation("all_gather_gemm").space.variants["push"]}
    left = {
        chip.name: [
            len(choices[name].on(chip).values) for name in ("loads", "xcds", "waves_per_eu")
        ]
        for chip in (b200, l40s, die, MI300X)
    }
    assert list(left.values()) == [[2, 1, 1], [1, 1, 1], [1, 1, 2], [1, 2, 2]]


def test_a_description_travels_as_json() -> None:
    chip = devices.Seen.of(torch_with(L40S), 0).as_chip()
    assert Chip.described(json.loads(json.dumps(chip.description()))) == chip
    assert pickle.loads(pickle.dumps(chip)) == chip
    assert chip.gpu_names == ("NVIDIA L40S",) and not chip.switched


def description(**changes: Any) -> dict[str, Any]:
    return devices.Seen.of(torch_with(L40S), 0).as_chip().description() | changes


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"units": "142"}, "has units='142', where int must be"),
        ({"units": 0}, "has units=0"),
        ({"units": True}, "has units=True"),
        ({"cache_bytes": 2**64}, "has cache_bytes=18446744073709551616"),
        ({"gpu_name": None}, "has gpu_name=None, where str must be"),
        ({"name": "../../evil"}, "is no name of a chip"),
        ({"name": "Nvidia L40S"}, "is no name of a chip"),
        ({"arch": "sm_x"}, "is no architecture"),
        ({"wave_size": 33}, "has waves of 33; there are 32 and 64"),
        ({"colour": 1}, "has no field colour"),
    ],
)
def test_what_is_no_description_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Chip.described(description(**changes))
    with pytest.raises(ValueError, match="must describe a GPU by name, gpu_name"):
        Chip.described("h200")  # type: ignore[arg-type]


def test_descriptions_do_not_change_known_chips_or_mix_two_gpus() -> None:
    with pytest.raises(ValueError, match="h200 is known, and rows or files must not describe it"):
        chips.learn(description(name="h200"))
    first = chips.learn(description())
    assert chips.learn(description()) is first is chips.chip_named("nvidia-l40s")
    with pytest.raises(ValueError, match="sm_89 with 128 units here and sm_89 with 142 units else"):
        chips.learn(description(units=128))
    newer = chips.learn(description(cache_bytes=64 * MB))  # a driver that says another size
    assert Target.parse("nvidia-l40sx4").chip == newer != first


def test_a_document_describes_the_machine_that_it_names() -> None:
    found = target_of({"target": "nvidia-l40sx2", "chip": description()})
    assert (found.name, found.chip.units) == ("nvidia-l40sx2", 142)
    assert target_of({"target": "h200x8", "chip": "h200"}).chip == H200
    with pytest.raises(ValueError, match="it describes nvidia-l40s, and is for h200x8"):
        target_of({"target": "h200x8", "chip": description()})


def test_what_the_model_needs_is_known_or_named() -> None:
    for chip in CHIPS.values():
        full = set(dict(chip.sourced)) | set(dict(chip.assumed)) | (NAMES_IDLE[chip.dies > 1])
        full |= set() if chip.can.descriptors else {"descriptor_us"}
        assert set(chip.missing(8)) == set(NAMES) - full, chip.name
        assert bool(chip.why_no_model(8)) == bool(chip.missing(8))
    known = [chip.name for chip in CHIPS.values() if not chip.missing(8)]
    assert known == ["mi300x", "h200", "h100"]


NAMES_IDLE = {True: set[str](), False: {"fabric_bytes_per_us"}}


def test_unknown_rates_are_an_error_with_the_next_command() -> None:
    nvl = CHIPS["h100-nvl"]
    for read in (lambda: nvl.rates, lambda: nvl.links, lambda: nvl.links_of(2)):
        with pytest.raises(
            ValueError, match=r"off for h100-nvl, since \d+ .*tftune calibrate.*--chip"
        ):
            read()
    with pytest.raises(ValueError, match="hbm_bytes_per_us of h100-nvl is not known"):
        nvl.known("hbm_bytes_per_us")
    assert nvl.links_of(1) is ALONE and H200.links_of(1) is H200.links


def test_what_is_assumed_is_marked_and_counted() -> None:
    assert MI300X.assumptions == "13 of the 26 constants of mi300x are assumed"
    assert H200.assumptions == "1 of the 26 constants of h200 are assumed"
    nvl = CHIPS["h100-nvl"]
    assert dict(nvl.assumed)["load_us"] == H200.rates.load_us  # the same SM
    measured = {name: 1.0 for name in NAMES if name not in dict(nvl.assumed)}
    whole = nvl.with_constants(measured | {"load_us": 2.0})
    assert not whole.missing(8) and whole.rates.load_us == 2.0
    assert whole.assumptions == "6 of the 26 constants of h100-nvl are assumed"
    with pytest.raises(TypeError, match="speed is no constant of a chip; the constants are hbm_"):
        constants(speed=1.0)


def test_what_a_calibration_measures_is_never_taken_from_a_relative() -> None:
    """So that a model of a GPU nobody measured stays off, however near its relatives are."""
    from tftune.tuner.calibration.assumptions import RULES

    relatives = [chip for chip in CHIPS.values() if chip not in (H200, MI300X, CHIPS["h100"])]
    assert len(relatives) == 13
    assert set(dict(CHIPS["h100"].assumed)) <= RULES.keys()
    for chip in relatives:
        assert set(dict(chip.assumed)) <= RULES.keys() and not chip.sourced, chip.name
    assert len(RATE_NAMES) + len(LINK_NAMES) == len(set(NAMES)) == 26
