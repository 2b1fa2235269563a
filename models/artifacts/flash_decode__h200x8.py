# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config flash_decode runs on h200x8, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'flash_decode'
TARGET = 'h200x8'
ARCH = 'sm_90'
MODELLED = False
SHA256 = '29cef5e5c27e69e94cf7e3d0d4f3dafdf6013a1ec775d30a6c95eae7f1e76c4e'
TRITON = '3.6.0'
KERNELS = {'persistent_ll': '42aa5c90cd7c', 'persistent': 'a9ad04ef8769', 'fused': '44a4a59f2fbf', 'no_wait': '38f8209c41d3', 'fused_heads': '058dfc08b88a'}
CONFIGS = [
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 8, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 128, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 2, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'no_wait', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 0, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 1, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 2, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 32, 'heads_per_program': 1, 'kv_splits': 33, 'num_stages': 5, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 2, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 8, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 33, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
]
ANSWERS = {'graph': [(23,), (23,), (23,), (23,), (0,), (23,), (0,), (17,), (17,), (0,), (18,), (5,), (0,), (20,), (0,), (20,), (0,), (23,), (12,), (20,), (17,), (12,), (0,), (18,), (5,), (18,), (5,), (5,), (2,), (18,), (0,), (17,), (18,), (18,), (12,), (12,), (0,), (5,), (0,), (5,), (17,), (5,), (14, 18), (18,), (14,), (14,), (12,), (14, 18), (12,), (0,), (18,), (18,), (0,), (14,), (5,), (0,), (5,), (3,), (0,), (0,), (5,), (0,), (0,), (21,), (26,), (1,), (24,), (25,), (13,), (13,), (11,), (11,), (11,)], 'eager': [(4,), (22,), (23,), (19,), (27,), (16,), (1,), (24,), (15,), (15,), (9,), (6,), (25,), (18,), (7,), (18,), (10,), (13,), (8,), (8,), (11,), (8,)]}

GRAPH_OWN = {
    ('flash_decode', 1, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 63,
    ('flash_decode', 1, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 64,
    ('flash_decode', 1, 64, 8, 128, 65536, 1, 'fp16', 'all', 0): 65,
    ('flash_decode', 4, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 66,
    ('flash_decode', 8, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 67,
    ('flash_decode', 16, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 68,
    ('flash_decode', 16, 64, 8, 128, 2048, 8, 'fp16', 'all', 0): 69,
    ('flash_decode', 16, 64, 8, 128, 4096, 8, 'fp16', 'all', 0): 70,
    ('flash_decode', 16, 64, 8, 128, 8192, 8, 'fp16', 'all', 0): 71,
    ('flash_decode', 16, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 72,
}

def graph(s):
    batch, q_heads, kv_heads, head_dim, kv_len, world, dtype, output, page_size = s.batch, s.q_heads, s.kv_heads, s.head_dim, s.kv_len, s.world, s.dtype, s.output, s.page_size
    if kv_len in {1024, 2048, 4096, 8192, 16384, 65536} and (own := GRAPH_OWN.get(s.key)) is not None:
        return own
    if not 0.5 <= batch <= 32:
        return None
    if dtype not in ('fp16',):
        return None
    if not 64.0 <= head_dim <= 256:
        return None
    if not 4.0 <= kv_heads <= 24:
        return None
    if not 512.0 <= kv_len <= 524288:
        return None
    if output not in ('all',):
        return None
    if not 0.0 <= page_size <= 0:
        return None
    if not 32.0 <= q_heads <= 192:
        return None
    if world not in (1, 8):
        return None
    if (groups := batch * kv_heads) <= 50.0:
        if groups <= 44.0:
            if q_heads <= 80.0:
                if batch <= 3.5:
                    if batch <= 2.5:
                        if kv_len <= 1500.0:
                            return 0
                        if kv_len <= 3000.0:
                            return 1
                        if kv_len <= 6000.0:
                            return 2
                        if kv_len <= 12000.0:
                            return 3
                        if kv_len <= 100000.0:
                            if world <= 4.0:
                                return 4
                            return 5
                        return 6
                    return 7
                if batch <= 4.5:
                    if kv_len <= 200000.0:
                        return 8
                    return 9
                if kv_len <= 1500.0:
                    return 10
                if kv_len <= 200000.0:
                    return 11
                return 12
            if batch <= 3.5:
                if (cache_mb := s.cache_bytes / 2 ** 20) <= 1100.0:
                    if s.group <= 10.0:
                        if kv_len <= 50000.0:
                            if cache_mb <= 340.0:
                                return 13
                            return 14
                        if batch <= 1.5:
                            return 15
                        return 16
                    if batch <= 2.0:
                        return 17
                    return 18
                return 19
            if batch <= 4.5:
                if kv_len <= 3000.0:
                    return 20
                if kv_len <= 200000.0:
                    return 21
                return 22
            if kv_len <= 3000.0:
                return 23
            return 24
        if kv_len <= 50000.0:
            if q_heads <= 80.0:
                if kv_len <= 6000.0:
                    return 25
                return 26
            return 27
        return 28
    if kv_len <= 50000.0:
        if groups <= 70.0:
            if q_heads <= 80.0:
                if kv_len <= 12000.0:
                    return 29
                if kv_len <= 25000.0:
                    return 30
                return 31
            if kv_len <= 6000.0:
                if groups <= 58.0:
                    return 32
                if kv_len <= 3000.0:
                    return 33
                return 34
            if kv_len <= 25000.0:
                if batch <= 6.0:
                    return 35
                return 36
            if (cache_mb := s.cache_bytes / 2 ** 20) <= 930.0:
                return 37
            return 38
        if groups <= 82.0:
            if batch <= 8.0:
                return 39
            if kv_len <= 6000.0:
                return 40
            return 41
        if (cache_mb := s.cache_bytes / 2 ** 20) <= 70.0:
            return 42
        if kv_len <= 1500.0:
            if (message_kb := s.message_bytes / 1024) <= 1000.0:
                if cache_mb <= 116.0:
                    return 43
                return 44
            return 45
        if kv_len <= 12000.0:
            if batch <= 30.0:
                if groups <= 100.0:
                    return 46
                if groups <= 140.0:
                    if kv_len <= 6000.0:
                        return 47
                    if batch <= 12.0:
                        return 48
                    return 49
                return 50
            if q_heads <= 80.0:
                if kv_len <= 6000.0:
                    return 51
                return 52
            return 53
        if cache_mb <= 1100.0:
            if cache_mb <= 800.0:
                return 54
            return 55
        if batch <= 15.0:
            return 56
        if batch <= 30.0:
            if batch <= 26.0:
                return 57
            return 58
        return 59
    if batch <= 5.5:
        if kv_len <= 200000.0:
            return 60
        return 61
    return 62

EAGER_OWN = {
    ('flash_decode', 1, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 1,
    ('flash_decode', 1, 64, 8, 128, 2048, 8, 'fp16', 'all', 0): 2,
    ('flash_decode', 1, 64, 8, 128, 4096, 8, 'fp16', 'all', 0): 3,
    ('flash_decode', 1, 64, 8, 128, 8192, 8, 'fp16', 'all', 0): 4,
    ('flash_decode', 1, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 5,
    ('flash_decode', 1, 64, 8, 128, 65536, 1, 'fp16', 'all', 0): 6,
    ('flash_decode', 4, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 7,
    ('flash_decode', 4, 64, 8, 128, 2048, 8, 'fp16', 'all', 0): 8,
    ('flash_decode', 4, 64, 8, 128, 4096, 8, 'fp16', 'all', 0): 9,
    ('flash_decode', 4, 64, 8, 128, 8192, 8, 'fp16', 'all', 0): 10,
    ('flash_decode', 4, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 11,
    ('flash_decode', 8, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 12,
    ('flash_decode', 8, 64, 8, 128, 2048, 8, 'fp16', 'all', 0): 13,
    ('flash_decode', 8, 64, 8, 128, 4096, 8, 'fp16', 'all', 0): 14,
    ('flash_decode', 8, 64, 8, 128, 8192, 8, 'fp16', 'all', 0): 15,
    ('flash_decode', 8, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 16,
    ('flash_decode', 16, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 17,
    ('flash_decode', 16, 64, 8, 128, 2048, 8, 'fp16', 'all', 0): 18,
    ('flash_decode', 16, 64, 8, 128, 4096, 8, 'fp16', 'all', 0): 19,
    ('flash_decode', 16, 64, 8, 128, 8192, 8, 'fp16', 'all', 0): 20,
    ('flash_decode', 16, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 21,
}

def eager(s):
    batch, q_heads, kv_heads, head_dim, kv_len, world, dtype, output, page_size = s.batch, s.q_heads, s.kv_heads, s.head_dim, s.kv_len, s.world, s.dtype, s.output, s.page_size
    if kv_len in {1024, 2048, 4096, 8192, 16384, 65536} and (own := EAGER_OWN.get(s.key)) is not None:
        return own
    if not 0.5 <= batch <= 32:
        return None
    if dtype not in ('fp16',):
        return None
    if not 64.0 <= head_dim <= 256:
        return None
    if not 4.0 <= kv_heads <= 24:
        return None
    if not 512.0 <= kv_len <= 524288:
        return None
    if output not in ('all',):
        return None
    if not 0.0 <= page_size <= 0:
        return None
    if not 32.0 <= q_heads <= 192:
        return None
    if world not in (1, 8):
        return None
    return 0

FIND = {'graph': graph, 'eager': eager}

def choose(s, mode, target, kernels, triton, allow_modelled=False, fits=lambda config: True):
    """The config for the shape `s` in this mode ("graph" or "eager") as a dict, or None where BSP is the answer.

    `s` has the fields and properties that the functions above read, as tftune.AllGatherGemm does (`key`: the operation's name and
    the values of all fields). The caller says what it runs: the
    `target`, the hash of each variant's source in `kernels` (tftune.kernels.source.kernel_hash) and the version of `triton`; where
    these are not those of the times, or measured times do not say their Triton, nothing fused is chosen. Whether a config fits the shape
    is for tftune's rules to say: `fits` is asked, and where it says no, a leaf's other config is tried.
    """
    leaf = FIND[mode](s) if mode in FIND and target == TARGET and allow_modelled >= MODELLED else None
    if leaf is None or not (triton.split(".")[:2] == TRITON.split(".")[:2] if TRITON else MODELLED):
        return None
    configs = [CONFIGS[number] for number in ANSWERS[mode][leaf]]
    sound = [c for c in configs if c["variant"] != "bsp" and kernels.get(c["variant"]) == KERNELS[c["variant"]]]
    return next((config for config in sound if fits(config)), None)
