"""How shards of A travel: which chunk comes next, the copy, and where it lies in the gathered A."""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.symmetric import generation_of


@triton.jit
def pointer(address, COLUMNS: tl.constexpr, DTYPE: tl.constexpr):
    """Pointers to rows of COLUMNS elements of 2 bytes, at addresses that start a row of an aligned
    matrix.

    Loads and stores are 16 bytes wide, and the loop over K is pipelined, only where the alignment
    is stated on the pointer: stated on the integer it is lost.
    """
    result = tl.cast(address, tl.pointer_type(DTYPE))
    return tl.multiple_of(result, 16) if COLUMNS % 8 == 0 else result


@triton.jit
def chunk_and_peer(
    item, row_chunks, K_CHUNKS: tl.constexpr, PEERS: tl.constexpr, BAND: tl.constexpr,
    ORDER: tl.constexpr,
):  # fmt: skip
    """Which chunk a copy moves, and to or from which peer, counted in the order in which peers need
    each other's shards.

    "chunk": each chunk goes to all peers before the next one, along K, then down the rows.
    "column": down the rows first, so that tiles which all run at once get their first steps of K
    early. "group": what one peer needs of a band of BAND row chunks, column after column, before
    the next peer: where NVSwitch gives all bandwidth to any one peer, the shard needed first is
    whole first.
    """
    if ORDER == "chunk":
        chunk, peer_number = item // PEERS, item % PEERS
    elif ORDER == "column":
        place, peer_number = item // PEERS, item % PEERS
        chunk = place % row_chunks * K_CHUNKS + place // row_chunks
    else:
        first = item // (BAND * K_CHUNKS * PEERS) * BAND
        height = min(row_chunks - first, BAND)
        within = item % (BAND * K_CHUNKS * PEERS)
        place, peer_number = within % (height * K_CHUNKS), within // (height * K_CHUNKS)
        chunk = (first + place % height) * K_CHUNKS + place // height
    return chunk, peer_number


@triton.jit
def copy_block(
    source, target, chunk, shard_rows, COLUMNS: tl.constexpr, FROM_COLUMNS: tl.constexpr,
    TO_COLUMNS: tl.constexpr, ROWS_PER_FLAG: tl.constexpr, K_PER_FLAG: tl.constexpr,
    DTYPE: tl.constexpr, COPY_ROWS: tl.constexpr, COPY_COLUMNS: tl.constexpr,
):  # fmt: skip
    """Copy one flag's chunk of a shard [shard_rows, COLUMNS] from address to address, in runs of
    COPY_COLUMNS contiguous elements, out of rows of FROM_COLUMNS elements into rows of
    TO_COLUMNS."""
    K_CHUNKS: tl.constexpr = (COLUMNS + K_PER_FLAG - 1) // K_PER_FLAG
    row, column = chunk // K_CHUNKS * ROWS_PER_FLAG, chunk % K_CHUNKS * K_PER_FLAG
    from_ptr, to_ptr = pointer(source, COLUMNS, DTYPE), pointer(target, COLUMNS, DTYPE)
    for r in range(row, tl.minimum(row + ROWS_PER_FLAG, shard_rows), COPY_ROWS):
        rows = r + tl.arange(0, COPY_ROWS)
        for c in range(column, tl.minimum(column + K_PER_FLAG, COLUMNS), COPY_COLUMNS):
            columns = c + tl.arange(0, COPY_COLUMNS)
            from_rows = from_ptr + (tl.cast(rows, tl.int64) * FROM_COLUMNS)[:, None]
            from_ptrs = from_rows + columns[None, :]
            to_ptrs = to_ptr + (tl.cast(rows, tl.int64) * TO_COLUMNS)[:, None] + columns[None, :]
            inside = (rows < shard_rows)[:, None] & (columns < COLUMNS)[None, :]
            tl.store(to_ptrs, tl.load(from_ptrs, mask=inside), mask=inside)


@triton.jit
def copy_chunk(
    source, target, chunk, shard_rows, FROM_COLUMNS: tl.constexpr, DTYPE: tl.constexpr,
    problem: tl.constexpr, chunks: tl.constexpr,
):  # fmt: skip
    """Copy one flag's chunk of a shard out of rows of FROM_COLUMNS elements into the gathered A."""
    copy_block(
        source, target, chunk, shard_rows, problem.COLUMNS, FROM_COLUMNS, problem.K,
        chunks.ROWS_PER_FLAG, chunks.K_PER_FLAG, DTYPE, chunks.COPY_ROWS, chunks.COPY_COLUMNS,
    )  # fmt: skip


@triton.jit
def copy_shard(
    a_ptr, target, chunk, shard_rows, problem: tl.constexpr, chunks: tl.constexpr
):  # fmt: skip
    """The same of this rank's shard, out of the operand."""
    source = tl.cast(a_ptr, tl.int64)
    dtype = a_ptr.dtype.element_ty
    copy_chunk(source, target, chunk, shard_rows, problem.COLUMNS, dtype, problem, chunks)


@triton.jit
def generation(payload, epoch, generation_rows, K: tl.constexpr):
    """Where this call's generation of the payload starts: the gathered A, rows of K elements."""
    return payload + tl.cast(generation_of(epoch) * generation_rows, tl.int64) * (K * 2)


@triton.jit
def place_of(source, shard_rows, problem: tl.constexpr):
    """Bytes from the start of a generation to a source's shard: its rows, or its columns of every
    row."""
    if problem.SHARD_IS_M:
        elements = tl.cast(source * shard_rows, tl.int64) * problem.K
    else:
        elements = tl.cast(source * problem.COLUMNS, tl.int64)
    return elements * 2
