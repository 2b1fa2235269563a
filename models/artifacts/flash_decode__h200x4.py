# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config flash_decode runs on h200x4, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'flash_decode'
TARGET = 'h200x4'
ARCH = 'sm_90'
MODELLED = False
SHA256 = '0a426d7161d1469647561e6f79ddc5204606411ae52d26368b98a0c90e764d26'
TRITON = '3.6.0'
KERNELS = {'persistent_ll': '42aa5c90cd7c', 'persistent': 'a9ad04ef8769', 'fused_heads': '058dfc08b88a', 'fused': '44a4a59f2fbf', 'gather': '57c32de506ea'}
CONFIGS = [
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 2, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 8, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 2, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 1, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 2, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 8, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'gather', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 32, 'heads_per_flag': 0, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 3, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 1, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 1, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 8, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
]
ANSWERS = {'graph': [(44,), (40,), (43,), (41,), (40,), (44,), (46,), (33, 34), (41,), (34,), (33, 34), (43,), (40,), (51,), (34,), (41,), (43,), (34,), (41,), (34,), (0,), (44,), (18,), (44,), (44,), (18,), (44,), (4,), (34,), (51,), (51,), (49, 44), (46,), (34,), (33, 34), (18,), (46,), (33, 29), (39,), (34,), (39,), (18,), (32, 33), (34,), (39,), (39,), (32, 33), (33,), (33,), (33,), (32,), (33,), (32,), (34,), (34,), (0,), (46,), (49, 46), (0,), (49,), (34,), (0,), (18,), (18,), (34,), (18,), (0,), (44,), (32, 33), (34,), (34,), (32, 33), (32, 39), (33,), (34,), (32,), (34,), (33,), (46,), (32,), (44,), (33,), (34,), (32,), (34,), (32,), (34,), (3,), (49,), (0,), (0,), (32,), (3,), (32,), (40,), (50,), (52,), (52,), (24,), (20,), (20,), (26,), (15,), (27,), (28,), (19,), (9,), (49,), (21,), (21,)], 'eager': [(43,), (40,), (38,), (43,), (43,), (1,), (40,), (2,), (13,), (6,), (0,), (20,), (19,), (19,), (0,), (19,), (7,), (42,), (36,), (42,), (42,), (51,), (41,), (50,), (50,), (35,), (22,), (22,), (50,), (47,), (45,), (23,), (16,), (53,), (31,), (30,), (11,), (18,), (11,), (12,), (12,), (24,), (37,), (54,), (46,), (46,), (17,), (33,), (20,), (8,), (20,), (14,), (10,), (21,), (5,), (25,), (48,), (48,), (13,), (32,), (9,), (21,), (10,)]}

GRAPH_OWN = {
    ('flash_decode', 1, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 94,
    ('flash_decode', 1, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 95,
    ('flash_decode', 4, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 96,
    ('flash_decode', 4, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 97,
    ('flash_decode', 4, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 98,
    ('flash_decode', 8, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 99,
    ('flash_decode', 8, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 100,
    ('flash_decode', 8, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 101,
    ('flash_decode', 8, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 102,
    ('flash_decode', 8, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 103,
    ('flash_decode', 16, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 104,
    ('flash_decode', 16, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 105,
    ('flash_decode', 16, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 106,
    ('flash_decode', 16, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 107,
    ('flash_decode', 16, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 108,
    ('flash_decode', 16, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 109,
}

def graph(s):
    batch, q_heads, kv_heads, head_dim, kv_len, world, dtype, output, page_size = s.batch, s.q_heads, s.kv_heads, s.head_dim, s.kv_len, s.world, s.dtype, s.output, s.page_size
    if kv_len in {1024, 2048, 8192, 32768, 65536, 131072, 262144} and (own := GRAPH_OWN.get(s.key)) is not None:
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
    if world not in (2, 4):
        return None
    if batch <= 5.5:
        if kv_len <= 6000.0:
            if (message_kb := s.message_bytes / 1024) <= 80.0:
                if kv_len <= 1500.0:
                    if q_heads <= 80.0:
                        return 0
                    return 1
                if (groups := batch * kv_heads) <= 10.0:
                    return 2
                if batch <= 1.5:
                    return 3
                return 4
            if (cache_mb := s.cache_bytes / 2 ** 20) <= 70.0:
                if (groups := batch * kv_heads) <= 44.0:
                    if groups <= 34.0:
                        return 5
                    return 6
                return 7
            if message_kb <= 180.0:
                if batch <= 4.0:
                    return 8
                return 9
            return 10
        if batch <= 3.5:
            if q_heads <= 80.0:
                if batch <= 1.5:
                    return 11
                if batch <= 2.5:
                    if kv_len <= 50000.0:
                        return 12
                    return 13
                return 14
            if batch <= 1.5:
                if s.group <= 10.0:
                    return 15
                return 16
            if kv_len <= 200000.0:
                if batch <= 2.5:
                    return 17
                if s.group <= 10.0:
                    return 18
                return 19
            return 20
        if batch <= 4.5:
            if (cache_mb := s.cache_bytes / 2 ** 20) <= 2600.0:
                if q_heads <= 80.0:
                    return 21
                if cache_mb <= 300.0:
                    if s.group <= 10.0:
                        return 22
                    return 23
                if (groups := batch * kv_heads) <= 40.0:
                    return 24
                return 25
            if (groups := batch * kv_heads) <= 40.0:
                return 26
            return 27
        if q_heads <= 80.0:
            if kv_len <= 25000.0:
                return 28
            return 29
        if (groups := batch * kv_heads) <= 50.0:
            return 30
        return 31
    if (cache_mb := s.cache_bytes / 2 ** 20) <= 270.0:
        if (groups := batch * kv_heads) <= 76.0:
            if (message_kb := s.message_bytes / 1024) <= 210.0:
                if kv_len <= 3000.0:
                    return 32
                return 33
            if groups <= 70.0:
                if batch <= 6.5:
                    if kv_len <= 6000.0:
                        return 34
                    return 35
                if q_heads <= 80.0:
                    return 36
                return 37
            if kv_len <= 1500.0:
                return 38
            return 39
        if groups <= 140.0:
            if groups <= 82.0:
                if kv_len <= 1500.0:
                    return 40
                return 41
            if groups <= 100.0:
                if cache_mb <= 180.0:
                    return 42
                return 43
            if (message_kb := s.message_bytes / 1024) <= 470.0:
                return 44
            if q_heads <= 80.0:
                return 45
            return 46
        if groups <= 250.0:
            if batch <= 13.0:
                return 47
            if (message_kb := s.message_bytes / 1024) <= 660.0:
                return 48
            if groups <= 200.0:
                return 49
            return 50
        if batch <= 26.0:
            return 51
        return 52
    if (groups := batch * kv_heads) <= 70.0:
        if batch <= 6.5:
            if q_heads <= 80.0:
                return 53
            if kv_len <= 50000.0:
                return 54
            return 55
        if kv_len <= 50000.0:
            if q_heads <= 80.0:
                return 56
            return 57
        if (message_kb := s.message_bytes / 1024) <= 240.0:
            return 58
        return 59
    if kv_len <= 50000.0:
        if (message_kb := s.message_bytes / 1024) <= 1000.0:
            if batch <= 15.0:
                if batch <= 7.5:
                    if cache_mb <= 1200.0:
                        return 60
                    return 61
                if batch <= 13.0:
                    if groups <= 110.0:
                        if kv_len <= 25000.0:
                            if cache_mb <= 350.0:
                                return 62
                            if groups <= 90.0:
                                return 63
                            return 64
                        if cache_mb <= 1400.0:
                            return 65
                        if batch <= 10.0:
                            return 66
                        return 67
                    if batch <= 11.0:
                        return 68
                    return 69
                if s.group <= 10.0:
                    return 70
                return 71
            if batch <= 18.0:
                if groups <= 160.0:
                    return 72
                return 73
            if batch <= 26.0:
                if batch <= 22.0:
                    if s.group <= 10.0:
                        if q_heads <= 80.0:
                            return 74
                        return 75
                    return 76
                if kv_len <= 12000.0:
                    return 77
                return 78
            if kv_len <= 6000.0:
                return 79
            return 80
        if groups <= 200.0:
            return 81
        if cache_mb <= 4400.0:
            if batch <= 26.0:
                return 82
            return 83
        if batch <= 30.0:
            return 84
        return 85
    if batch <= 15.0:
        if groups <= 116.0:
            if cache_mb <= 2400.0:
                return 86
            return 87
        if kv_len <= 200000.0:
            if cache_mb <= 4096.0:
                return 88
            return 89
        return 90
    if groups <= 140.0:
        return 91
    if batch <= 30.0:
        return 92
    return 93

EAGER_OWN = {
    ('flash_decode', 1, 64, 8, 128, 2048, 4, 'fp16', 'all', 0): 17,
    ('flash_decode', 1, 64, 8, 128, 4096, 4, 'fp16', 'all', 0): 18,
    ('flash_decode', 1, 64, 8, 128, 8192, 4, 'fp16', 'all', 0): 19,
    ('flash_decode', 1, 64, 8, 128, 16384, 4, 'fp16', 'all', 0): 20,
    ('flash_decode', 1, 64, 8, 128, 32768, 4, 'fp16', 'all', 0): 21,
    ('flash_decode', 1, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 22,
    ('flash_decode', 1, 96, 12, 128, 4096, 4, 'fp16', 'all', 0): 23,
    ('flash_decode', 1, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 24,
    ('flash_decode', 1, 96, 12, 128, 16384, 4, 'fp16', 'all', 0): 25,
    ('flash_decode', 1, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 26,
    ('flash_decode', 1, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 27,
    ('flash_decode', 1, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 28,
    ('flash_decode', 4, 64, 8, 128, 2048, 4, 'fp16', 'all', 0): 29,
    ('flash_decode', 4, 64, 8, 128, 4096, 4, 'fp16', 'all', 0): 30,
    ('flash_decode', 4, 64, 8, 128, 8192, 4, 'fp16', 'all', 0): 31,
    ('flash_decode', 4, 64, 8, 128, 16384, 4, 'fp16', 'all', 0): 32,
    ('flash_decode', 4, 64, 8, 128, 32768, 4, 'fp16', 'all', 0): 33,
    ('flash_decode', 4, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 34,
    ('flash_decode', 4, 96, 12, 128, 4096, 4, 'fp16', 'all', 0): 35,
    ('flash_decode', 4, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 36,
    ('flash_decode', 4, 96, 12, 128, 16384, 4, 'fp16', 'all', 0): 37,
    ('flash_decode', 4, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 38,
    ('flash_decode', 4, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 39,
    ('flash_decode', 4, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 40,
    ('flash_decode', 4, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 41,
    ('flash_decode', 8, 64, 8, 128, 2048, 4, 'fp16', 'all', 0): 42,
    ('flash_decode', 8, 64, 8, 128, 4096, 4, 'fp16', 'all', 0): 43,
    ('flash_decode', 8, 64, 8, 128, 8192, 4, 'fp16', 'all', 0): 44,
    ('flash_decode', 8, 64, 8, 128, 16384, 4, 'fp16', 'all', 0): 45,
    ('flash_decode', 8, 64, 8, 128, 32768, 4, 'fp16', 'all', 0): 46,
    ('flash_decode', 8, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 47,
    ('flash_decode', 8, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 48,
    ('flash_decode', 8, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 49,
    ('flash_decode', 8, 96, 12, 128, 16384, 4, 'fp16', 'all', 0): 50,
    ('flash_decode', 8, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 51,
    ('flash_decode', 8, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 52,
    ('flash_decode', 8, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 53,
    ('flash_decode', 8, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 54,
    ('flash_decode', 16, 64, 8, 128, 2048, 4, 'fp16', 'all', 0): 55,
    ('flash_decode', 16, 64, 8, 128, 8192, 4, 'fp16', 'all', 0): 56,
    ('flash_decode', 16, 64, 8, 128, 16384, 4, 'fp16', 'all', 0): 57,
    ('flash_decode', 16, 64, 8, 128, 32768, 4, 'fp16', 'all', 0): 58,
    ('flash_decode', 16, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 59,
    ('flash_decode', 16, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 60,
    ('flash_decode', 16, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 61,
    ('flash_decode', 16, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 62,
}

def eager(s):
    batch, q_heads, kv_heads, head_dim, kv_len, world, dtype, output, page_size = s.batch, s.q_heads, s.kv_heads, s.head_dim, s.kv_len, s.world, s.dtype, s.output, s.page_size
    if kv_len in {1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144} and (own := EAGER_OWN.get(s.key)) is not None:
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
    if world not in (2, 4):
        return None
    if (cache_mb := s.cache_bytes / 2 ** 20) <= 128.0:
        if cache_mb <= 40.0:
            if (groups := batch * kv_heads) <= 10.0:
                return 0
            if groups <= 40.0:
                return 1
            return 2
        if batch <= 2.0:
            if cache_mb <= 64.0:
                return 3
            if world <= 2.0:
                return 4
            return 5
        if (groups := batch * kv_heads) <= 32.0:
            return 6
        return 7
    if cache_mb <= 300.0:
        if (groups := batch * kv_heads) <= 160.0:
            if q_heads <= 80.0:
                if kv_len <= 4096.0:
                    return 8
                return 9
            if batch <= 7.5:
                return 10
            return 11
        return 12
    if kv_len <= 4096.0:
        return 13
    if cache_mb <= 1800.0:
        if (groups := batch * kv_heads) <= 180.0:
            return 14
        return 15
    return 16

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
