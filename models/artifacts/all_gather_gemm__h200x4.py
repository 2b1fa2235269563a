# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config all_gather_gemm runs on h200x4, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'all_gather_gemm'
TARGET = 'h200x4'
ARCH = 'sm_90'
MODELLED = False
SHA256 = '3f5469a5beda5bbcfe08999b8a2c125152b82a35d0499c00db9fd39c6e847202'
TRITON = '3.6.0'
KERNELS = {'push': '7b43b63bbc74', 'pull': 'ee2762b6b54b', 'push_ce': 'e2be0e7a5f5e', 'bsp_chunked': 'f18f1da8df08', 'staged': 'c252859588a4'}
CONFIGS = {
    'graph': [
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 256, 'loads': 'descriptor', 'num_stages': 2, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
    ],
    'eager': [
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 2, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
    ],
}

def graph(s):
    if s.b_layout not in ('kn', 'nk'):
        return None
    if s.dtype not in ('bf16', 'fp16'):
        return None
    if not 1024.0 <= s.k <= 32768:
        return None
    if not 0.5 <= s.m <= 16384:
        return None
    if not 512.0 <= s.n <= 32064:
        return None
    if s.shard not in ('k', 'm'):
        return None
    if s.world not in (4,):
        return None
    if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 31.73:
        if s.n <= 3300.0:
            if s.n <= 1800.0:
                if s.m <= 20.0:
                    if s.k <= 3000.0:
                        return 0
                    if s.k <= 6000.0:
                        return 1
                    return 2
                if s.k <= 3000.0:
                    return 3
                return 4
            if intensity <= 20.0:
                if s.k <= 6000.0:
                    if s.n <= 2600.0:
                        return 5
                    return 6
                if s.k <= 12000.0:
                    return 7
                return 8
            if s.k <= 6000.0:
                return 9
            return 10
        if s.n <= 6700.0:
            if s.k <= 7700.0:
                if s.n <= 4400.0:
                    if s.k <= 3000.0:
                        return 11
                    return 12
                return 13
            if s.m <= 20.0:
                return 14
            return 15
        return 16
    if (outputs_k := s.m * s.n / 1024) <= 2200.0:
        if outputs_k <= 470.0:
            if (shard_kb := s.shard_bytes / 1024) <= 200.0:
                if (gflop := 2 * s.m * s.n * s.k / 1000000000.0) <= 0.9:
                    if intensity <= 61.8:
                        if s.m <= 50.0:
                            return 17
                        return 18
                    return 19
                if outputs_k <= 200.0:
                    return 20
                return 21
            if intensity <= 62.95:
                if intensity <= 62.4:
                    if (gflop := 2 * s.m * s.n * s.k / 1000000000.0) <= 4.6:
                        return 22
                    return 23
                if s.n <= 3300.0:
                    return 24
                return 25
            if intensity <= 116.0:
                return 26
            if s.k <= 6000.0:
                return 27
            return 28
        if outputs_k <= 960.0:
            if s.n <= 4400.0:
                if intensity <= 230.0:
                    return 29
                return 30
            if s.m <= 100.0:
                return 31
            if s.k <= 7700.0:
                return 32
            return 33
        if s.k <= 7700.0:
            if outputs_k <= 1800.0:
                if s.n <= 7000.0:
                    return 34
                return 35
            return 36
        if outputs_k <= 1900.0:
            if s.n <= 7000.0:
                return 37
            return 38
        return 39
    if intensity <= 600.0:
        if intensity <= 480.0:
            return 40
        return 41
    if s.n <= 2300.0:
        if s.k <= 7700.0:
            return 42
        return 43
    if outputs_k <= 35000.0:
        if intensity <= 810.0:
            if (gflop := 2 * s.m * s.n * s.k / 1000000000.0) <= 47.0:
                return 44
            return 45
        return 46
    return 47

def eager(s):
    if s.b_layout not in ('kn', 'nk'):
        return None
    if s.dtype not in ('bf16', 'fp16'):
        return None
    if not 1024.0 <= s.k <= 32768:
        return None
    if not 0.5 <= s.m <= 16384:
        return None
    if not 512.0 <= s.n <= 32064:
        return None
    if s.shard not in ('k', 'm'):
        return None
    if s.world not in (4,):
        return None
    if (outputs_k := s.m * s.n / 1024) <= 400.0:
        if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 31.4:
            if s.n <= 3300.0:
                if s.n <= 1800.0:
                    if s.m <= 20.0:
                        return 0
                    if s.k <= 3000.0:
                        return 1
                    return 2
                if s.k <= 6000.0:
                    if s.n <= 2600.0:
                        return 3
                    return 4
                if s.k <= 12000.0:
                    return 5
                return 6
            if s.k <= 7700.0:
                if s.k <= 3000.0:
                    return 7
                if s.n <= 10000.0:
                    return 8
                if s.n <= 14000.0:
                    return 9
                return 10
            if s.n <= 5000.0:
                return 11
            if s.n <= 7700.0:
                return 12
            if s.n <= 10000.0:
                return 13
            return 14
        if intensity <= 90.0:
            if outputs_k <= 120.0:
                if s.k <= 6000.0:
                    return 15
                return 16
            if s.m <= 50.0:
                return 17
            if s.k <= 12000.0:
                return 18
            return 19
        return 20
    if outputs_k <= 1900.0:
        if outputs_k <= 540.0:
            if s.n <= 10000.0:
                if (large_tiles := -(-s.m // 128) * -(-s.n // 256)) <= 15.0:
                    return 21
                return 22
            if s.n <= 15000.0:
                return 23
            return 24
        if (gflop := 2 * s.m * s.n * s.k / 1000000000.0) <= 18.0:
            if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 400.0:
                if s.k <= 6000.0:
                    return 25
                if s.n <= 3800.0:
                    return 26
                return 27
            if (shard_kb := s.shard_bytes / 1024) <= 1500.0:
                return 28
            return 29
        if outputs_k <= 900.0:
            return 30
        if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 243.0:
            return 31
        return 32
    if outputs_k <= 8100.0:
        if s.k <= 7700.0:
            if (shard_kb := s.shard_bytes / 1024) <= 3000.0:
                if outputs_k <= 3800.0:
                    if s.n <= 5000.0:
                        return 33
                    return 34
                return 35
            return 36
        if (gflop := 2 * s.m * s.n * s.k / 1000000000.0) <= 128.0:
            return 37
        if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 487.0:
            return 38
        if gflop <= 150.0:
            return 39
        return 40
    if s.n <= 2300.0:
        if s.k <= 7700.0:
            return 41
        return 42
    if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 4000.0:
        if s.n <= 13000.0:
            return 43
        return 44
    return 45

FIND = {'graph': graph, 'eager': eager}

def choose(s, mode, target, kernels, triton, allow_modelled=False):
    """The config for the shape `s` in this mode ("graph" or "eager") as a dict, or None where BSP is the answer.

    `s` has the fields and properties that the functions above read, as tftune.AllGatherGemm does. The caller says what it runs: the
    `target`, the hash of each variant's source in `kernels` (tftune.kernels.source.kernel_hash) and the version of `triton`; where
    these are not those of the times, nothing fused is chosen. Whether the config fits the shape is for tftune's rules to say.
    """
    leaf = FIND[mode](s) if mode in FIND and target == TARGET and allow_modelled >= MODELLED else None
    if leaf is None:
        return None
    config = CONFIGS[mode][leaf]
    sound = config["variant"] != "bsp" and kernels.get(config["variant"]) == KERNELS[config["variant"]]
    return config if sound and (not TRITON or triton.split(".")[:2] == TRITON.split(".")[:2]) else None
