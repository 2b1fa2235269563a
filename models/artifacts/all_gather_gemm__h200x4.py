# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config all_gather_gemm runs on h200x4, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'all_gather_gemm'
TARGET = 'h200x4'
ARCH = 'sm_90'
MODELLED = False
SHA256 = 'c4c901e5d81957ea1715c9d10a27ab4998d328bd399fdc1d12a17e3ce80caa77'
TRITON = '3.6.0'
KERNELS = {'push': '7b43b63bbc74', 'pull': 'ee2762b6b54b', 'push_ce': 'e2be0e7a5f5e', 'bsp_chunked': 'f18f1da8df08', 'staged': 'c252859588a4'}
CONFIGS = {
    'graph': [
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 512, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'staged', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 256, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather_copy'},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather_copy'},
        {'variant': 'bsp', 'form': 'local_transpose'},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 256, 'loads': 'descriptor', 'num_stages': 2, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 128, 'block_n': 64, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'column', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'local_transpose'},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 128, 'growth': 1},
        {'variant': 'bsp', 'form': 'local_transpose'},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'local_transpose'},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather_copy'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'column', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather_copy'},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 128, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 3, 'first_rows': 256, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 2048, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 1024, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 2048, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 2048, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
    ],
    'eager': [
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 2, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 2048, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'column', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'column', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'column', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'local_transpose'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
    ],
}

GRAPH_OWN = {
    ('all_gather_gemm', 1, 14336, 8192, 4, 'fp16', 'k', 'kn'): 66,
    ('all_gather_gemm', 8, 14336, 8192, 4, 'fp16', 'k', 'kn'): 67,
    ('all_gather_gemm', 16, 1024, 7168, 4, 'fp16', 'k', 'kn'): 68,
    ('all_gather_gemm', 16, 3584, 8192, 2, 'fp16', 'k', 'kn'): 69,
    ('all_gather_gemm', 16, 4608, 16384, 4, 'fp16', 'k', 'kn'): 70,
    ('all_gather_gemm', 16, 6144, 1536, 4, 'fp16', 'k', 'kn'): 71,
    ('all_gather_gemm', 16, 8192, 512, 4, 'fp16', 'k', 'kn'): 72,
    ('all_gather_gemm', 16, 9216, 7168, 4, 'fp16', 'k', 'kn'): 73,
    ('all_gather_gemm', 16, 14336, 8192, 4, 'fp16', 'k', 'kn'): 74,
    ('all_gather_gemm', 16, 26624, 16384, 4, 'fp16', 'k', 'kn'): 75,
    ('all_gather_gemm', 16, 32064, 8192, 4, 'fp16', 'k', 'kn'): 76,
    ('all_gather_gemm', 16, 32064, 16384, 4, 'fp16', 'k', 'kn'): 77,
    ('all_gather_gemm', 16, 32320, 7168, 4, 'fp16', 'k', 'kn'): 78,
    ('all_gather_gemm', 32, 2048, 2048, 4, 'fp16', 'k', 'kn'): 79,
    ('all_gather_gemm', 32, 4608, 7168, 4, 'fp16', 'k', 'kn'): 80,
    ('all_gather_gemm', 32, 4608, 16384, 4, 'fp16', 'k', 'kn'): 81,
    ('all_gather_gemm', 32, 16032, 4096, 4, 'fp16', 'k', 'kn'): 82,
    ('all_gather_gemm', 64, 3584, 8192, 4, 'fp16', 'k', 'kn'): 83,
    ('all_gather_gemm', 128, 1024, 7168, 4, 'fp16', 'k', 'kn'): 84,
    ('all_gather_gemm', 128, 1536, 4096, 4, 'fp16', 'k', 'kn'): 85,
    ('all_gather_gemm', 128, 3584, 8192, 2, 'fp16', 'k', 'kn'): 86,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'bf16', 'k', 'kn'): 87,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'k', 'nk'): 88,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'm', 'kn'): 89,
    ('all_gather_gemm', 128, 4096, 2048, 4, 'fp16', 'k', 'kn'): 90,
    ('all_gather_gemm', 128, 6144, 1536, 4, 'fp16', 'k', 'kn'): 91,
    ('all_gather_gemm', 128, 8192, 512, 4, 'fp16', 'k', 'kn'): 92,
    ('all_gather_gemm', 128, 9216, 7168, 4, 'fp16', 'k', 'kn'): 93,
    ('all_gather_gemm', 128, 16032, 4096, 4, 'fp16', 'k', 'kn'): 94,
    ('all_gather_gemm', 128, 26624, 16384, 4, 'fp16', 'k', 'kn'): 95,
    ('all_gather_gemm', 128, 32064, 8192, 4, 'fp16', 'k', 'kn'): 96,
    ('all_gather_gemm', 128, 32064, 16384, 4, 'fp16', 'k', 'kn'): 97,
    ('all_gather_gemm', 128, 32320, 7168, 4, 'fp16', 'k', 'kn'): 98,
    ('all_gather_gemm', 256, 3584, 8192, 4, 'fp16', 'k', 'kn'): 99,
    ('all_gather_gemm', 1024, 3584, 8192, 4, 'fp16', 'm', 'kn'): 100,
    ('all_gather_gemm', 1024, 6144, 1536, 4, 'fp16', 'k', 'kn'): 101,
    ('all_gather_gemm', 1024, 7168, 8192, 4, 'fp16', 'k', 'kn'): 102,
    ('all_gather_gemm', 1024, 8192, 512, 4, 'fp16', 'k', 'kn'): 103,
    ('all_gather_gemm', 1024, 9216, 7168, 4, 'fp16', 'k', 'kn'): 104,
    ('all_gather_gemm', 1024, 26624, 16384, 4, 'fp16', 'k', 'kn'): 105,
    ('all_gather_gemm', 1024, 32064, 8192, 4, 'fp16', 'k', 'kn'): 106,
    ('all_gather_gemm', 1024, 32064, 16384, 4, 'fp16', 'k', 'kn'): 107,
    ('all_gather_gemm', 1024, 32320, 7168, 4, 'fp16', 'k', 'kn'): 108,
    ('all_gather_gemm', 2048, 2560, 8192, 4, 'fp16', 'k', 'kn'): 109,
    ('all_gather_gemm', 2048, 3584, 8192, 4, 'fp16', 'k', 'kn'): 110,
    ('all_gather_gemm', 4096, 1024, 7168, 4, 'fp16', 'k', 'kn'): 111,
    ('all_gather_gemm', 4096, 2560, 8192, 4, 'fp16', 'k', 'kn'): 112,
    ('all_gather_gemm', 4096, 3584, 8192, 4, 'fp16', 'k', 'kn'): 113,
    ('all_gather_gemm', 4096, 4608, 16384, 4, 'fp16', 'k', 'kn'): 114,
    ('all_gather_gemm', 4096, 6144, 1536, 4, 'fp16', 'k', 'kn'): 115,
    ('all_gather_gemm', 4096, 8192, 512, 4, 'fp16', 'k', 'kn'): 116,
    ('all_gather_gemm', 4096, 9216, 7168, 4, 'fp16', 'k', 'kn'): 117,
    ('all_gather_gemm', 4096, 14336, 8192, 4, 'fp16', 'k', 'kn'): 118,
    ('all_gather_gemm', 4096, 26624, 16384, 4, 'fp16', 'k', 'kn'): 119,
    ('all_gather_gemm', 4096, 32064, 8192, 4, 'fp16', 'k', 'kn'): 120,
    ('all_gather_gemm', 4096, 32064, 16384, 4, 'fp16', 'k', 'kn'): 121,
    ('all_gather_gemm', 4096, 32320, 7168, 4, 'fp16', 'k', 'kn'): 122,
    ('all_gather_gemm', 8192, 1536, 4096, 4, 'fp16', 'k', 'kn'): 123,
    ('all_gather_gemm', 8192, 2560, 8192, 4, 'fp16', 'k', 'kn'): 124,
    ('all_gather_gemm', 8192, 3584, 8192, 2, 'fp16', 'k', 'kn'): 125,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'bf16', 'k', 'kn'): 126,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'fp16', 'k', 'kn'): 127,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'fp16', 'k', 'nk'): 128,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'fp16', 'm', 'kn'): 129,
    ('all_gather_gemm', 8192, 4096, 2048, 4, 'fp16', 'k', 'kn'): 130,
    ('all_gather_gemm', 8192, 4608, 7168, 4, 'fp16', 'k', 'kn'): 131,
}

def graph(s):
    m, n, k, world, dtype, shard, b_layout = s.m, s.n, s.k, s.world, s.dtype, s.shard, s.b_layout
    if m in {1, 8, 16, 32, 64, 128, 256, 1024, 2048, 4096, 8192} and (own := GRAPH_OWN.get(s.key)) is not None:
        return own
    if b_layout not in ('kn', 'nk'):
        return None
    if dtype not in ('bf16', 'fp16'):
        return None
    if not 256.0 <= k <= 32768:
        return None
    if not 0.5 <= m <= 16384:
        return None
    if not 512.0 <= n <= 64640:
        return None
    if shard not in ('k', 'm'):
        return None
    if world not in (2, 4):
        return None
    if (intensity := 2 * m * n * k / (s.element_bytes * k * (m + n))) <= 31.73:
        if n <= 2800.0:
            if n <= 1800.0:
                if m <= 20.0:
                    if k <= 3000.0:
                        return 0
                    if k <= 6000.0:
                        return 1
                    return 2
                if n <= 1300.0:
                    if k <= 3000.0:
                        return 3
                    return 4
                if k <= 3000.0:
                    return 5
                return 6
            if m <= 20.0:
                if k <= 6000.0:
                    if k <= 3000.0:
                        return 7
                    return 8
                return 9
            if k <= 6000.0:
                return 10
            return 11
        if n <= 6700.0:
            if k <= 7700.0:
                if n <= 3600.0:
                    if k <= 800.0:
                        if m <= 20.0:
                            return 12
                        return 13
                    if k <= 3000.0:
                        return 14
                    return 15
                if n <= 4400.0:
                    if k <= 3000.0:
                        return 16
                    return 17
                if k <= 1300.0:
                    return 18
                return 19
            if n <= 4400.0:
                if m <= 20.0:
                    return 20
                return 21
            return 22
        if k <= 12000.0:
            if k <= 800.0:
                if n <= 10000.0:
                    return 23
                return 24
            if n <= 13000.0:
                return 25
            return 26
        return 27
    if (outputs_k := m * n / 1024) <= 3200.0:
        if (small_tiles := -(-m // 64) * -(-n // 128)) <= 100.0:
            if intensity <= 63.2:
                if outputs_k <= 200.0:
                    if (shard_kb := s.shard_bytes / 1024) <= 200.0:
                        if n <= 2600.0:
                            return 28
                        return 29
                    return 30
                if n <= 3800.0:
                    return 31
                return 32
            if (large_tiles := -(-m // 128) * -(-n // 256)) <= 15.0:
                if k <= 6000.0:
                    if outputs_k <= 300.0:
                        return 33
                    return 34
                return 35
            if (shard_kb := s.shard_bytes / 1024) <= 800.0:
                if k <= 800.0:
                    return 36
                return 37
            if (gflop := 2 * m * n * k / 1000000000.0) <= 18.0:
                return 38
            return 39
        if (large_tiles := -(-m // 128) * -(-n // 256)) <= 63.5:
            if (gflop := 2 * m * n * k / 1000000000.0) <= 17.0:
                if large_tiles <= 30.0:
                    if n <= 5000.0:
                        return 40
                    return 41
                if intensity <= 126.1:
                    return 42
                return 43
            if (shard_is_m := int(shard == 'm')) <= 0.5:
                if m <= 400.0:
                    return 44
                return 45
            return 46
        if m <= 100.0:
            if m <= 50.0:
                return 47
            return 48
        if k <= 7700.0:
            if (shard_kb := s.shard_bytes / 1024) <= 3000.0:
                return 49
            return 50
        return 51
    if (shard_kb := s.shard_bytes / 1024) <= 2600.0:
        if m <= 800.0:
            if m <= 400.0:
                return 52
            return 53
        if (gflop := 2 * m * n * k / 1000000000.0) <= 32.0:
            return 54
        if m <= 3000.0:
            if k <= 1500.0:
                return 55
            return 56
        return 57
    if n <= 2300.0:
        if k <= 7700.0:
            return 58
        if n <= 1300.0:
            return 59
        return 60
    if outputs_k <= 40000.0:
        if (gflop := 2 * m * n * k / 1000000000.0) <= 64.0:
            if m <= 1500.0:
                return 61
            return 62
        if (shard_is_m := int(shard == 'm')) <= 0.5:
            return 63
        return 64
    return 65

EAGER_OWN = {
    ('all_gather_gemm', 1, 4096, 2048, 4, 'fp16', 'k', 'kn'): 40,
    ('all_gather_gemm', 1, 16032, 4096, 4, 'fp16', 'k', 'kn'): 41,
    ('all_gather_gemm', 8, 4096, 2048, 4, 'fp16', 'k', 'kn'): 42,
    ('all_gather_gemm', 8, 16032, 4096, 4, 'fp16', 'k', 'kn'): 43,
    ('all_gather_gemm', 16, 3584, 8192, 2, 'fp16', 'k', 'kn'): 44,
    ('all_gather_gemm', 32, 2560, 8192, 4, 'fp16', 'k', 'kn'): 45,
    ('all_gather_gemm', 64, 3584, 8192, 4, 'fp16', 'k', 'kn'): 46,
    ('all_gather_gemm', 128, 3584, 8192, 2, 'fp16', 'k', 'kn'): 47,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'bf16', 'k', 'kn'): 48,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'k', 'kn'): 49,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'k', 'nk'): 50,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'm', 'kn'): 51,
    ('all_gather_gemm', 128, 4608, 16384, 4, 'fp16', 'k', 'kn'): 52,
    ('all_gather_gemm', 128, 16032, 4096, 4, 'fp16', 'k', 'kn'): 53,
    ('all_gather_gemm', 256, 3584, 8192, 4, 'fp16', 'k', 'kn'): 54,
    ('all_gather_gemm', 512, 16032, 4096, 4, 'fp16', 'k', 'kn'): 55,
    ('all_gather_gemm', 1024, 3584, 8192, 4, 'fp16', 'm', 'kn'): 56,
    ('all_gather_gemm', 1024, 4608, 16384, 4, 'fp16', 'k', 'kn'): 57,
    ('all_gather_gemm', 1024, 7168, 4096, 4, 'fp16', 'k', 'kn'): 58,
    ('all_gather_gemm', 1024, 16032, 4096, 4, 'fp16', 'k', 'kn'): 59,
    ('all_gather_gemm', 2048, 4096, 2048, 4, 'fp16', 'k', 'kn'): 60,
    ('all_gather_gemm', 2048, 4608, 7168, 4, 'fp16', 'k', 'kn'): 61,
    ('all_gather_gemm', 2048, 7168, 4096, 4, 'fp16', 'k', 'kn'): 62,
    ('all_gather_gemm', 8192, 3584, 8192, 2, 'fp16', 'k', 'kn'): 63,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'fp16', 'k', 'nk'): 64,
}

def eager(s):
    m, n, k, world, dtype, shard, b_layout = s.m, s.n, s.k, s.world, s.dtype, s.shard, s.b_layout
    if m in {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 8192} and (own := EAGER_OWN.get(s.key)) is not None:
        return own
    if b_layout not in ('kn', 'nk'):
        return None
    if dtype not in ('bf16', 'fp16'):
        return None
    if not 1024.0 <= k <= 32768:
        return None
    if not 0.5 <= m <= 16384:
        return None
    if not 512.0 <= n <= 32064:
        return None
    if shard not in ('k', 'm'):
        return None
    if world not in (2, 4):
        return None
    if (outputs_k := m * n / 1024) <= 400.0:
        if (intensity := 2 * m * n * k / (s.element_bytes * k * (m + n))) <= 31.4:
            if n <= 3300.0:
                if n <= 1800.0:
                    if m <= 20.0:
                        return 0
                    if k <= 3000.0:
                        return 1
                    return 2
                if k <= 6000.0:
                    if k <= 3000.0:
                        return 3
                    return 4
                return 5
            if k <= 7700.0:
                return 6
            if n <= 4400.0:
                return 7
            if n <= 7700.0:
                return 8
            if n <= 10000.0:
                return 9
            return 10
        if intensity <= 63.2:
            if outputs_k <= 120.0:
                if k <= 6000.0:
                    return 11
                return 12
            if n <= 3300.0:
                return 13
            if outputs_k <= 240.0:
                return 14
            if (gflop := 2 * m * n * k / 1000000000.0) <= 4.0:
                return 15
            return 16
        if m <= 100.0:
            return 17
        return 18
    if outputs_k <= 2030.0:
        if (shard_kb := s.shard_bytes / 1024) <= 1900.0:
            if outputs_k <= 540.0:
                if m <= 50.0:
                    if n <= 15000.0:
                        return 19
                    return 20
                return 21
            if (gflop := 2 * m * n * k / 1000000000.0) <= 23.0:
                return 22
            if (intensity := 2 * m * n * k / (s.element_bytes * k * (m + n))) <= 125.7:
                return 23
            return 24
        if outputs_k <= 960.0:
            return 25
        if n <= 1800.0:
            return 26
        return 27
    if outputs_k <= 7600.0:
        if k <= 7700.0:
            if (shard_kb := s.shard_bytes / 1024) <= 3000.0:
                if outputs_k <= 3800.0:
                    return 28
                return 29
            return 30
        if (gflop := 2 * m * n * k / 1000000000.0) <= 128.0:
            return 31
        if (intensity := 2 * m * n * k / (s.element_bytes * k * (m + n))) <= 487.0:
            return 32
        return 33
    if n <= 2300.0:
        if k <= 7700.0:
            return 34
        return 35
    if outputs_k <= 23000.0:
        return 36
    if (intensity := 2 * m * n * k / (s.element_bytes * k * (m + n))) <= 4500.0:
        if (shard_kb := s.shard_bytes / 1024) <= 30000.0:
            return 37
        return 38
    return 39

FIND = {'graph': graph, 'eager': eager}

def choose(s, mode, target, kernels, triton, allow_modelled=False):
    """The config for the shape `s` in this mode ("graph" or "eager") as a dict, or None where BSP is the answer.

    `s` has the fields and properties that the functions above read, as tftune.AllGatherGemm does (`key`: the operation's name and
    the values of all fields). The caller says what it runs: the
    `target`, the hash of each variant's source in `kernels` (tftune.kernels.source.kernel_hash) and the version of `triton`; where
    these are not those of the times, nothing fused is chosen. Whether the config fits the shape is for tftune's rules to say.
    """
    leaf = FIND[mode](s) if mode in FIND and target == TARGET and allow_modelled >= MODELLED else None
    if leaf is None:
        return None
    config = CONFIGS[mode][leaf]
    sound = config["variant"] != "bsp" and kernels.get(config["variant"]) == KERNELS[config["variant"]]
    return config if sound and (not TRITON or triton.split(".")[:2] == TRITON.split(".")[:2]) else None
