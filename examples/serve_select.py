"""A process that only selects, such as a router or a planner: the base install, without torch.

python examples/serve_select.py
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace

import tftune

logging.basicConfig(format="%(levelname)s: %(message)s")  # one warning for each cause of a fallback

# Another machine than this one is named; a server on the node itself calls tftune.load().
selector = tftune.load(target="h200x8")
layer = tftune.AllGatherGemm(m=1, n=3584, k=8192, world=8)

for tokens in (1, 64, 777, 4096):
    selection = selector.select(replace(layer, m=tokens))
    answer = {"m": tokens, "variant": selection.config.variant, "source": selection.source}
    print(json.dumps(answer | {"expected_us": selection.expected_us, "bsp_us": selection.bsp_us}))

# No row is of fp16 with weights [N, K] gathered along tokens: BSP answers, and the log says so.
unmeasured = selector.select(tftune.AllGatherGemm(4096, 3584, 8192, 8, "fp16", "m", "nk"))
again = [selector.select(replace(layer, m=tokens)) for tokens in (777, 777)]
foreign = {name.partition(".")[0] for name in sys.modules} - {*sys.stdlib_module_names, "tftune"}
if unmeasured.source != "fallback" or again[0] is not again[1] or "torch" in foreign:
    raise ValueError(f"unexpected: {unmeasured}, {foreign}")
print("checked 5 selections: a known shape is looked up, an unmeasured one is BSP, no torch loaded")
