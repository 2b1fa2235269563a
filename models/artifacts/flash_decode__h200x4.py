# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config flash_decode runs on h200x4, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'flash_decode'
TARGET = 'h200x4'
ARCH = 'sm_90'
MODELLED = False
SHA256 = '4cde08663d8c23bc6bba7a9f35cc89a0756b3629d03f8452cae4f26875b891ae'
TRITON = '3.6.0'
KERNELS = {'persistent_ll': '42aa5c90cd7c', 'persistent': 'a9ad04ef8769', 'fused_heads': '058dfc08b88a', 'fused': '44a4a59f2fbf', 'gather': '57c32de506ea', 'no_wait': '38f8209c41d3'}
CONFIGS = [
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 2, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 1, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 2, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 8, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'gather', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'no_wait', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 32, 'heads_per_flag': 0, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 3, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 1, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 64, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 8, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 8, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 33, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 8, 'programs_per_unit': 1, 'xcds': 1},
]
ANSWERS = {'graph': [(43,), (46,), (55,), (43,), (44,), (47,), (1,), (43,), (55,), (47,), (38,), (47,), (38,), (49,), (44,), (47,), (49,), (38,), (37, 38), (44,), (38,), (1,), (44,), (44,), (1,), (38,), (47,), (55,), (1,), (49,), (37, 38), (37, 38), (38,), (49,), (37, 38), (18,), (38,), (49,), (37, 35), (41,), (38,), (41,), (41,), (36, 37), (38,), (36, 37), (38,), (36, 37), (36, 37), (37,), (36,), (37,), (36,), (18,), (38,), (49,), (6,), (53, 49), (38,), (53,), (1,), (53,), (1,), (53, 49), (1,), (53,), (38,), (18,), (1,), (38,), (44,), (55,), (1,), (1,), (38,), (1,), (43,), (36, 37), (38,), (52,), (38,), (36,), (1,), (38,), (38,), (47,), (38,), (37,), (38,), (37,), (36,), (38,), (36,), (1,), (36,), (4,), (43,), (54,), (57,), (57,), (19,), (29,), (49,), (23,), (23,), (31,), (16,), (32,), (34,), (22,), (10,), (53,), (25,), (25,)], 'eager': [(2,), (0,), (45,), (39,), (45,), (45,), (46,), (55,), (44,), (43,), (54,), (54,), (56,), (58,), (26,), (54,), (44,), (42,), (48,), (27,), (17,), (3,), (50,), (51,), (13,), (13,), (13,), (13,), (20,), (20,), (7,), (40,), (28,), (12,), (49,), (5,), (24,), (24,), (24,), (23,), (23,), (15,), (25,), (25,), (9,), (30,), (8,), (52,), (21,), (14,), (36,), (22,), (22,), (22,), (22,), (10,), (11,), (33,)]}

GRAPH_OWN = {
    ('flash_decode', 1, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 96,
    ('flash_decode', 1, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 97,
    ('flash_decode', 4, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 98,
    ('flash_decode', 4, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 99,
    ('flash_decode', 4, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 100,
    ('flash_decode', 4, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 101,
    ('flash_decode', 8, 64, 8, 128, 32768, 4, 'fp16', 'all', 0): 102,
    ('flash_decode', 8, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 103,
    ('flash_decode', 8, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 104,
    ('flash_decode', 8, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 105,
    ('flash_decode', 8, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 106,
    ('flash_decode', 8, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 107,
    ('flash_decode', 16, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 108,
    ('flash_decode', 16, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 109,
    ('flash_decode', 16, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 110,
    ('flash_decode', 16, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 111,
    ('flash_decode', 16, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 112,
    ('flash_decode', 16, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 113,
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
    if (groups := batch * kv_heads) <= 44.0:
        if (message_kb := s.message_bytes / 1024) <= 80.0:
            if batch <= 1.5:
                if groups <= 10.0:
                    if kv_len <= 100000.0:
                        if kv_len <= 1500.0:
                            return 0
                        return 1
                    return 2
                if kv_len <= 1500.0:
                    return 3
                return 4
            if kv_len <= 1500.0:
                return 5
            if world <= 3.0:
                return 6
            if kv_len <= 50000.0:
                return 7
            return 8
        if (cache_mb := s.cache_bytes / 2 ** 20) <= 140.0:
            if groups <= 30.0:
                if q_heads <= 80.0:
                    if kv_len <= 3000.0:
                        return 9
                    return 10
                if kv_len <= 6000.0:
                    return 11
                return 12
            if batch <= 3.5:
                if kv_len <= 3000.0:
                    return 13
                return 14
            if message_kb <= 220.0:
                if batch <= 4.5:
                    return 15
                if kv_len <= 3000.0:
                    return 16
                return 17
            return 18
        if batch <= 3.5:
            if kv_len <= 200000.0:
                if q_heads <= 80.0:
                    if kv_len <= 50000.0:
                        return 19
                    return 20
                if s.group <= 10.0:
                    if batch <= 2.5:
                        return 21
                    return 22
                return 23
            return 24
        if kv_len <= 200000.0:
            if kv_len <= 12000.0:
                return 25
            if batch <= 4.5:
                return 26
            return 27
        return 28
    if (cache_mb := s.cache_bytes / 2 ** 20) <= 270.0:
        if groups <= 70.0:
            if kv_len <= 6000.0:
                if (message_kb := s.message_bytes / 1024) <= 230.0:
                    if cache_mb <= 50.0:
                        if q_heads <= 80.0:
                            return 29
                        return 30
                    if batch <= 6.5:
                        if batch <= 5.0:
                            return 31
                        return 32
                    return 33
                return 34
            if cache_mb <= 200.0:
                if batch <= 5.0:
                    return 35
                return 36
            if q_heads <= 80.0:
                return 37
            return 38
        if groups <= 140.0:
            if q_heads <= 80.0:
                if cache_mb <= 120.0:
                    return 39
                if batch <= 13.0:
                    return 40
                return 41
            if cache_mb <= 38.0:
                return 42
            if kv_len <= 1500.0:
                return 43
            if cache_mb <= 82.0:
                if batch <= 8.0:
                    return 44
                return 45
            if batch <= 9.0:
                if batch <= 6.5:
                    return 46
                return 47
            return 48
        if (message_kb := s.message_bytes / 1024) <= 1000.0:
            if groups <= 200.0:
                return 49
            return 50
        if batch <= 26.0:
            return 51
        return 52
    if groups <= 70.0:
        if kv_len <= 50000.0:
            if groups <= 50.0:
                if batch <= 5.0:
                    return 53
                return 54
            if q_heads <= 80.0:
                if kv_len <= 25000.0:
                    return 55
                return 56
            return 57
        if kv_len <= 200000.0:
            if batch <= 5.5:
                if batch <= 4.5:
                    return 58
                return 59
            if kv_len <= 100000.0:
                if (message_kb := s.message_bytes / 1024) <= 310.0:
                    return 60
                return 61
            if batch <= 7.5:
                return 62
            return 63
        if (message_kb := s.message_bytes / 1024) <= 360.0:
            return 64
        return 65
    if kv_len <= 50000.0:
        if groups <= 200.0:
            if (message_kb := s.message_bytes / 1024) <= 660.0:
                if message_kb <= 360.0:
                    if cache_mb <= 600.0:
                        if groups <= 82.0:
                            if batch <= 8.0:
                                return 66
                            return 67
                        return 68
                    if cache_mb <= 1300.0:
                        if batch <= 8.0:
                            if batch <= 6.5:
                                return 69
                            return 70
                        return 71
                    return 72
                if batch <= 15.0:
                    if batch <= 9.0:
                        if kv_len <= 25000.0:
                            if kv_len <= 12000.0:
                                return 73
                            return 74
                        return 75
                    if groups <= 90.0:
                        return 76
                    if batch <= 11.0:
                        return 77
                    return 78
                if batch <= 18.0:
                    return 79
                return 80
            if groups <= 140.0:
                if kv_len <= 25000.0:
                    return 81
                return 82
            if q_heads <= 80.0:
                return 83
            if groups <= 164.0:
                if kv_len <= 6000.0:
                    return 84
                return 85
            if cache_mb <= 2900.0:
                if kv_len <= 12000.0:
                    if batch <= 15.0:
                        return 86
                    return 87
                return 88
            return 89
        if batch <= 26.0:
            if batch <= 22.0:
                return 90
            return 91
        if q_heads <= 80.0:
            if kv_len <= 12000.0:
                return 92
            return 93
        return 94
    return 95

EAGER_OWN = {
    ('flash_decode', 1, 64, 8, 128, 2048, 4, 'fp16', 'all', 0): 2,
    ('flash_decode', 1, 64, 8, 128, 4096, 4, 'fp16', 'all', 0): 3,
    ('flash_decode', 1, 64, 8, 128, 8192, 4, 'fp16', 'all', 0): 4,
    ('flash_decode', 1, 64, 8, 128, 16384, 4, 'fp16', 'all', 0): 5,
    ('flash_decode', 1, 64, 8, 128, 32768, 2, 'fp16', 'all', 0): 6,
    ('flash_decode', 1, 64, 8, 128, 32768, 4, 'fp16', 'all', 0): 7,
    ('flash_decode', 1, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 8,
    ('flash_decode', 1, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 9,
    ('flash_decode', 1, 96, 12, 128, 4096, 4, 'fp16', 'all', 0): 10,
    ('flash_decode', 1, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 11,
    ('flash_decode', 1, 96, 12, 128, 16384, 4, 'fp16', 'all', 0): 12,
    ('flash_decode', 1, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 13,
    ('flash_decode', 1, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 14,
    ('flash_decode', 1, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 15,
    ('flash_decode', 1, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 16,
    ('flash_decode', 4, 64, 8, 128, 2048, 4, 'fp16', 'all', 0): 17,
    ('flash_decode', 4, 64, 8, 128, 4096, 4, 'fp16', 'all', 0): 18,
    ('flash_decode', 4, 64, 8, 128, 8192, 4, 'fp16', 'all', 0): 19,
    ('flash_decode', 4, 64, 8, 128, 16384, 4, 'fp16', 'all', 0): 20,
    ('flash_decode', 4, 64, 8, 128, 32768, 4, 'fp16', 'all', 0): 21,
    ('flash_decode', 4, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 22,
    ('flash_decode', 4, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 23,
    ('flash_decode', 4, 96, 12, 128, 4096, 4, 'fp16', 'all', 0): 24,
    ('flash_decode', 4, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 25,
    ('flash_decode', 4, 96, 12, 128, 16384, 4, 'fp16', 'all', 0): 26,
    ('flash_decode', 4, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 27,
    ('flash_decode', 4, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 28,
    ('flash_decode', 4, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 29,
    ('flash_decode', 4, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 30,
    ('flash_decode', 8, 64, 8, 128, 2048, 4, 'fp16', 'all', 0): 31,
    ('flash_decode', 8, 64, 8, 128, 4096, 4, 'fp16', 'all', 0): 32,
    ('flash_decode', 8, 64, 8, 128, 8192, 4, 'fp16', 'all', 0): 33,
    ('flash_decode', 8, 64, 8, 128, 16384, 4, 'fp16', 'all', 0): 34,
    ('flash_decode', 8, 64, 8, 128, 32768, 4, 'fp16', 'all', 0): 35,
    ('flash_decode', 8, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 36,
    ('flash_decode', 8, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 37,
    ('flash_decode', 8, 96, 12, 128, 4096, 4, 'fp16', 'all', 0): 38,
    ('flash_decode', 8, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 39,
    ('flash_decode', 8, 96, 12, 128, 16384, 4, 'fp16', 'all', 0): 40,
    ('flash_decode', 8, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 41,
    ('flash_decode', 8, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 42,
    ('flash_decode', 8, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 43,
    ('flash_decode', 8, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 44,
    ('flash_decode', 16, 64, 8, 128, 2048, 4, 'fp16', 'all', 0): 45,
    ('flash_decode', 16, 64, 8, 128, 4096, 4, 'fp16', 'all', 0): 46,
    ('flash_decode', 16, 64, 8, 128, 8192, 4, 'fp16', 'all', 0): 47,
    ('flash_decode', 16, 64, 8, 128, 16384, 4, 'fp16', 'all', 0): 48,
    ('flash_decode', 16, 64, 8, 128, 32768, 4, 'fp16', 'all', 0): 49,
    ('flash_decode', 16, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 50,
    ('flash_decode', 16, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 51,
    ('flash_decode', 16, 96, 12, 128, 4096, 4, 'fp16', 'all', 0): 52,
    ('flash_decode', 16, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 53,
    ('flash_decode', 16, 96, 12, 128, 16384, 4, 'fp16', 'all', 0): 54,
    ('flash_decode', 16, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 55,
    ('flash_decode', 16, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 56,
    ('flash_decode', 16, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 57,
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
    if batch <= 1.5:
        return 0
    return 1

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
