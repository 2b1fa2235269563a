# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config flash_decode runs on h200x8, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'flash_decode'
TARGET = 'h200x8'
ARCH = 'sm_90'
MODELLED = False
SHA256 = '64bff814718fcdca1aabb4bd7a686eefbb6c2e7b3cc767705d20e0e4a1dda7b6'
TRITON = '3.6.0'
KERNELS = {'persistent_ll': '42aa5c90cd7c', 'persistent': 'a9ad04ef8769', 'fused': '44a4a59f2fbf', 'no_wait': '38f8209c41d3', 'fused_heads': '058dfc08b88a'}
CONFIGS = [
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 128, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'no_wait', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 2, 'heads_per_program': 2, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
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
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 33, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
]
ANSWERS = {'graph': [(28,), (28,), (28,), (28,), (0,), (28,), (0,), (22,), (22,), (0,), (23,), (7,), (0,), (25,), (0,), (25,), (0,), (28,), (16,), (25,), (22,), (16,), (0,), (23,), (7,), (23,), (7,), (7,), (3,), (23,), (0,), (22,), (23,), (23,), (16,), (16,), (0,), (7,), (0,), (7,), (22,), (7,), (18, 23), (23,), (18,), (18,), (16,), (18, 23), (16,), (0,), (23,), (23,), (0,), (18,), (7,), (0,), (7,), (5,), (0,), (0,), (7,), (0,), (0,), (26,), (33,), (2,), (29,), (30,), (17,), (17,), (13,), (13,), (13,)], 'eager': [(24,), (14,), (24,), (25,), (24,), (25,), (25,), (14,), (32,), (14,), (15,), (23,), (31, 24), (20,), (31,), (15,), (20,), (14,), (24,), (15,), (7,), (19,), (7,), (23,), (9,), (9,), (19, 15), (15,), (19,), (10,), (10,), (19,), (7,), (7,), (11,), (10,), (19,), (15,), (10,), (15,), (19,), (7,), (1,), (7,), (1,), (7,), (9,), (19,), (11,), (1,), (10,), (7,), (19,), (1,), (24,), (14,), (20,), (7,), (9,), (9,), (11,), (24,), (25,), (32,), (31,), (7,), (7,), (4,), (6,), (1,), (1,), (32,), (1,), (7,), (1,), (27,), (28,), (34,), (21,), (2,), (29,), (20,), (8,), (30,), (12,), (10,)]}

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
    ('flash_decode', 1, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 75,
    ('flash_decode', 1, 64, 8, 128, 2048, 8, 'fp16', 'all', 0): 76,
    ('flash_decode', 1, 64, 8, 128, 8192, 8, 'fp16', 'all', 0): 77,
    ('flash_decode', 1, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 78,
    ('flash_decode', 1, 64, 8, 128, 65536, 1, 'fp16', 'all', 0): 79,
    ('flash_decode', 4, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 80,
    ('flash_decode', 4, 64, 8, 128, 2048, 8, 'fp16', 'all', 0): 81,
    ('flash_decode', 4, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 82,
    ('flash_decode', 8, 64, 8, 128, 1024, 8, 'fp16', 'all', 0): 83,
    ('flash_decode', 8, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 84,
    ('flash_decode', 16, 64, 8, 128, 16384, 8, 'fp16', 'all', 0): 85,
}

def eager(s):
    batch, q_heads, kv_heads, head_dim, kv_len, world, dtype, output, page_size = s.batch, s.q_heads, s.kv_heads, s.head_dim, s.kv_len, s.world, s.dtype, s.output, s.page_size
    if kv_len in {1024, 2048, 8192, 16384, 65536} and (own := EAGER_OWN.get(s.key)) is not None:
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
    if kv_len <= 25000.0:
        if batch <= 6.5:
            if batch <= 3.5:
                if q_heads <= 80.0:
                    if batch <= 2.5:
                        return 0
                    return 1
                if (cache_mb := s.cache_bytes / 2 ** 20) <= 70.0:
                    if kv_len <= 1500.0:
                        if batch <= 1.5:
                            return 2
                        return 3
                    if batch <= 2.5:
                        if batch <= 1.5:
                            if (groups := batch * kv_heads) <= 10.0:
                                return 4
                            return 5
                        return 6
                    return 7
                if batch <= 1.5:
                    return 8
                return 9
            if (cache_mb := s.cache_bytes / 2 ** 20) <= 70.0:
                if cache_mb <= 31.0:
                    if cache_mb <= 18.0:
                        return 10
                    return 11
                if batch <= 4.5:
                    if kv_len <= 3000.0:
                        return 12
                    return 13
                if (groups := batch * kv_heads) <= 44.0:
                    return 14
                return 15
            if (groups := batch * kv_heads) <= 36.0:
                return 16
            if groups <= 54.0:
                if groups <= 44.0:
                    if kv_len <= 6000.0:
                        return 17
                    return 18
                if kv_len <= 6000.0:
                    return 19
                return 20
            if batch <= 5.5:
                return 21
            return 22
        if (cache_mb := s.cache_bytes / 2 ** 20) <= 540.0:
            if (message_kb := s.message_bytes / 1024) <= 600.0:
                if (groups := batch * kv_heads) <= 70.0:
                    if q_heads <= 80.0:
                        if kv_len <= 6000.0:
                            if cache_mb <= 120.0:
                                return 23
                            return 24
                        return 25
                    return 26
                if cache_mb <= 270.0:
                    if groups <= 124.0:
                        if groups <= 100.0:
                            return 27
                        if kv_len <= 1500.0:
                            return 28
                        return 29
                    if q_heads <= 80.0:
                        return 30
                    return 31
                if cache_mb <= 360.0:
                    return 32
                if cache_mb <= 400.0:
                    if q_heads <= 80.0:
                        return 33
                    return 34
                return 35
            if batch <= 18.0:
                return 36
            if (groups := batch * kv_heads) <= 200.0:
                return 37
            if groups <= 230.0:
                if kv_len <= 1500.0:
                    return 38
                return 39
            return 40
        if batch <= 26.0:
            if (message_kb := s.message_bytes / 1024) <= 730.0:
                if batch <= 15.0:
                    return 41
                if batch <= 18.0:
                    return 42
                return 43
            if (groups := batch * kv_heads) <= 180.0:
                if batch <= 18.0:
                    return 44
                return 45
            if groups <= 256.0:
                return 46
            if kv_len <= 6000.0:
                return 47
            return 48
        if q_heads <= 80.0:
            if batch <= 30.0:
                return 49
            return 50
        if batch <= 30.0:
            return 51
        return 52
    if (cache_mb := s.cache_bytes / 2 ** 20) <= 1400.0:
        if q_heads <= 80.0:
            if batch <= 5.5:
                if batch <= 3.5:
                    if world <= 4.0:
                        return 53
                    if batch <= 2.5:
                        return 54
                    return 55
                if batch <= 4.5:
                    return 56
                return 57
            if batch <= 7.5:
                return 58
            if batch <= 9.0:
                return 59
            return 60
        if batch <= 3.5:
            if (groups := batch * kv_heads) <= 10.0:
                return 61
            if cache_mb <= 256.0:
                return 62
            return 63
        if (groups := batch * kv_heads) <= 44.0:
            if batch <= 4.5:
                return 64
            return 65
        return 66
    if cache_mb <= 1700.0:
        if batch <= 7.0:
            return 67
        return 68
    if batch <= 3.5:
        if cache_mb <= 2200.0:
            return 69
        if kv_len <= 200000.0:
            return 70
        return 71
    if cache_mb <= 1860.0:
        return 72
    if cache_mb <= 2000.0:
        return 73
    return 74

FIND = {'graph': graph, 'eager': eager}

def choose(s, mode, target, kernels, triton, allow_modelled=False, fits=lambda config: True):
    """The config for the shape `s` in this mode ("graph" or "eager") as a dict, or None where BSP is the answer.

    `s` has the fields and properties that the functions above read, as tftune.AllGatherGemm does (`key`: the operation's name and
    the values of all fields). The caller says what it runs: the
    `target`, the hash of each variant's source in `kernels` (tftune.kernels.source.kernel_hash) and the version of `triton`; where
    these are not those of the times, nothing fused is chosen. Whether a config fits the shape is for tftune's rules to say: `fits` is
    asked, and where it says no, a leaf's other config is tried.
    """
    leaf = FIND[mode](s) if mode in FIND and target == TARGET and allow_modelled >= MODELLED else None
    if leaf is None or (TRITON and triton.split(".")[:2] != TRITON.split(".")[:2]):
        return None
    configs = [CONFIGS[number] for number in ANSWERS[mode][leaf]]
    sound = [c for c in configs if c["variant"] != "bsp" and kernels.get(c["variant"]) == KERNELS[c["variant"]]]
    return next((config for config in sound if fits(config)), None)
