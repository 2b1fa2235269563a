"""What a compiled kernel needs of a chip: one row for each distinct kernel, kept as text. Standard
library only."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tftune.db.files import read_file, replace_file
from tftune.kernels.core.shape import Shape
from tftune.kernels.core.space import Config


@dataclass(frozen=True)
class Resources:
    """What one AMD kernel uses, as its assembly states them."""

    vgprs: int
    """Vector registers of a thread, accumulators included; 512 at most."""
    sgprs: int
    shared_bytes: int
    """LDS of one program."""
    spilled_bytes: int
    """Scratch memory of a thread: registers that did not fit."""
    waves_per_simd: int
    """Occupancy, by registers."""
    mfmas: int
    """Matrix instructions in the code."""
    remote_bytes: int
    """What one thread moves at once to or from peers: the widest global store (push, staged) or
    load (pull) of the code."""

    def why_refused(self, shared_bytes: int) -> str | None:
        """The sentence for which a config with such a kernel is refused on a chip with so much LDS,
        or None."""
        if self.spilled_bytes:
            return (
                f"it spills: each thread keeps {self.spilled_bytes} bytes of registers in scratch "
                "memory"
            )
        if self.shared_bytes > shared_bytes:
            return f"it needs {self.shared_bytes} bytes of LDS and there are {shared_bytes}"
        return None


@dataclass(frozen=True)
class Audit:
    """One compiled kernel: `failure` where the compiler gave none."""

    op: str
    shape: str
    config: Config
    """Without the knobs that stand at their default."""
    arch: str
    triton: str
    kernel: str
    """The revision of its variant."""
    resources: Resources | None
    failure: str = ""

    @property
    def key(self) -> tuple[Any, ...]:
        """What need not be compiled twice."""
        return (self.op, self.shape, self.config, self.arch, self.triton, self.kernel)

    @property
    def of_any_compiler(self) -> tuple[Any, ...]:
        """The same without Triton's version."""
        return (self.op, self.shape, self.config, self.arch, self.kernel)

    def to_json(self) -> str:
        row = asdict(self) | {
            "config": self.config.to_dict(),
            "resources": self.resources and list(asdict(self.resources).values()),
        }
        told = {name: value for name, value in row.items() if value not in ("", None)}
        return json.dumps(told, separators=(",", ":"))

    @classmethod
    def from_json(cls, line: str) -> Audit:
        """Raises KeyError, TypeError or ValueError where it is no such row."""
        row = json.loads(line)
        resources = row.pop("resources", None)
        row["config"] = Config.from_dict(row["config"])
        return cls(**row, resources=Resources(*resources) if resources else None)


def read_audits(path: Path) -> list[Audit]:
    """The rows of a file, none where there is no file; raises ValueError with the line that is no
    row. A last line that was cut off by a kill is left out."""
    if not path.exists():
        return []
    rows = []
    try:
        text = read_file(path).decode()
    except OSError as error:
        raise ValueError(
            f"cannot read {path}: {error.strerror}; name a file that `tftune audit` wrote"
        ) from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is no rows of an audit: it is no text ({error}); name a file that `tftune "
            "audit` wrote"
        ) from error
    for number, line in enumerate(text.splitlines(), 1):
        try:
            rows.append(Audit.from_json(line))
        except (KeyError, TypeError, ValueError) as error:
            if number == len(text.splitlines()) and not text.endswith("\n"):
                break
            raise ValueError(
                f"line {number} of {path} is no row of an audit ({error}); delete it, and the "
                "same command goes on"
            ) from error
    return rows


def write_audits(path: Path, audits: Iterable[Audit]) -> None:
    """Replace a file with these rows, sorted, whole or not at all."""
    text = "".join(f"{line}\n" for line in sorted(audit.to_json() for audit in audits))
    replace_file(path, text, otherwise="name another place with --out", make_folder=True)


def slim(config: Config, complete: Config, defaults: Config) -> Config:
    """A config without the knobs that stand at their default."""
    return Config(
        config.variant, **{name: value for name, value in complete.knobs if value != defaults[name]}
    )


def family(shape: Shape) -> str:
    """A shape without its tokens: what one kernel serves."""
    return ",".join(part for part in str(shape).split(",") if not part.startswith("m="))
