"""One explicit-signature compile path: CI, the compile pool, the audit of emitted code and the
launch all come through here.

Explicit, because a kernel compiled from launch arguments specialises what it sees (a rank of 1
becomes a constant on one rank only), and one compiled without divisibility is not pipelined.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any
from weakref import WeakValueDictionary

from tftune.kernels.runtime.triton_cache import shared_cache

_COMPILED: WeakValueDictionary[Any, Any] = WeakValueDictionary()
"""What some plan still launches. Triton would load another copy for each plan, and unloads none."""


@dataclass(frozen=True)
class KernelSource:
    """A kernel with everything that decides its code.

    `types`: argument name -> Triton type (`*fp16`, `i32`, `i64`), in order, for all that is not
    constexpr; `constants`: the constexpr arguments, single ones or groups; `divisible`: arguments
    that are multiples of 16; `options`: num_warps, num_stages, ...
    """

    kernel: Any
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    divisible: tuple[str, ...]
    options: Mapping[str, Any]

    @property
    def key(self) -> tuple[Any, ...]:
        """What decides the binary."""
        return (
            self.kernel.fn.__name__,
            *sorted((*self.types.items(), *self.constants.items(), *self.options.items()), key=str),
        )

    def compile(self, target: Any = None) -> Any:
        """Triton's CompiledKernel: the same one while a plan has it, else from Triton's cache where
        it was compiled before; `target` is a GPUTarget, this machine's by default.

        Raises what Triton raises: a compile error, or OutOfResources at load.
        """
        key = self.kernel.fn, self.divisible, self.key, target
        if (compiled := _COMPILED.get(key)) is None:
            compiled = _COMPILED[key] = self._compiled(target)
        return compiled

    def _compiled(self, target: Any) -> Any:
        import triton
        from triton.compiler import ASTSource

        _hash_helpers()
        names = self.kernel.arg_names
        signature = {name: self.types.get(name, "constexpr") for name in names}
        attributes = {(names.index(name),): [["tt.divisibility", 16]] for name in self.divisible}
        constants = {name: _fields_as_constexprs(value) for name, value in self.constants.items()}
        source = ASTSource(self.kernel, signature, constants, attributes)
        with shared_cache():
            return triton.compile(source, target=target, options=dict(self.options))

    def arguments(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """The positional arguments of a launch: run-time values and constants in the kernel's
        order."""
        return tuple(
            values[name] if name in self.types else self.constants[name]
            for name in self.kernel.arg_names
        )


def source_of(
    kernel: Any,
    dtype: str,
    types: Mapping[str, str],
    constants: Mapping[str, Any],
    open_values: Collection[str],
    options: Mapping[str, Any],
) -> KernelSource:
    """A kernel with those of an operation's types and constants that it names. `open_values`: the
    arguments of any value; all others are multiples of 16."""
    names = kernel.arg_names
    taken = {name: types[name].format(dtype) for name in names if name in types}
    own = {name: constants[name] for name in names if name not in types}
    divisible = tuple(name for name in taken if name not in open_values)
    return KernelSource(kernel, taken, own, divisible, options)


def _fields_as_constexprs(constant: Any) -> Any:
    """A group of constants (`kernels.device.constants`) as Triton's code generator takes it; any
    other constant as it is."""
    if not isinstance(constant, tuple):
        return constant
    from triton.language import constexpr

    return type(constant)(*map(constexpr, constant))


@cache
def _hash_helpers() -> None:
    """Hash what kernels share, always in the same order, before any kernel.

    Triton's key of a kernel counts the globals of a helper only where that helper was hashed before
    (3.6 and 3.7), so it would differ between a process that compiled another kernel first and one
    that did not, and neither would find the other's binary.
    """
    from tftune.kernels import device
    from tftune.kernels.comm import ll_protocol, symmetric

    names = sorted(info.name for info in iter_modules(device.__path__))
    shared = [import_module(f"{device.__name__}.{name}") for name in names]
    for module in (symmetric, ll_protocol, *shared):
        for function in vars(module).values():
            getattr(function, "cache_key", None)


def gpu_target(arch: str) -> Any:
    """Triton's GPUTarget of an architecture name, such as `gfx942` or `sm_90`; needs no GPU."""
    from triton.backends.compiler import GPUTarget

    from tftune.kernels.core.architecture import CUDA, capabilities

    can = capabilities(arch)
    number = int(arch.removeprefix("sm_")) if can.backend == CUDA else arch
    return GPUTarget(can.backend, number, can.wave_size)
