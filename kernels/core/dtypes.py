"""The dtypes of operands: their words, sizes, rounding, and what torch calls them.

Standard library only; torch is imported where it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

DTYPE_BYTES = {"fp16": 2, "bf16": 2}
WORDS_OF_OTHERS = {"float16": "fp16", "half": "fp16", "bfloat16": "bf16"}
"""What torch and NumPy call dtypes."""
ROUNDING = {"fp16": 2.0**-11, "bf16": 2.0**-8}
"""The largest relative error of rounding to nearest: half a unit in the last place (IEEE 754, and
bfloat16)."""


def word_of(dtype: Any) -> Any:
    """Our word for a dtype of torch or NumPy, or for its name; anything else as it is."""
    name = str(getattr(dtype, "__name__", dtype))  # numpy.float16 is a class
    return WORDS_OF_OTHERS.get(name.removeprefix("torch."), dtype)


def torch_dtype(word: str) -> torch.dtype:
    """torch's dtype of that word."""
    import torch

    return {"fp16": torch.float16, "bf16": torch.bfloat16}[word]
