"""What the fused GEMMs share: tiles in order, waits, the loop over K, parts added, the store."""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import (
    UNITS_OFFSET,
    drain,
    flag,
    generation_of,
    peer,
    see_arrivals,
    word,
)
from tftune.kernels.device.shards import generation, pointer
from tftune.kernels.device.waits import add_waited, clock, wait_for_all


@triton.jit
def tile_order(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column tile of a linear index: GROUP_M row tiles before the next column tile, so that
    B's columns stay in cache."""
    in_group = GROUP_M * tiles_n
    first = tile // in_group * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)
    within = tile % in_group
    return first + within % height, within // height


@triton.jit
def by_die(number, programs, XCDS: tl.constexpr):
    """A program's place where each die takes a run of neighbours: the hardware deals programs to
    dies in turn, so that tiles which share rows of A or columns of B would else lie in the caches
    of different dies. One to one also where XCDS does not divide the programs."""
    die, within = number % XCDS, number // XCDS
    return die * (programs // XCDS) + min(die, programs % XCDS) + within


@triton.jit
def first_unit(
    control, pid, units, tile: tl.constexpr, COMM_PROGRAMS: tl.constexpr, ARCH: tl.constexpr
):
    """The first piece of work of a program, by its place among those that compute; or, dynamic, the
    next that nobody has claimed.

    In the interpreter a communicating program claims none: programs run one after another there,
    and it would wait for ever for peers that wait for the next one.
    """
    if pid < COMM_PROGRAMS and (tile.SCHEDULE == "static" or ARCH == "interpreter"):
        unit = units
    elif tile.SCHEDULE == "static":
        unit = by_die(pid - COMM_PROGRAMS, tl.num_programs(0) - COMM_PROGRAMS, tile.XCDS)
    else:
        unit = next_unit(control, 0, COMM_PROGRAMS, tile.SCHEDULE)
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
    acc, a_rows, b_ptr, begin, end, cols, WRAPS: tl.constexpr,
    problem: tl.constexpr, tile: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """acc[BM,BN] += A[:, begin:end] @ B[begin:end, cols]. `a_rows` [BM]: addresses of column 0,
    int64, in rows of a shard or of the gathered A. WRAPS: columns from K on are those from 0
    on."""
    N: tl.constexpr = problem.N
    K: tl.constexpr = problem.K
    BLOCK_K: tl.constexpr = tile.BLOCK_K
    dtype = b_ptr.dtype.element_ty
    steps = tl.arange(0, BLOCK_K)
    a_ptrs = pointer(a_rows, problem.COLUMNS, dtype)[:, None] + (begin + steps)[None, :]
    b_rows = tl.cast(begin, tl.int64)
    if problem.B_IS_NK:
        b_ptrs = b_ptr + b_rows + (tl.cast(cols, tl.int64) * K)[None, :] + steps[:, None]
    else:
        b_ptrs = b_ptr + b_rows * N + steps[:, None] * N + cols[None, :]
    for k in range(begin, end, BLOCK_K):
        if tile.EVEN_K:
            a = tl.load(a_ptrs)
            if tile.EVEN_N:
                b = tl.load(b_ptrs)
            else:
                b = tl.load(b_ptrs, mask=(cols < N)[None, :], other=0.0)
        else:
            inside = steps < end - k
            a = tl.load(a_ptrs, mask=inside[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=inside[:, None] & (cols < N)[None, :], other=0.0)
        if ARCH == "interpreter":  # its product of bf16 is wrong
            a, b = tl.cast(a, tl.float32), tl.cast(b, tl.float32)
        acc = tl.dot(a, b, acc)
        further = tl.where(k + BLOCK_K == K, BLOCK_K - K, BLOCK_K) if WRAPS else BLOCK_K
        a_ptrs += further
        b_ptrs += further if problem.B_IS_NK else tl.cast(further, tl.int64) * N
    return acc


@triton.jit
def multiply_blocks(
    acc, a_desc, a_row, before, b_desc, col, begin, end, WRAPS: tl.constexpr,
    problem: tl.constexpr, tile: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """The same by tensor descriptors (TMA), whole steps of K: rows a_row.. of a_desc, whose first
    column is A's column `before`; what is outside a tensor counts as zero."""
    for k in range(begin, end, tile.BLOCK_K):
        column = tl.where(k >= problem.K, k - problem.K, k) if WRAPS else k
        a = a_desc.load([a_row, column - before])
        b = b_desc.load([col, column]).T if problem.B_IS_NK else b_desc.load([column, col])
        if ARCH == "interpreter":
            a, b = tl.cast(a, tl.float32), tl.cast(b, tl.float32)
        acc = tl.dot(a, b, acc)
    return acc


@triton.jit
def rounded(values, dtype: tl.constexpr, ARCH: tl.constexpr):
    """fp32 values as dtype, to nearest even. The interpreter's own cast to bf16 cuts off, and turns
    what is below 2^-126 into that."""
    if ARCH == "interpreter" and dtype == tl.bfloat16:
        bits = tl.cast(values, tl.int32, bitcast=True)
        nearest = bits + 0x7FFF + ((bits >> 16) & 1)
        upper = tl.where(values == values, nearest, bits) >> 16  # a NaN stays one
        result = tl.cast(tl.cast(upper, tl.int16), dtype, bitcast=True)
    else:
        result = tl.cast(values, dtype)
    return result


@triton.jit
def store_tile(
    c_ptr, acc, row, cols, M, N: tl.constexpr, BLOCK_M: tl.constexpr, ARCH: tl.constexpr
):
    """C[row:row+BM, cols] = acc, rounded once, to nearest even."""
    rows = row + tl.arange(0, BLOCK_M)
    c_ptrs = c_ptr + (tl.cast(rows, tl.int64) * N)[:, None] + cols[None, :]
    inside = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(c_ptrs, rounded(acc, c_ptr.dtype.element_ty, ARCH), mask=inside)


@triton.jit
def add_parts(
    c_ptr, parts_ptr, arrivals_ptr, acc, tile, part, row, cols, M, N: tl.constexpr,
    SPLIT_K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Leave this part of a tile in fp32, wait for the tile's other parts, then add one slice of
    rows of all of them, in a fixed order.

    The wait ends, since a program takes its pieces in rising order of tiles, and a tile has no more
    parts than there are programs: all parts of the first tile that is not done are taken. The
    counter only grows. The interpreter runs programs one after another: there the last to arrive
    adds every slice.
    """
    SLICE: tl.constexpr = BLOCK_M // SPLIT_K
    inside = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    first = parts_ptr + tl.cast(tile, tl.int64) * (SPLIT_K * BLOCK_M * BLOCK_N)
    tl.store(
        first + part * (BLOCK_M * BLOCK_N) + inside,
        acc,
        mask=(row + tl.arange(0, BLOCK_M) < M)[:, None],
    )
    drain(part, ARCH)
    before = tl.atomic_add(arrivals_ptr + tile, 1, sem="acq_rel", scope="gpu")
    all_parts = (before | (SPLIT_K - 1)) + 1
    begin, end = part, part + 1
    if ARCH == "interpreter":
        begin, end = 0, tl.where(before + 1 == all_parts, SPLIT_K, 0)
    else:
        while tl.atomic_add(arrivals_ptr + tile, 0, sem="acquire", scope="gpu") - all_parts < 0:
            pass
    for number in range(begin, end):
        rows = number * SLICE + tl.arange(0, SLICE)
        slice_ptrs = first + rows[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
        valid = (row + rows < M)[:, None]
        total = tl.load(slice_ptrs, mask=valid, other=0.0)
        for other in tl.static_range(1, SPLIT_K):
            total += tl.load(slice_ptrs + other * (BLOCK_M * BLOCK_N), mask=valid, other=0.0)
        store_tile(c_ptr, total, row + number * SLICE, cols, M, N, SLICE, ARCH)


@triton.jit
def wait_chunks(
    control, row, M, shard_rows, step, limit, first_flag, epoch, rank, MAX_CHUNKS: tl.constexpr,
    problem: tl.constexpr, tile: tl.constexpr, chunks: tl.constexpr, ONE_FLAG: tl.constexpr,
):  # fmt: skip
    """Wait for everything that the tile of rows row..row+BM-1 reads of chunk `step`; how many
    chunks from there are here by then, 1 to `limit` and to MAX_CHUNKS. All their flags are polled
    at once: acquire at system scope, for the reasons that `symmetric.wait` gives.

    This rank's own rows are there from the start, unless they are read from the inbox. ONE_FLAG:
    all of a source's shard is there at once.
    """
    BLOCK_M: tl.constexpr = tile.BLOCK_M
    ROWS_PER_FLAG: tl.constexpr = chunks.ROWS_PER_FLAG
    K_CHUNKS: tl.constexpr = chunks.K_CHUNKS
    tl.static_assert(
        BLOCK_M % ROWS_PER_FLAG == 0 or ROWS_PER_FLAG % BLOCK_M == 0,
        "a tile along K begins where a flag does",
    )
    # Whole flags, and along M for each source that the tile meets one more at most, that of its
    # last rows.
    PARTLY: tl.constexpr = problem.WORLD if problem.SHARD_IS_M else 0
    MOST: tl.constexpr = (BLOCK_M + ROWS_PER_FLAG - 1) // ROWS_PER_FLAG + PARTLY
    row_chunks, end = tl.cdiv(shard_rows, ROWS_PER_FLAG), tl.minimum(row + BLOCK_M, M) - 1
    # Counted through all sources.
    first = row // shard_rows * row_chunks + row % shard_rows // ROWS_PER_FLAG
    last = end // shard_rows * row_chunks + end % shard_rows // ROWS_PER_FLAG
    places, number = first + tl.arange(0, triton.next_power_of_2(MOST)), tl.arange(0, MAX_CHUNKS)
    if problem.SHARD_IS_M:
        sources, columns = (places // row_chunks)[:, None], (step + number)[None, :]
    else:
        sources = ((rank + (step + number) // K_CHUNKS) % problem.WORLD)[None, :]
        columns = ((step + number) % K_CHUNKS)[None, :]
    wanted = (places <= last)[:, None] & (number < limit)[None, :]
    wanted = wanted & ((sources != rank) | chunks.LOCAL_VIA_INBOX)
    if ONE_FLAG:
        slots = first_flag + 0 * columns
    else:
        slots = first_flag + (places % row_chunks * K_CHUNKS)[:, None] + columns
    flags = word(flag(control, sources, slots))
    here = 0
    while here == 0:
        seen = tl.atomic_add(flags, 0, mask=wanted, sem="acquire", scope="sys")
        late = tl.max(tl.cast(wanted & (((seen - epoch) & -3) != 0), tl.int32), 0)
        here = tl.min(tl.where((late != 0) | (number >= limit), number, MAX_CHUNKS), 0)
    return here


@triton.jit
def descriptors_of(
    a_ptr, b_ptr, payload, payload_rows, shard_rows, problem: tl.constexpr, tile: tl.constexpr
):
    """Tensor descriptors of a, of the payload and of b, made here."""
    N: tl.constexpr = problem.N
    K: tl.constexpr = problem.K
    COLUMNS: tl.constexpr = problem.COLUMNS
    BLOCK_K: tl.constexpr = tile.BLOCK_K
    BLOCK_M: tl.constexpr = tile.BLOCK_M
    slots = tl.cast(payload, tl.pointer_type(a_ptr.dtype.element_ty))
    a_desc = tl.make_tensor_descriptor(
        a_ptr, [shard_rows, COLUMNS], [COLUMNS, 1], [BLOCK_M, BLOCK_K]
    )
    payload_desc = tl.make_tensor_descriptor(slots, [payload_rows, K], [K, 1], [BLOCK_M, BLOCK_K])
    if problem.B_IS_NK:
        b_desc = tl.make_tensor_descriptor(b_ptr, [N, K], [K, 1], [tile.BLOCK_N, BLOCK_K])
    else:
        b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, tile.BLOCK_N])
    return a_desc, payload_desc, b_desc


@triton.jit
def multiply_tile(
    a_ptr, b_ptr, descriptors, control, inbox, payload_bases, epoch, generation_rows, shard_rows,
    part, row, col, M, rank, problem: tl.constexpr, tile: tl.constexpr, chunks: tl.constexpr,
    FIRST_FLAG: tl.constexpr, PULL: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """One part of the tile at row, col of C, fp32 [BLOCK_M, BLOCK_N]: chunk after chunk of K, this
    rank's own shard first. Chunks that are there and lie side by side go by in one pipelined loop,
    whose every start costs the latency of its first loads. The parts of a split tile take chunks in
    turn, so that as many of them as there are chunks begin with the own shard.

    inbox: address of this call's generation of the payload; the other operands are those of
    `multiply_all`.
    """
    WORLD: tl.constexpr = problem.WORLD
    SHARD_IS_M: tl.constexpr = problem.SHARD_IS_M
    COLUMNS: tl.constexpr = problem.COLUMNS
    BLOCK_M: tl.constexpr = tile.BLOCK_M
    K_CHUNKS: tl.constexpr = chunks.K_CHUNKS
    K_PER_FLAG: tl.constexpr = chunks.K_PER_FLAG
    STEPS: tl.constexpr = K_CHUNKS if SHARD_IS_M else K_CHUNKS * WORLD
    # Else steps of K would lie as chunks happen to come, and sums with them.
    ALONE: tl.constexpr = tile.SPLIT_K > 1 or not tile.EVEN_K
    MOST: tl.constexpr = 1 if ALONE else K_CHUNKS if PULL or SHARD_IS_M else STEPS - K_CHUNKS
    MAX_CHUNKS: tl.constexpr = 1 if MOST <= 1 else 2 if MOST == 2 else 4 if MOST <= 4 else 8
    WRAPS: tl.constexpr = MOST > K_CHUNKS  # behind the last rank's shard comes the first one's
    # What pointers load may span sources.
    ONE_SOURCE: tl.constexpr = tile.LOADS == "descriptor" or not SHARD_IS_M
    tl.static_assert(
        MOST == 1 or K_CHUNKS == 1 or K_PER_FLAG % tile.BLOCK_K == 0,
        "chunks in one loop are whole steps of K",
    )
    a_desc, payload_desc, b_desc = descriptors
    own = tl.cast(a_ptr, tl.int64)
    rows = tl.minimum(row + tl.arange(0, BLOCK_M), M - 1)
    cols = col + tl.arange(0, tile.BLOCK_N)
    acc = tl.zeros((BLOCK_M, tile.BLOCK_N), tl.float32)
    step = part
    while step < STEPS:
        source = row // shard_rows if SHARD_IS_M else (rank + step // K_CHUNKS) % WORLD
        at_home = source == rank and not chunks.LOCAL_VIA_INBOX and ONE_SOURCE
        # Chunks are counted as they lie in the gathered A.
        chunk = step if SHARD_IS_M else source * K_CHUNKS + step % K_CHUNKS
        limit = 1
        if not ALONE:
            limit = K_CHUNKS - chunk % K_CHUNKS if PULL or at_home else STEPS - step
        if chunks.WAITS == "clocked":
            began = clock(ARCH)
        if not at_home:
            limit = wait_chunks(
                control, row, M, shard_rows, step, limit, FIRST_FLAG, epoch, rank, MAX_CHUNKS,
                problem, tile, chunks, PULL and chunks.IN_PLACE,
            )  # fmt: skip
            if chunks.WAITS == "clocked":
                add_waited(control, began, ARCH)
        last = chunk + limit - 1
        k = chunk // K_CHUNKS * COLUMNS + chunk % K_CHUNKS * K_PER_FLAG
        end = last // K_CHUNKS * COLUMNS
        end += tl.minimum(last % K_CHUNKS * K_PER_FLAG + K_PER_FLAG, COLUMNS)
        first = rank * COLUMNS if not SHARD_IS_M else 0  # column of the own shard
        if tile.LOADS == "descriptor":
            see_arrivals(epoch, ARCH)
            if at_home:
                shard_desc, first_row, before = a_desc, row % shard_rows, first
            else:
                first_row = generation_of(epoch) * generation_rows + row
                shard_desc, before = payload_desc, 0
            acc = multiply_blocks(
                acc, shard_desc, first_row, before, b_desc, col, k, end, WRAPS,
                problem, tile, ARCH,
            )  # fmt: skip
        else:
            owners = rows // shard_rows if SHARD_IS_M else source
            own_row = rows - owners * shard_rows if SHARD_IS_M else rows
            if PULL and chunks.IN_PLACE:
                before = 0 if SHARD_IS_M else source * COLUMNS
                shards = peer(own, payload_bases, rank, owners)
                a_rows = shards + tl.cast(own_row, tl.int64) * (COLUMNS * 2) - before * 2
            else:
                own_rows = own + tl.cast(own_row, tl.int64) * (COLUMNS * 2) - first * 2
                shards = peer(inbox, payload_bases, rank, owners) if PULL else inbox
                there = shards + tl.cast(rows, tl.int64) * (problem.K * 2)
                a_rows = tl.where(owners == rank, own_rows, there)
            acc = multiply(acc, a_rows, b_ptr, k, end, cols, WRAPS, problem, tile, ARCH)
        step += tile.SPLIT_K if ALONE else limit
    return acc


@triton.jit
def multiply_all(
    a_ptr, b_ptr, c_ptr, descriptors, parts_ptr, arrivals_ptr, control, payload, payload_bases,
    epoch, generation_rows, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, chunks: tl.constexpr,
    FIRST_FLAG: tl.constexpr, PULL: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Every tile of C that falls to this program.

    a_ptr: this rank's shard; b_ptr: [K,N] or [N,K]; c_ptr: [M,N]; all fp16 or all bf16, row-major.
    descriptors: where LOADS is "descriptor", those of a, of the payload as rows of K elements, and
    of b. parts_ptr: fp32[tiles * SPLIT_K * BLOCK_M * BLOCK_N] and arrivals_ptr: int32[tiles], zero
    at first: scratch of this rank where SPLIT_K > 1. control, payload: addresses of this rank's
    blocks; *_bases: int64[WORLD], the same blocks on every rank, as mapped here; generation_rows:
    rows of the payload from one generation, a gathered A, to the next. A source's part of it is
    read from this rank's payload or, PULL, from the source's own, which is its shard itself where
    operands are read in place; flags count from FIRST_FLAG.
    `constants` says what the groups hold.
    """
    shard_rows = M // problem.WORLD if problem.SHARD_IS_M else M
    inbox = generation(payload, epoch, generation_rows, problem.K)
    # In the interpreter a tensor argument would be copied back over what peers wrote meanwhile.
    if tile.LOADS == "descriptor" and ARCH == "interpreter":
        payload_rows = generation_rows + M
        descriptors = descriptors_of(a_ptr, b_ptr, payload, payload_rows, shard_rows, problem, tile)
    tiles_m, tiles_n = tl.cdiv(M, tile.BLOCK_M), tl.cdiv(problem.N, tile.BLOCK_N)
    units = tiles_m * tiles_n * tile.SPLIT_K
    unit = first_unit(control, tl.program_id(0), units, tile, chunks.COMM_PROGRAMS, ARCH)
    if chunks.WAITS == "all":  # noqa: SIM102 (a constant decides, then a number)
        if unit < units:  # a program that only communicates waits for nobody
            wait_for_all(
                control, tl.cdiv(shard_rows, chunks.ROWS_PER_FLAG) * chunks.K_CHUNKS, epoch, rank,
                chunks.LOCAL_VIA_INBOX, problem.WORLD, triton.next_power_of_2(problem.WORLD),
            )  # fmt: skip
    while unit < units:
        number, part = unit // tile.SPLIT_K, unit % tile.SPLIT_K
        tile_m, tile_n = tile_order(number, tiles_m, tiles_n, tile.GROUP_M)
        if problem.SHARD_IS_M:
            tile_m = (tile_m + rank * tiles_m // problem.WORLD) % tiles_m  # own rows first
        row, col = tile_m * tile.BLOCK_M, tile_n * tile.BLOCK_N
        acc = multiply_tile(
            a_ptr, b_ptr, descriptors, control, inbox, payload_bases, epoch, generation_rows,
            shard_rows, part, row, col, M, rank, problem, tile, chunks, FIRST_FLAG, PULL, ARCH,
        )  # fmt: skip
        cols = col + tl.arange(0, tile.BLOCK_N)
        if tile.SPLIT_K == 1:
            store_tile(c_ptr, acc, row, cols, M, problem.N, tile.BLOCK_M, ARCH)
        else:
            add_parts(
                c_ptr, parts_ptr, arrivals_ptr, acc, number, part, row, cols, M,
                problem.N, tile.SPLIT_K, tile.BLOCK_M, tile.BLOCK_N, ARCH,
            )  # fmt: skip
        unit = next_unit(control, unit, chunks.COMM_PROGRAMS, tile.SCHEDULE)
