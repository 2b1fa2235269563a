"""Which folder Triton keeps compiled kernels in: one for all ranks. Standard library only; imported
with `compile_pass` and with every kernel, before torch compiles anything that has the pass.

When torch's compiler makes its first kernel it sets TRITON_CACHE_DIR to a folder of this GPU alone,
and vLLM sets it to one of a rank. There no rank would find what another one compiled.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

VARIABLE = "TRITON_CACHE_DIR"


def _of_user() -> str | None:
    """Triton's cache as the user named it; None for Triton's own choice."""
    folder = os.environ.get(VARIABLE)
    if folder is None or "torch._inductor" not in sys.modules:
        return folder
    try:
        from torch._inductor.runtime.cache_dir_utils import default_cache_dir
    except ImportError:
        return folder
    own = os.environ.get("TORCHINDUCTOR_CACHE_DIR") or default_cache_dir()
    return None if folder.startswith(os.path.join(own, "triton", "")) else folder


_CACHE = _of_user()
_LOCK = RLock()


@contextmanager
def shared_cache() -> Iterator[None]:
    """Meanwhile Triton's cache, of this process and of those that it starts, is the user's."""
    with _LOCK:
        told = os.environ.get(VARIABLE)
        _name(_CACHE)
        try:
            yield
        finally:
            _name(told)


def _name(folder: str | None) -> None:
    if folder is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = folder
