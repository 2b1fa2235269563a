# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config flash_decode runs on h200x2, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'flash_decode'
TARGET = 'h200x2'
ARCH = 'sm_90'
MODELLED = False
SHA256 = '103e6ebaacf13f15f059e368d5d75bbbdfb15f9eb5c3b6137dc5c9a680deb22f'
TRITON = '3.6.0'
KERNELS = {'persistent_ll': '42aa5c90cd7c', 'fused_heads': '058dfc08b88a', 'persistent': 'a9ad04ef8769', 'fused': '44a4a59f2fbf', 'no_wait': '38f8209c41d3', 'gather': '57c32de506ea'}
CONFIGS = [
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 25, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 64, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 8, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'bsp', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 1, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 4, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 64, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 2, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 4, 'heads_per_program': 4, 'kv_splits': 4, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'fused_heads', 'block_n': 128, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'gather', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'no_wait', 'block_n': 128, 'heads_per_program': 8, 'kv_splits': 8, 'num_stages': 3, 'num_warps': 4, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 64, 'heads_per_flag': 16, 'heads_per_program': 8, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 2, 'heads_per_program': 2, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 8, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent', 'block_n': 128, 'heads_per_flag': 8, 'heads_per_program': 8, 'kv_splits': 2, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 32, 'heads_per_program': 1, 'kv_splits': 33, 'num_stages': 5, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 32, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 5, 'num_warps': 4, 'programs_per_unit': 3, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 2, 'kv_splits': 11, 'num_stages': 5, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 2, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 4, 'kv_splits': 8, 'num_stages': 2, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 1, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 64, 'heads_per_program': 8, 'kv_splits': 4, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 11, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 1, 'kv_splits': 16, 'num_stages': 3, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 2, 'num_warps': 4, 'programs_per_unit': 2, 'xcds': 1},
    {'variant': 'persistent_ll', 'block_n': 128, 'heads_per_program': 4, 'kv_splits': 11, 'num_stages': 4, 'num_warps': 4, 'programs_per_unit': 1, 'xcds': 1},
]
ANSWERS = {'graph': [(27,), (30,), (27,), (32,), (25,), (29,), (37, 35), (29,), (31,), (38,), (31,), (37,), (31,), (34, 28), (33,), (37,), (33,), (19,), (29,), (17,), (33,), (26,), (33,), (33,), (37,), (24,), (19,), (26,), (0,), (19,), (22,), (19,), (0,), (36,), (36,), (0,), (37,), (29,), (37,), (13,), (37,), (0,), (28,), (21,), (35,), (36,), (0,), (38,), (37,), (22,), (29,), (0,), (25,), (22,), (37,), (22,), (34,), (0,), (34, 29), (37,), (38,), (0,), (21,), (37,), (0,), (21,), (19,), (33,), (0,), (19,), (37,), (26,), (18,), (24,), (0,), (19,), (18,), (26,), (18,), (18,), (0,), (37,), (0,), (0,), (19,), (1,)], 'eager': [(27,), (32,), (30,), (29,), (37, 30), (37,), (29,), (24,), (37,), (31,), (24,), (34, 29), (33,), (37,), (33,), (17,), (3,), (1,), (2,), (26,), (33,), (34,), (33,), (1,), (33,), (1,), (1,), (24,), (26,), (1,), (27,), (36,), (37,), (1,), (38,), (35,), (1,), (27,), (12,), (22,), (29,), (2,), (1,), (35,), (23,), (12,), (1,), (15,), (38,), (28,), (22,), (1,), (7,), (18,), (1,), (22,), (2,), (37,), (21,), (18,), (2,), (1,), (18,), (19,), (37,), (1,), (26,), (1,), (2,), (18,), (26,), (4,), (1,), (18,), (1,), (1,), (34, 29), (1,), (1,), (18,), (18,), (1,), (1,), (1,), (18,), (1,), (24,), (1,), (1,), (18,), (1,), (14,), (9,), (5,), (6,), (28,), (31,), (28,), (10,), (11,), (20,), (8,), (33,), (31,), (11,), (16,), (11,)]}

GRAPH_OWN = {
    ('flash_decode', 1, 64, 8, 128, 65536, 1, 'fp16', 'all', 0): 85,
}

def graph(s):
    batch, q_heads, kv_heads, head_dim, kv_len, world, dtype, output, page_size = s.batch, s.q_heads, s.kv_heads, s.head_dim, s.kv_len, s.world, s.dtype, s.output, s.page_size
    if kv_len in {65536} and (own := GRAPH_OWN.get(s.key)) is not None:
        return own
    if not 0.5 <= batch <= 32:
        return None
    if dtype not in ('fp16',):
        return None
    if not 64.0 <= head_dim <= 256:
        return None
    if not 4.0 <= kv_heads <= 24:
        return None
    if not 512.0 <= kv_len <= 131072:
        return None
    if output not in ('all',):
        return None
    if not 0.0 <= page_size <= 0:
        return None
    if not 32.0 <= q_heads <= 192:
        return None
    if world not in (1, 2):
        return None
    if kv_len <= 6000.0:
        if (groups := batch * kv_heads) <= 34.0:
            if groups <= 14.0:
                if s.group <= 10.0:
                    if q_heads <= 80.0:
                        return 0
                    return 1
                return 2
            if groups <= 20.0:
                if kv_len <= 3000.0:
                    return 3
                return 4
            if batch <= 3.5:
                if kv_len <= 3000.0:
                    return 5
                return 6
            return 7
        if groups <= 70.0:
            if (cache_mb := s.cache_bytes / 2 ** 20) <= 76.0:
                if groups <= 50.0:
                    if kv_len <= 3000.0:
                        return 8
                    return 9
                return 10
            if q_heads <= 80.0:
                if batch <= 6.5:
                    return 11
                return 12
            return 13
        if groups <= 140.0:
            if (cache_mb := s.cache_bytes / 2 ** 20) <= 150.0:
                if batch <= 6.5:
                    if kv_len <= 1500.0:
                        return 14
                    return 15
                return 16
            if (message_kb := s.message_bytes / 1024) <= 420.0:
                if batch <= 9.0:
                    return 17
                return 18
            if cache_mb <= 200.0:
                return 19
            return 20
        if (cache_mb := s.cache_bytes / 2 ** 20) <= 400.0:
            if cache_mb <= 270.0:
                if batch <= 26.0:
                    if groups <= 220.0:
                        return 21
                    return 22
                return 23
            if cache_mb <= 300.0:
                if batch <= 16.0:
                    return 24
                return 25
            if kv_len <= 3000.0:
                return 26
            return 27
        if q_heads <= 80.0:
            return 28
        if batch <= 22.0:
            return 29
        if batch <= 26.0:
            return 30
        return 31
    if (message_kb := s.message_bytes / 1024) <= 360.0:
        if q_heads <= 80.0:
            if batch <= 2.5:
                if batch <= 1.5:
                    if world <= 1.5:
                        return 32
                    return 33
                if kv_len <= 25000.0:
                    return 34
                return 35
            if batch <= 6.5:
                if batch <= 4.5:
                    if batch <= 3.5:
                        return 36
                    return 37
                if batch <= 5.5:
                    if kv_len <= 25000.0:
                        return 38
                    return 39
                return 40
            if batch <= 7.5:
                return 41
            if batch <= 9.0:
                return 42
            return 43
        if batch <= 3.5:
            if batch <= 1.5:
                if s.group <= 10.0:
                    return 44
                return 45
            if s.group <= 10.0:
                if batch <= 2.5:
                    return 46
                return 47
            if kv_len <= 25000.0:
                return 48
            return 49
        if (groups := batch * kv_heads) <= 50.0:
            if groups <= 36.0:
                if kv_len <= 12000.0:
                    return 50
                return 51
            if groups <= 44.0:
                if kv_len <= 25000.0:
                    return 52
                return 53
            if kv_len <= 12000.0:
                return 54
            return 55
        if groups <= 80.0:
            if groups <= 58.0:
                if kv_len <= 50000.0:
                    return 56
                return 57
            if batch <= 5.5:
                return 58
            return 59
        return 60
    if (groups := batch * kv_heads) <= 140.0:
        if groups <= 100.0:
            if groups <= 90.0:
                if batch <= 9.0:
                    return 61
                return 62
            return 63
        if groups <= 116.0:
            if kv_len <= 25000.0:
                return 64
            return 65
        if s.group <= 10.0:
            if batch <= 13.0:
                return 66
            return 67
        if kv_len <= 25000.0:
            return 68
        return 69
    if message_kb <= 840.0:
        if batch <= 15.0:
            return 70
        if batch <= 22.0:
            if kv_len <= 12000.0:
                return 71
            return 72
        return 73
    if batch <= 22.0:
        if s.group <= 10.0:
            if kv_len <= 12000.0:
                return 74
            return 75
        return 76
    if batch <= 30.0:
        if groups <= 256.0:
            if batch <= 26.0:
                return 77
            return 78
        if kv_len <= 50000.0:
            if batch <= 26.0:
                return 79
            if kv_len <= 12000.0:
                return 80
            return 81
        return 82
    if (cache_mb := s.cache_bytes / 2 ** 20) <= 2600.0:
        return 83
    return 84

EAGER_OWN = {
    ('flash_decode', 1, 64, 8, 128, 32768, 2, 'fp16', 'all', 0): 91,
    ('flash_decode', 4, 64, 8, 128, 16384, 2, 'fp16', 'all', 0): 92,
    ('flash_decode', 4, 64, 8, 128, 32768, 2, 'fp16', 'all', 0): 93,
    ('flash_decode', 4, 64, 8, 128, 65536, 2, 'fp16', 'all', 0): 94,
    ('flash_decode', 8, 64, 8, 128, 16384, 2, 'fp16', 'all', 0): 95,
    ('flash_decode', 8, 64, 8, 128, 32768, 2, 'fp16', 'all', 0): 96,
    ('flash_decode', 8, 64, 8, 128, 65536, 2, 'fp16', 'all', 0): 97,
    ('flash_decode', 8, 96, 12, 128, 4096, 2, 'fp16', 'all', 0): 98,
    ('flash_decode', 8, 96, 12, 128, 65536, 2, 'fp16', 'all', 0): 99,
    ('flash_decode', 16, 64, 8, 128, 4096, 2, 'fp16', 'all', 0): 100,
    ('flash_decode', 16, 64, 8, 128, 8192, 2, 'fp16', 'all', 0): 101,
    ('flash_decode', 16, 64, 8, 128, 16384, 2, 'fp16', 'all', 0): 102,
    ('flash_decode', 16, 64, 8, 128, 32768, 2, 'fp16', 'all', 0): 103,
    ('flash_decode', 16, 64, 8, 128, 65536, 2, 'fp16', 'all', 0): 104,
    ('flash_decode', 16, 96, 12, 128, 16384, 2, 'fp16', 'all', 0): 105,
    ('flash_decode', 16, 96, 12, 128, 65536, 2, 'fp16', 'all', 0): 106,
}

def eager(s):
    batch, q_heads, kv_heads, head_dim, kv_len, world, dtype, output, page_size = s.batch, s.q_heads, s.kv_heads, s.head_dim, s.kv_len, s.world, s.dtype, s.output, s.page_size
    if kv_len in {4096, 8192, 16384, 32768, 65536} and (own := EAGER_OWN.get(s.key)) is not None:
        return own
    if not 0.5 <= batch <= 32:
        return None
    if dtype not in ('fp16',):
        return None
    if not 64.0 <= head_dim <= 256:
        return None
    if not 4.0 <= kv_heads <= 24:
        return None
    if not 512.0 <= kv_len <= 131072:
        return None
    if output not in ('all',):
        return None
    if not 0.0 <= page_size <= 0:
        return None
    if not 32.0 <= q_heads <= 192:
        return None
    if world not in (2,):
        return None
    if kv_len <= 6000.0:
        if (groups := batch * kv_heads) <= 34.0:
            if groups <= 20.0:
                if groups <= 10.0:
                    return 0
                if q_heads <= 80.0:
                    return 1
                return 2
            if kv_len <= 1500.0:
                return 3
            if batch <= 2.5:
                return 4
            if batch <= 3.5:
                return 5
            return 6
        if groups <= 200.0:
            if groups <= 70.0:
                if q_heads <= 80.0:
                    if kv_len <= 3000.0:
                        return 7
                    if batch <= 6.5:
                        return 8
                    return 9
                if (cache_mb := s.cache_bytes / 2 ** 20) <= 76.0:
                    return 10
                return 11
            if groups <= 140.0:
                if (cache_mb := s.cache_bytes / 2 ** 20) <= 150.0:
                    if batch <= 6.5:
                        if kv_len <= 1500.0:
                            return 12
                        return 13
                    return 14
                if batch <= 11.0:
                    if batch <= 7.5:
                        return 15
                    return 16
                if (message_kb := s.message_bytes / 1024) <= 420.0:
                    return 17
                return 18
            return 19
        if (cache_mb := s.cache_bytes / 2 ** 20) <= 400.0:
            if batch <= 26.0:
                if batch <= 22.0:
                    return 20
                return 21
            if (message_kb := s.message_bytes / 1024) <= 970.0:
                if kv_len <= 1500.0:
                    return 22
                return 23
            if cache_mb <= 300.0:
                return 24
            return 25
        if q_heads <= 80.0:
            return 26
        if s.group <= 10.0:
            if batch <= 26.0:
                return 27
            return 28
        return 29
    if (message_kb := s.message_bytes / 1024) <= 330.0:
        if (groups := batch * kv_heads) <= 44.0:
            if groups <= 30.0:
                if q_heads <= 80.0:
                    if kv_len <= 25000.0:
                        if batch <= 2.5:
                            if (cache_mb := s.cache_bytes / 2 ** 20) <= 50.0:
                                return 30
                            return 31
                        return 32
                    return 33
                if s.group <= 10.0:
                    if (cache_mb := s.cache_bytes / 2 ** 20) <= 256.0:
                        return 34
                    if batch <= 1.5:
                        return 35
                    return 36
                if batch <= 2.0:
                    if kv_len <= 25000.0:
                        return 37
                    return 38
                return 39
            if groups <= 34.0:
                if kv_len <= 12000.0:
                    return 40
                return 41
            if (cache_mb := s.cache_bytes / 2 ** 20) <= 300.0:
                if kv_len <= 12000.0:
                    return 42
                return 43
            if batch <= 4.0:
                return 44
            return 45
        if groups <= 58.0:
            if (cache_mb := s.cache_bytes / 2 ** 20) <= 400.0:
                if batch <= 6.5:
                    if batch <= 5.0:
                        if kv_len <= 12000.0:
                            return 46
                        return 47
                    return 48
                return 49
            if batch <= 6.5:
                return 50
            return 51
        if groups <= 70.0:
            if kv_len <= 12000.0:
                return 52
            if batch <= 6.0:
                if kv_len <= 25000.0:
                    return 53
                if kv_len <= 50000.0:
                    return 54
                return 55
            return 56
        if batch <= 8.0:
            return 57
        return 58
    if s.group <= 10.0:
        if (groups := batch * kv_heads) <= 200.0:
            if batch <= 15.0:
                if batch <= 9.0:
                    if kv_len <= 25000.0:
                        return 59
                    return 60
                if (cache_mb := s.cache_bytes / 2 ** 20) <= 460.0:
                    return 61
                if batch <= 13.0:
                    if groups <= 128.0:
                        if q_heads <= 80.0:
                            return 62
                        return 63
                    return 64
                if q_heads <= 80.0:
                    return 65
                if kv_len <= 12000.0:
                    return 66
                return 67
            if kv_len <= 50000.0:
                if groups <= 180.0:
                    if batch <= 18.0:
                        return 68
                    return 69
                return 70
            return 71
        if (cache_mb := s.cache_bytes / 2 ** 20) <= 4400.0:
            if cache_mb <= 1100.0:
                return 72
            if groups <= 230.0:
                return 73
            return 74
        return 75
    if (cache_mb := s.cache_bytes / 2 ** 20) <= 600.0:
        if cache_mb <= 300.0:
            return 76
        return 77
    if batch <= 15.0:
        if batch <= 11.0:
            if batch <= 9.0:
                return 78
            return 79
        if batch <= 13.0:
            if kv_len <= 50000.0:
                return 80
            return 81
        return 82
    if batch <= 22.0:
        if batch <= 18.0:
            return 83
        if kv_len <= 50000.0:
            return 84
        return 85
    if batch <= 26.0:
        if kv_len <= 50000.0:
            return 86
        return 87
    if kv_len <= 12000.0:
        return 88
    if kv_len <= 50000.0:
        return 89
    return 90

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
