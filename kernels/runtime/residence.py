"""Whether all programs of a cooperative launch fit a GPU at once, by what the compiler made of
them."""

from __future__ import annotations

from typing import Any

from tftune.kernels.comm.workspace import Workspace

REGISTERS = 65_536
"""Registers of one SM, for all its threads (CUDA programming guide, compute capabilities 7.0 to
10.0)."""
SIMDS, LANE_REGISTERS, LDS_BYTES = 4, 512, 65_536
"""What one CU has, and a lane of each of its SIMDs, vector and accumulation registers together, as
audits count them (db/audit.py)."""


def check_residence(compiled: Any, programs: int, warps: int, workspace: Workspace) -> None:
    """Raise OutOfResources where a chip cannot hold all programs at once: the launch would fail,
    and end the world of ranks with it."""
    import torch
    from triton.runtime.errors import OutOfResources

    per_unit = -(-programs // workspace.units)
    if workspace.arch == "hip":  # whole waves on each SIMD of a CU, and registers of one lane
        waves = -(-per_unit * warps // SIMDS)
        registers, most = -(-compiled.n_regs // 8) * 8 * waves, LANE_REGISTERS
        shared, most_shared = compiled.metadata.shared * per_unit, LDS_BYTES
    else:
        registers, most = -(-compiled.n_regs // 8) * 8 * warps * 32 * per_unit, REGISTERS
        shared = (compiled.metadata.shared + 1024) * per_unit
        properties = torch.cuda.get_device_properties(workspace.device)
        most_shared = properties.shared_memory_per_multiprocessor
    if registers > most:
        raise OutOfResources(registers, most, f"registers of {per_unit} programs")
    if shared > most_shared:
        raise OutOfResources(shared, most_shared, f"shared memory of {per_unit} programs")
