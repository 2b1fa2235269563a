"""How many tokens serving engines give to one call. Standard library only."""

from __future__ import annotations

CAPTURED = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Batches of decoding. vLLM and SGLang capture graphs of these and of others between them, whose
answers are interpolated."""
CHUNKS = (1024, 2048, 4096, 8192)
"""One step of prefill."""
TOKENS = CAPTURED + CHUNKS
