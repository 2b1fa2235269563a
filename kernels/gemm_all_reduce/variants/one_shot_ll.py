"""one_shot_ll: as one_shot, but partial tiles travel as words that say themselves whether they have
arrived (LL): no fence, no flag.

Who owns a tile: as in one_shot. Who writes remotely: the program that computed a part stores it as
words into its slot of every rank's mailbox, the next rank's first and this rank's last. Which flag
says ready: none; each word of 64 bits holds two elements of a row and its call's epoch, and is
polled by who adds it up.

Two generations suffice: there is at least one tile, and who ends a call has seen words of every
rank. A rank sends in call e after its call e-1 ended, so it has seen all words of e-1, whose
senders had ended e-2, the last call to read the same generation.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tftune.kernels.comm.ll_protocol import pack_ll, store, word64
from tftune.kernels.comm.symmetric import (
    MAILBOX_BYTES,
    MAILBOX_OFFSET,
    begin,
    finish,
    generation_of,
    peer,
    work_range,
)
from tftune.kernels.device.gemm import tile_order
from tftune.kernels.device.gemm_reduce import descriptors_of, partial_tile
from tftune.kernels.device.pairs import halves, pair_pointer, paired
from tftune.kernels.device.reduce import awaited, in_order


@triton.jit
def send_words(
    a_ptr, b_ptr, a_desc, b_desc, inbox, control_bases, epoch, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, ARCH: tl.constexpr,
):  # fmt: skip
    """Every part of a tile that falls to this program, rounded, into its slot of every mailbox.
    inbox: address here of this call's generation, slots of [M, N / 2] words."""
    N: tl.constexpr = problem.N
    WORLD: tl.constexpr = problem.WORLD
    PAIRS: tl.constexpr = tile.BLOCK_N // 2
    row_tiles, tiles_n = tl.cdiv(M, tile.BLOCK_M), tl.cdiv(N, tile.BLOCK_N)
    units = row_tiles * tiles_n * tile.SPLIT_K
    for unit in tl.range(tl.program_id(0), units, tl.num_programs(0), num_stages=1):
        number, part = unit // tile.SPLIT_K, unit % tile.SPLIT_K
        tile_m, tile_n = tile_order(number, row_tiles, tiles_n, tile.GROUP_M)
        row, col = tile_m * tile.BLOCK_M, tile_n * tile.BLOCK_N
        acc = partial_tile(a_ptr, b_ptr, a_desc, b_desc, row, M - 1, col, part, problem, tile, ARCH)
        low, high = tl.split(tl.reshape(acc, (tile.BLOCK_M, PAIRS, 2)))
        bits = tl.cast(paired(low, high, a_ptr, ARCH), tl.float32, bitcast=True)
        words = pack_ll(bits, epoch)
        rows, pairs = row + tl.arange(0, tile.BLOCK_M), tile_n * PAIRS + tl.arange(0, PAIRS)
        wanted = (rows < M)[:, None] & (pairs < N // 2)[None, :]
        slot = tl.cast((rank * tile.SPLIT_K + part) * M + rows, tl.int64)
        mail = inbox + slot * (N * 4)
        for step in tl.static_range(1, WORLD + 1):
            its_mail = peer(mail, control_bases, rank, (rank + step) % WORLD)
            store(word64(its_mail)[:, None] + pairs[None, :], words, wanted)


@triton.jit(do_not_specialize=["M", "rank"])
def one_shot_ll(
    a_ptr, b_ptr, c_ptr, a_desc, b_desc, control, control_bases, M, rank,
    problem: tl.constexpr, tile: tl.constexpr, exchange: tl.constexpr, THREADS: tl.constexpr,
    ARCH: tl.constexpr,
):  # fmt: skip
    """C = the sum over ranks of A [M, K] @ B, all rows. problem.K: of one rank; N: a multiple of 8.
    ADD_ROWS of a tile are polled and added up at a time."""
    N: tl.constexpr = problem.N
    PAIRS: tl.constexpr = tile.BLOCK_N // 2
    ADD_ROWS: tl.constexpr = exchange.ADD_ROWS
    SLOTS: tl.constexpr = problem.WORLD * tile.SPLIT_K
    SLOTS_P: tl.constexpr = exchange.WORLD_P * tile.SPLIT_K
    WORDS: tl.constexpr = ADD_ROWS * PAIRS
    epoch = begin(control)
    inbox = control + MAILBOX_OFFSET + generation_of(epoch) * MAILBOX_BYTES
    if tile.LOADS == "descriptor" and ARCH == "interpreter":
        a_desc, b_desc = descriptors_of(a_ptr, b_ptr, M, problem, tile)
    send_words(
        a_ptr, b_ptr, a_desc, b_desc, inbox, control_bases, epoch, M, rank, problem, tile, ARCH
    )
    row_tiles, tiles_n = tl.cdiv(M, tile.BLOCK_M), tl.cdiv(N, tile.BLOCK_N)
    slices = tl.cdiv(tl.minimum(tile.BLOCK_M, M), ADD_ROWS)
    slots, within = tl.arange(0, SLOTS_P), tl.arange(0, WORDS)
    mail = word64(inbox + tl.cast(slots * M, tl.int64) * (N * 4))
    begun, stride = work_range(tl.program_id(0), ARCH)
    for piece in tl.range(begun, row_tiles * tiles_n * slices, stride, num_stages=1):
        tile_m, tile_n = tile_order(piece // slices, row_tiles, tiles_n, tile.GROUP_M)
        rows = tile_m * tile.BLOCK_M + piece % slices * ADD_ROWS + within // PAIRS
        pairs = tile_n * PAIRS + within % PAIRS
        there = (rows < M) & (pairs < N // 2)
        places = rows * (N // 2) + pairs
        wanted = (slots < SLOTS)[:, None] & there[None, :]
        pointers = mail[:, None] + places[None, :]
        arrived = awaited(pointers, wanted, epoch, SLOTS_P * WORDS, THREADS, ARCH)
        low, high = halves(tl.cast(arrived, tl.int32, bitcast=True), c_ptr)
        sums = paired(in_order(low, slots, SLOTS), in_order(high, slots, SLOTS), c_ptr, ARCH)
        tl.store(pair_pointer(c_ptr) + places, sums, mask=there)
    finish(control, epoch)
