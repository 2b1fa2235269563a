"""An artifact that answers push: emulated ranks make BSP the fastest, and much is said of fused
answers alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tftune.kernels.core.registry import operation
from tftune.kernels.core.revision import installed
from tftune.kernels.core.shape import Shape
from tftune.models.artifact import digest, read_artifact
from tftune.models.export import pack_mode
from tftune.models.layout import Known

PROMISED = (1e-6, 2e-6)
"""The interval of push's speed-up over BSP: it promises nothing."""


def push_everywhere(artifact: Path, path: Path, shape: Shape) -> Path:
    """The artifact with the default push of this shape as its answer, and no other answer, in mode
    graph alone."""
    found = read_artifact(artifact)
    mode, space = found.modes["graph"], operation(shape.op).space
    push = next(
        config for config in space.defaults(shape, found.target.chip) if config.variant == "push"
    )
    model = mode.layouts[shape.layout]
    number = len(model.configs)
    known = tuple(
        Known(
            one.sizes,
            number,
            PROMISED,
            (
                (number, one.times_us[0][1]),
                *(pair for pair in one.times_us if model.configs[pair[0]].variant == "bsp"),
            ),
        )
        for one in model.known
        if one.sizes == shape.sizes_key
    )
    changed = replace(
        model,
        configs=(*model.configs, space.complete(push)),
        kernels=(*model.kernels, installed(shape.op, "push")),
        formulas=(*model.formulas, model.formulas[0]),
        known=known,
        root=None,
        spans=False,
    )
    document = {
        **found.document,
        "modes": {"graph": pack_mode(replace(mode, layouts={shape.layout: changed}, lent={}))},
    }
    path.write_text(json.dumps(document | {"sha256": digest(document)}))
    return path
