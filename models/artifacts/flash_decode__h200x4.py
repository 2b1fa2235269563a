# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config flash_decode runs on h200x4, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'flash_decode'
TARGET = 'h200x4'
ARCH = 'sm_90'
MODELLED = False
SHA256 = '3b768fd38f89f2fac1981dd8ea907ee1615d4dcad8eb485466f394a03f143497'
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
ANSWERS = {'graph': [(39,), (42,), (39,), (43,), (45,), (32, 33), (40,), (33,), (32, 33), (42,), (39,), (50,), (33,), (40,), (42,), (33,), (40,), (0,), (43,), (18,), (4,), (50,), (48, 43), (45,), (33,), (45,), (32, 33), (38,), (33,), (38,), (18,), (31, 32), (33,), (38,), (31, 32), (32,), (31,), (32,), (31,), (33,), (0,), (45,), (0,), (48,), (33,), (0,), (18,), (33,), (0,), (31, 32), (33,), (33,), (31, 32), (31, 38), (32,), (33,), (31,), (32,), (33,), (31,), (33,), (3,), (48,), (0,), (31,), (3,), (31,), (49,), (51,), (51,), (24,), (20,), (20,), (26,), (15,), (27,), (28,), (19,), (9,), (48,), (21,), (21,)], 'eager': [(42,), (39,), (37,), (42,), (42,), (1,), (39,), (2,), (13,), (6,), (0,), (20,), (19,), (19,), (0,), (19,), (7,), (41,), (35,), (41,), (41,), (50,), (40,), (49,), (49,), (34,), (22,), (22,), (49,), (46,), (44,), (23,), (16,), (52,), (30,), (29,), (11,), (18,), (11,), (12,), (12,), (24,), (36,), (53,), (45,), (45,), (17,), (32,), (20,), (8,), (20,), (14,), (10,), (21,), (5,), (25,), (47,), (47,), (13,), (31,), (9,), (21,), (10,)]}

GRAPH_OWN = {
    ('flash_decode', 1, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 67,
    ('flash_decode', 4, 96, 12, 128, 1024, 4, 'fp16', 'all', 0): 68,
    ('flash_decode', 4, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 69,
    ('flash_decode', 4, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 70,
    ('flash_decode', 8, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 71,
    ('flash_decode', 8, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 72,
    ('flash_decode', 8, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 73,
    ('flash_decode', 8, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 74,
    ('flash_decode', 8, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 75,
    ('flash_decode', 16, 96, 12, 128, 2048, 4, 'fp16', 'all', 0): 76,
    ('flash_decode', 16, 96, 12, 128, 8192, 4, 'fp16', 'all', 0): 77,
    ('flash_decode', 16, 96, 12, 128, 32768, 4, 'fp16', 'all', 0): 78,
    ('flash_decode', 16, 96, 12, 128, 65536, 4, 'fp16', 'all', 0): 79,
    ('flash_decode', 16, 96, 12, 128, 131072, 4, 'fp16', 'all', 0): 80,
    ('flash_decode', 16, 96, 12, 128, 262144, 4, 'fp16', 'all', 0): 81,
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
                if (groups := batch * kv_heads) <= 10.0:
                    if kv_len <= 1500.0:
                        return 0
                    return 1
                return 2
            if (cache_mb := s.cache_bytes / 2 ** 20) <= 70.0:
                if (groups := batch * kv_heads) <= 44.0:
                    if groups <= 34.0:
                        return 3
                    return 4
                return 5
            if message_kb <= 180.0:
                if batch <= 4.0:
                    return 6
                return 7
            return 8
        if batch <= 3.5:
            if q_heads <= 80.0:
                if batch <= 2.5:
                    if batch <= 1.5:
                        return 9
                    if kv_len <= 50000.0:
                        return 10
                    return 11
                return 12
            if batch <= 1.5:
                if s.group <= 10.0:
                    return 13
                return 14
            if (groups := batch * kv_heads) <= 32.0:
                return 15
            if kv_len <= 200000.0:
                return 16
            return 17
        if batch <= 4.5:
            if (groups := batch * kv_heads) <= 40.0:
                return 18
            if kv_len <= 100000.0:
                return 19
            return 20
        if (groups := batch * kv_heads) <= 50.0:
            return 21
        return 22
    if (cache_mb := s.cache_bytes / 2 ** 20) <= 270.0:
        if (groups := batch * kv_heads) <= 76.0:
            if (message_kb := s.message_bytes / 1024) <= 210.0:
                if kv_len <= 3000.0:
                    return 23
                return 24
            if groups <= 70.0:
                if message_kb <= 270.0:
                    return 25
                return 26
            if kv_len <= 1500.0:
                return 27
            return 28
        if groups <= 140.0:
            if groups <= 82.0:
                if kv_len <= 1500.0:
                    return 29
                return 30
            if groups <= 100.0:
                if cache_mb <= 180.0:
                    return 31
                return 32
            if q_heads <= 80.0:
                return 33
            return 34
        if groups <= 250.0:
            if groups <= 200.0:
                return 35
            return 36
        if batch <= 26.0:
            return 37
        return 38
    if (groups := batch * kv_heads) <= 70.0:
        if batch <= 6.5:
            if kv_len <= 50000.0:
                return 39
            return 40
        if (message_kb := s.message_bytes / 1024) <= 240.0:
            if kv_len <= 25000.0:
                return 41
            return 42
        return 43
    if kv_len <= 50000.0:
        if (message_kb := s.message_bytes / 1024) <= 1000.0:
            if batch <= 15.0:
                if batch <= 7.5:
                    if cache_mb <= 1200.0:
                        return 44
                    return 45
                if batch <= 13.0:
                    if groups <= 90.0:
                        return 46
                    if batch <= 11.0:
                        if batch <= 9.0:
                            if kv_len <= 25000.0:
                                return 47
                            return 48
                        return 49
                    return 50
                if s.group <= 10.0:
                    return 51
                return 52
            if batch <= 18.0:
                if groups <= 160.0:
                    return 53
                return 54
            if groups <= 230.0:
                return 55
            return 56
        if groups <= 200.0:
            return 57
        if batch <= 26.0:
            return 58
        return 59
    if batch <= 15.0:
        if groups <= 116.0:
            if cache_mb <= 2400.0:
                return 60
            return 61
        if cache_mb <= 4096.0:
            return 62
        return 63
    if groups <= 140.0:
        return 64
    if batch <= 30.0:
        return 65
    return 66

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
