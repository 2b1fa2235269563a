"""What the fused kernels share: the order of tiles, the walk over chunks, one loop over K, and the store of a tile."""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.symmetric import UNITS_OFFSET, drain, flag, wait, word


@triton.jit
def tile_order(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column tile of a linear index: GROUP_M row tiles before the next column tile, so that B's columns stay in cache."""
    in_group = GROUP_M * tiles_n
    first = tile // in_group * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)
    within = tile % in_group
    return first + within % height, within // height


@triton.jit
def pointer(address, COLUMNS: tl.constexpr, DTYPE: tl.constexpr):
    """Pointers to rows of COLUMNS elements of 2 bytes, at addresses that start a row of an aligned matrix.

    Loads and stores are 16 bytes wide, and the loop over K is pipelined, only where the alignment is stated on the pointer:
    stated on the integer it is lost.
    """
    result = tl.cast(address, tl.pointer_type(DTYPE))
    return tl.multiple_of(result, 16) if COLUMNS % 8 == 0 else result


@triton.jit
def first_unit(control, pid, COMM_PROGRAMS: tl.constexpr, units, SCHEDULE: tl.constexpr, ARCH: tl.constexpr):
    """The first piece of work of a program, by its number among those that compute; or, dynamic, the next that nobody has claimed.

    In the interpreter a communicating program claims none: programs run one after another there, and it would wait for ever for
    peers that wait for the next one.
    """
    if pid < COMM_PROGRAMS and (SCHEDULE == "static" or ARCH == "interpreter"):
        unit = units
    else:
        unit = next_unit(control, pid - tl.num_programs(0), COMM_PROGRAMS, SCHEDULE)
    return unit


@triton.jit
def next_unit(control, unit, COMM_PROGRAMS: tl.constexpr, SCHEDULE: tl.constexpr):
    """The piece of work after `unit`."""
    if SCHEDULE == "dynamic":
        return tl.atomic_add(word(control + UNITS_OFFSET), 1, sem="relaxed", scope="gpu")
    else:
        return unit + tl.num_programs(0) - COMM_PROGRAMS


@triton.jit
def multiply(
    acc, a_rows, b_ptr, a_begin, a_end, b_begin, cols,
    A_COLUMNS: tl.constexpr, N: tl.constexpr, B_ROWS: tl.constexpr, B_IS_NK: tl.constexpr, EVEN_K: tl.constexpr, EVEN_N: tl.constexpr,
    BLOCK_K: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """acc[BM,BN] += A[:, a_begin:a_end] @ B[b_begin:..., cols]. `a_rows` [BM]: addresses of column 0, int64; B_ROWS: the whole K."""
    dtype = b_ptr.dtype.element_ty
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = pointer(a_rows, A_COLUMNS, dtype)[:, None] + (a_begin + steps)[None, :]
    b_rows = tl.cast(b_begin, tl.int64)
    if B_IS_NK:
        b_ptrs = b_ptr + b_rows + (tl.cast(cols, tl.int64) * B_ROWS)[None, :] + steps[:, None]
    else:
        b_ptrs = b_ptr + b_rows * N + steps[:, None] * N + cols[None, :]
    for k in range(a_begin, a_end, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs) if EVEN_N else tl.load(b_ptrs, mask=(cols < N)[None, :], other=0.0)
        else:
            inside = steps < a_end - k
            a = tl.load(a_ptrs, mask=inside[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=inside[:, None] & (cols < N)[None, :], other=0.0)
        if ARCH == "interpreter":  # its product of bf16 is wrong
            a, b = tl.cast(a, tl.float32), tl.cast(b, tl.float32)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K if B_IS_NK else BLOCK_K * N
    return acc


@triton.jit
def store_tile(c_ptr, acc, row, cols, M, N: tl.constexpr, BLOCK_M: tl.constexpr, ARCH: tl.constexpr):
    """C[row:row+BM, cols] = acc, rounded once, to nearest even."""
    if ARCH == "interpreter" and c_ptr.dtype.element_ty == tl.bfloat16:  # whose cast cuts off
        bits = tl.cast(acc, tl.int32, bitcast=True)
        acc = tl.cast(bits + 0x7FFF + ((bits >> 16) & 1), tl.float32, bitcast=True)
    rows = row + tl.arange(0, BLOCK_M)
    c_ptrs = c_ptr + (tl.cast(rows, tl.int64) * N)[:, None] + cols[None, :]
    tl.store(c_ptrs, tl.cast(acc, c_ptr.dtype.element_ty), mask=(rows < M)[:, None] & (cols < N)[None, :])


@triton.jit
def add_parts(
    c_ptr, parts_ptr, arrivals_ptr, acc, tile, part, row, cols, M,
    N: tl.constexpr, SPLIT_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Leave this part of a tile in fp32; the program whose part comes last adds all of them, in a fixed order, and stores C.
    It also sets the tile's counter back, for the next call."""
    inside = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    first = parts_ptr + tl.cast(tile, tl.int64) * (SPLIT_K * BLOCK_M * BLOCK_N)
    tl.store(first + part * (BLOCK_M * BLOCK_N) + inside, acc)
    drain(part, ARCH)
    if tl.atomic_add(arrivals_ptr + tile, 1, sem="acq_rel", scope="gpu") == SPLIT_K - 1:
        total = tl.load(first + inside)
        for other in range(1, SPLIT_K):
            total += tl.load(first + other * (BLOCK_M * BLOCK_N) + inside)
        store_tile(c_ptr, total, row, cols, M, N, BLOCK_M, ARCH)
        tl.store(arrivals_ptr + tile, 0)


@triton.jit
def wait_rows(
    control, source, first_row, last_row, k_chunk, epoch,
    ROWS_PER_FLAG: tl.constexpr, K_CHUNKS: tl.constexpr,
):  # fmt: skip
    """Wait for the flags that cover rows first_row..last_row (inclusive, counted in `source`'s shard) of one column chunk."""
    for row_chunk in range(first_row // ROWS_PER_FLAG, last_row // ROWS_PER_FLAG + 1):
        wait(flag(control, source, row_chunk * K_CHUNKS + k_chunk), epoch)


@triton.jit
def wait_tile(
    control, source, row, M, shard_rows, k_chunk, epoch, rank,
    SHARD_IS_M: tl.constexpr, BLOCK_M: tl.constexpr, ROWS_PER_FLAG: tl.constexpr, K_CHUNKS: tl.constexpr,
):  # fmt: skip
    """Wait for everything that the tile of rows row..row+BM-1 reads of one column chunk; this rank's own shard is always there."""
    last = tl.minimum(row + BLOCK_M, M) - 1
    if SHARD_IS_M:
        for owner in range(row // shard_rows, last // shard_rows + 1):
            if owner != rank:
                first_row = tl.maximum(row - owner * shard_rows, 0)
                last_row = tl.minimum(last - owner * shard_rows, shard_rows - 1)
                wait_rows(control, owner, first_row, last_row, k_chunk, epoch, ROWS_PER_FLAG, K_CHUNKS)
    else:
        if source != rank:
            wait_rows(control, source, row, last, k_chunk, epoch, ROWS_PER_FLAG, K_CHUNKS)


@triton.jit
def copy_chunk(
    source, target, row, column, shard_rows,
    COLUMNS: tl.constexpr, ROWS_PER_FLAG: tl.constexpr, K_PER_FLAG: tl.constexpr, DTYPE: tl.constexpr,
    COPY_ROWS: tl.constexpr, COPY_COLUMNS: tl.constexpr,
):  # fmt: skip
    """Copy one flag's chunk of a shard [shard_rows, COLUMNS] from address to address, in runs of COPY_COLUMNS contiguous elements."""
    from_ptr, to_ptr = pointer(source, COLUMNS, DTYPE), pointer(target, COLUMNS, DTYPE)
    for r in range(row, tl.minimum(row + ROWS_PER_FLAG, shard_rows), COPY_ROWS):
        rows = r + tl.arange(0, COPY_ROWS)
        for c in range(column, tl.minimum(column + K_PER_FLAG, COLUMNS), COPY_COLUMNS):
            columns = c + tl.arange(0, COPY_COLUMNS)
            offsets = (tl.cast(rows, tl.int64) * COLUMNS)[:, None] + columns[None, :]
            inside = (rows < shard_rows)[:, None] & (columns < COLUMNS)[None, :]
            tl.store(to_ptr + offsets, tl.load(from_ptr + offsets, mask=inside), mask=inside)
