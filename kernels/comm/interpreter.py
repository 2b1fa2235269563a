"""Triton's interpreter in half of its time, with the same results but for bf16, which is rounded to
the nearest, as GPUs do, and not towards zero.

At each operation it works out anew what follows from types and sizes alone: NumPy's dtypes, types
of blocks, conversions between equal types, and whether a sum overflows. `hasten` keeps the former
and leaves out the latter, in this process for good: all its kernels must be interpreted whole.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any


@cache
def hasten() -> None:
    """Once in a process, before its first kernel. Nothing where kernels are compiled: the compiler
    has the same types and rules."""
    import triton
    from triton.runtime import interpreter

    if not triton.knobs.runtime.interpret:
        return
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(
        sanitize_overflow=False  # a quarter of the time, and asserted in debug mode alone
    )
    _patch_language_once(interpreter)
    _keep_types(interpreter)
    _skip_conversions()
    _round_to_nearest(interpreter)
    _spread_as_it_is(interpreter)


def _patch_language_once(interpreter: Any) -> None:
    """The interpreter puts its own functions into triton.language anew at each call inside a
    kernel, a third of its time; now once for each module, and nothing is put back. Each of them
    calls the function of the language without the check that a kernel calls it."""
    patch, patched = interpreter._patch_lang, set[int]()
    semantic = interpreter.interpreter_semantic

    def once(function: Any) -> Any:
        if id(function.__globals__) not in patched:
            patch(function)
            patched.add(id(function.__globals__))
        return interpreter._LangPatchScope()

    def patch_attr(owner: Any, name: str, member: Any, _builder: Any, scope: Any) -> None:
        plain = getattr(member, "__wrapped__", member)

        def call(*arguments: Any, **named: Any) -> Any:
            named["_semantic"] = semantic
            return plain(*arguments, **named)

        scope.set_attr(owner, name, call)

    interpreter._patch_lang, interpreter._patch_attr = once, patch_attr


def _keep_types(interpreter: Any) -> None:
    """NumPy's dtype by the name of Triton's, a block's type by its element's name and its sizes,
    and a tensor's shape by its sizes: equal shapes are one object."""
    import triton.language as tl

    language: Any = tl.core
    constexpr, find_dtype = language.constexpr, interpreter._get_np_dtype
    block, equals = language.block_type.__init__, language.dtype.__eq__
    dtypes: dict[str, Any] = {}
    blocks: dict[tuple[str, tuple[int, ...]], tuple[Any, ...]] = {}
    shapes: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def np_dtype(of: Any) -> Any:
        element = of.scalar
        if element.name not in dtypes:
            dtypes[element.name] = find_dtype(element)
        return dtypes[element.name]

    def init_block(self: Any, element: Any, shape: Any) -> None:
        sizes = tuple([each.value if type(each) is constexpr else each for each in shape])
        self.element_ty = element
        if (key := (element.name, sizes)) not in blocks:
            block(self, element, list(sizes))
            blocks[key] = self.shape, self.numel, self.name
        self.shape, self.numel, self.name = blocks[key]

    def init_tensor(self: Any, handle: Any, type: Any) -> None:
        self.handle, self.type, self.dtype = handle, type, type.scalar
        sizes = tuple(type.shape.values) if type.is_block() else ()
        if sizes not in shapes:
            shape = language.tuple([constexpr(size) for size in sizes])
            shapes[sizes] = shape, constexpr(math.prod(sizes))
        self.shape, self.numel = shapes[sizes]

    interpreter._get_np_dtype = np_dtype
    language.block_type.__init__, language.tensor.__init__ = init_block, init_tensor
    language.dtype.__eq__ = lambda self, other: self is other or equals(self, other)


def _skip_conversions() -> None:
    """Operands of one type and shape are neither converted nor broadcast, and a small integer takes
    the type of the integers beside it at once."""
    import triton.language as tl
    from triton.language.semantic import TritonSemantic

    semantic: Any = TritonSemantic
    tensor: Any = tl.tensor
    check, broadcast, cast = (
        semantic.binary_op_type_checking_impl,
        semantic.broadcast_impl_value,
        semantic.cast,
    )

    def takes(operand: Any, number: Any) -> bool:
        """Whether the number becomes one of the tensor's type, in range for it."""
        return (
            type(number) is int
            and -(1 << 31) <= number < 1 << 31
            and type(operand) is tensor
            and (operand.dtype is tl.int32 or operand.dtype is tl.int64)
        )

    def checked(
        self: Any, lhs: Any, rhs: Any, allow_lhs_ptr: bool = False, allow_rhs_ptr: bool = False,
        arithmetic_check: bool = True, div_or_mod: bool = False,
    ) -> Any:  # fmt: skip
        if takes(lhs, rhs):
            rhs = self.scalar_constant(rhs, lhs.dtype)
        elif takes(rhs, lhs):
            lhs = self.scalar_constant(lhs, rhs.dtype)
        alike = type(lhs) is type(rhs) is tensor and lhs.dtype is rhs.dtype
        # Halves are divided as fp32, and only some operators take pointers.
        if alike and (lhs.dtype.is_int() or not (div_or_mod or lhs.dtype.is_ptr())):
            return self.broadcast_impl_value(lhs, rhs)
        return check(self, lhs, rhs, allow_lhs_ptr, allow_rhs_ptr, arithmetic_check, div_or_mod)

    def broadcast_unlike(self: Any, lhs: Any, rhs: Any) -> Any:
        return (lhs, rhs) if lhs.shape is rhs.shape else broadcast(self, lhs, rhs)

    def cast_unlike(
        self: Any, input: Any, dst_ty: Any, fp_downcast_rounding: str | None = None
    ) -> Any:
        if input.dtype is dst_ty.scalar:
            return input
        return cast(self, input, dst_ty, fp_downcast_rounding)

    semantic.binary_op_type_checking_impl = checked
    semantic.broadcast_impl_value = broadcast_unlike
    semantic.cast = cast_unlike


def _round_to_nearest(interpreter: Any) -> None:
    """Conversions between fp32 and bf16, which Triton's interpreter works out bit by bit."""
    import numpy as np
    import triton.language as tl

    builder = interpreter.InterpreterBuilder
    plain = builder.cast_impl

    def cast_impl(self: Any, operand: Any, dtype: Any) -> Any:
        kinds = operand.dtype.scalar, dtype.scalar
        if kinds == (tl.bfloat16, tl.float32):
            wide = operand.data.astype(np.uint32) << 16
            return interpreter.TensorHandle(wide.view(np.float32), tl.float32)
        if kinds == (tl.float32, tl.bfloat16):
            bits = operand.data.astype(np.float32).view(np.uint32)
            rounded = (bits + (0x7FFF + (bits >> 16 & 1))) >> 16
            quiet_nan = bits >> 16 | 0x40
            words = np.where(np.isnan(operand.data), quiet_nan, rounded)
            return interpreter.TensorHandle(words.astype(np.uint16), tl.bfloat16)
        return plain(self, operand, dtype)

    builder.cast_impl = cast_impl


def _spread_as_it_is(interpreter: Any) -> None:
    """A block of one truth value stays one of truth values. Triton 3.9 makes integers of what a
    comparison gave, and loads and stores by no mask of integers."""
    import numpy as np

    builder = interpreter.InterpreterBuilder
    plain = builder.create_splat

    def create_splat(self: Any, ret_ty: Any, arg: Any) -> Any:
        if arg.data.dtype != np.bool_:
            return plain(self, ret_ty, arg)
        values = np.full(ret_ty.shape, arg.data, dtype=np.bool_)
        return interpreter.TensorHandle(values, arg.dtype.scalar)

    builder.create_splat = create_splat
