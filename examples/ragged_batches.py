"""Decode steps of a captured engine whose batches change: the host picks one of a few graphs by the
lengths that it has anyway. The base install, without torch.

python examples/ragged_batches.py
"""

from __future__ import annotations

import tftune

# Measured on one H200. Another machine: `tftune facts`, then `tftune export`.
selector = tftune.load(target="h200x1")
shape = tftune.FlashDecode(
    24, 64, 8, 128, kv_len=12016, world=1, dtype="bf16", output="heads", page_size=16
)

# Before serving: capture one graph of tftune.ops.flash_decode for each config, four at most.
graphs = {config: f"graph {number}" for number, config in enumerate(selector.choices(shape))}

steps = {
    "all full": [12016] * 24,
    "one long": [12016] + [750] * 23,
    "all short": [300] * 24,
    "half empty": [6000] * 12 + [0] * 12,
}
chosen = set()
for name, lengths in steps.items():  # of this rank; each rank picks for itself
    facts = tftune.Facts(total=sum(lengths), longest=max(lengths), empty=lengths.count(0))
    selection = selector.select(shape, facts=facts)
    chosen.add(graphs[selection.config])  # replay this one
    print(f"{name}: {graphs[selection.config]}, kv_splits={selection.config.kv_splits}")

if not 1 < len(chosen) <= len(graphs) <= 4:
    raise ValueError(f"unexpected: {chosen} of {graphs}")
print(f"checked {len(steps)} batches: {len(chosen)} of {len(graphs)} graphs are replayed")
