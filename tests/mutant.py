"""Mutants: a kernel rebuilt from its sources after a text was replaced, to show that a test refuses
the change."""

from __future__ import annotations

import importlib.util
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from source_text import replaced_once

from tftune import kernels

Change = tuple[str, str, str]
"""A module of device code, `symmetric` or `all_gather_gemm.push`, or `module:function`, a text that
occurs in it exactly once, and what stands there instead."""


HOME = {
    "symmetric": "comm.symmetric",
    "copy_engine": "comm.copy_engine",
    "ll_protocol": "comm.ll_protocol",
    "lamport": "comm.lamport",
    "shards": "device.shards",
    "gemm": "device.gemm",
    "attention": "device.attention",
    "gemm_reduce": "device.gemm_reduce",
    "pairs": "device.pairs",
    "reduce": "device.reduce",
    "merge": "device.merge",
    "in_place": "device.in_place",
    "dies": "device.dies",
}
"""Where the shared modules of device code live below tftune.kernels; variants live in
`variants`."""
SHARED = {
    "all_gather_gemm": ("symmetric", "copy_engine", "shards", "gemm", "in_place"),
    "flash_decode": (
        "symmetric",
        "ll_protocol",
        "shards",
        "gemm",
        "attention",
        "flash_decode.launches",
        "flash_decode.fused",
        "flash_decode.persistent",
    ),
    "gemm_reduce_scatter": (
        "symmetric",
        "copy_engine",
        "ll_protocol",
        "gemm",
        "reduce",
        "gemm_reduce",
    ),
    "gemm_all_reduce": (
        "symmetric",
        "ll_protocol",
        "gemm",
        "pairs",
        "reduce",
        "gemm_reduce",
    ),
    "all_reduce": ("symmetric", "ll_protocol", "lamport", "gemm", "pairs", "reduce", "in_place"),
    "merge_attention": ("symmetric", "ll_protocol", "gemm", "pairs", "attention", "merge"),
    "flash_prefill": ("symmetric", "shards", "gemm", "dies"),
}
"""Modules of device code that the variants of an operation share, each before those that use it."""


def mutant(
    folder: Path, variant: str, changes: tuple[Change, ...], op: str = "all_gather_gemm"
) -> Any:
    """What a variant's rebuilt module defines under its name."""
    return getattr(rebuilt(folder, variant, changes, op), variant)


@contextmanager
def in_place(
    folder: Path, variant: str, changes: tuple[Change, ...], op: str = "all_gather_gemm"
) -> Iterator[None]:
    """Meanwhile all that a variant's own module defines and imports, its host code too, is the
    mutant's."""
    own = vars(import_module(f"tftune.kernels.{op}.variants.{variant}"))
    kept = dict(own)
    own.update(
        {
            name: value
            for name, value in vars(rebuilt(folder, variant, changes, op)).items()
            if not name.startswith("__")
        }
    )
    try:
        yield
    finally:
        own.update(kept)


def rebuilt(
    folder: Path, variant: str, changes: tuple[Change, ...], op: str = "all_gather_gemm"
) -> ModuleType:
    """The module of a variant, and the device code that it shares with others, from sources in a
    new folder."""
    home, here = Path(kernels.__path__[0]), Path(tempfile.mkdtemp(dir=folder))
    names = (*SHARED[op], f"{op}.{variant}")
    assert {place.partition(":")[0] for place, _, _ in changes} <= set(names)
    with mock.patch.dict(
        sys.modules
    ):  # so that the rebuilt modules find each other, and nobody else finds them
        for name in names:
            below = HOME.get(name) or name.replace(".", ".variants.")
            text = (home / below.replace(".", "/")).with_suffix(".py").read_text()
            for place, old, new in changes:
                if place.partition(":")[0] == name:
                    text = _changed(text, place, old, new)
            path = here / f"{name}.py"
            path.write_text(text)
            spec = importlib.util.spec_from_file_location(f"tftune.kernels.{below}", path)
            assert spec is not None and spec.loader is not None
            module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
    return module


def _changed(text: str, place: str, old: str, new: str) -> str:
    """The text of a module with one change made."""
    function = place.partition(":")[2]
    found = (
        re.search(rf"^def {function}\(.*?(?=\n\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
        if function
        else None
    )
    assert found or not function, f"no function {place}"
    part = found[0] if found else text
    return text.replace(part, replaced_once(part, old, new, place))
