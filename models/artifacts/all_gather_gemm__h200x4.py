# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config all_gather_gemm runs on h200x4, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'all_gather_gemm'
TARGET = 'h200x4'
ARCH = 'sm_90'
MODELLED = False
SHA256 = '2ca2bbfdc5d7d1ed63cabb66c10b23f224fb3c3afefd91cb62bc71e7e71c1646'
TRITON = '3.6.0'
KERNELS = {'push': '7b43b63bbc74', 'pull': 'ee2762b6b54b', 'bsp_chunked': 'f18f1da8df08', 'push_ce': 'e2be0e7a5f5e', 'staged': 'c252859588a4'}
CONFIGS = {
    'graph': [
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 256, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 256, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 256, 'loads': 'descriptor', 'num_stages': 2, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 128, 'block_n': 64, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 128, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 128, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 2048, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 128, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
    ],
    'eager': [
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 64, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 2, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 2, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 128, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 2048, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
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
    if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 31.73:  # intensity
        if s.n <= 3300.0:
            if s.n <= 1800.0:
                if s.m <= 20.0:
                    if s.k <= 3000.0:
                        if s.flops / 1000000000.0 <= 0.08:  # gflop
                            if s.n <= 1300.0:
                                return 0
                            return 1
                        return 2
                    if s.k <= 6000.0:
                        if s.m <= 3.0:
                            return 3
                        return 4
                    return 5
                if s.k <= 3000.0:
                    if s.n <= 1300.0:
                        return 6
                    return 7
                return 8
            if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 20.0:  # intensity
                if s.k <= 6000.0:
                    if s.n <= 2600.0:
                        if s.shard_bytes / 1024 <= 1.5:  # shard_kb
                            return 9
                        if s.m <= 1.5:
                            return 10
                        if s.k <= 3000.0:
                            return 11
                        return 12
                    if s.shard_bytes / 1024 <= 20.0:  # shard_kb
                        if s.k <= 3000.0:
                            return 13
                        return 14
                    return 15
                if s.k <= 12000.0:
                    return 16
                return 17
            if s.k <= 6000.0:
                if s.flops / 1000000000.0 <= 0.34:  # gflop
                    return 18
                return 19
            return 20
        if s.n <= 6700.0:
            if s.k <= 7700.0:
                if s.n <= 4400.0:
                    if s.k <= 3000.0:
                        return 21
                    return 22
                return 23
            if s.m <= 20.0:
                if s.n <= 5000.0:
                    if s.n <= 4400.0:
                        return 24
                    return 25
                if s.m <= 1.5:
                    return 26
                if s.k <= 12000.0:
                    return 27
                return 28
            if int(s.shard == 'm') <= 0.5:  # shard_is_m
                return 29
            return 30
        if s.n <= 15000.0:
            if s.n <= 7700.0:
                return 31
            if s.flops / 1000000000.0 <= 5.0:  # gflop
                if s.n <= 13000.0:
                    if s.m <= 1.5:
                        if s.flops / 1000000000.0 <= 0.34:  # gflop
                            return 32
                        return 33
                    if s.n <= 10000.0:
                        return 34
                    if s.k <= 12000.0:
                        return 35
                    return 36
                return 37
            return 38
        return 39
    if s.m * s.n / 1024 <= 2200.0:  # outputs_k
        if s.m * s.n / 1024 <= 470.0:  # outputs_k
            if s.shard_bytes / 1024 <= 200.0:  # shard_kb
                if s.flops / 1000000000.0 <= 0.9:  # gflop
                    if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 61.8:  # intensity
                        if s.m <= 50.0:
                            if s.n <= 5000.0:
                                return 40
                            return 41
                        return 42
                    if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 116.0:  # intensity
                        if s.n <= 2600.0:
                            return 43
                        return 44
                    return 45
                if s.m * s.n / 1024 <= 200.0:  # outputs_k
                    if s.flops / 1000000000.0 <= 1.3:  # gflop
                        return 46
                    return 47
                if s.m * s.n / 1024 <= 400.0:  # outputs_k
                    if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 31.87:  # intensity
                        return 48
                    if s.k <= 3000.0:
                        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 122.0:  # intensity
                            return 49
                        return 50
                    return 51
                return 52
            if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 62.95:  # intensity
                if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 62.4:  # intensity
                    if s.flops / 1000000000.0 <= 4.6:  # gflop
                        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 61.8:  # intensity
                            if s.n <= 1300.0:
                                return 53
                            return 54
                        return 55
                    if s.n <= 7000.0:
                        return 56
                    return 57
                if s.n <= 3300.0:
                    return 58
                if int(s.shard == 'm') <= 0.5:  # shard_is_m
                    return 59
                return 60
            if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 116.0:  # intensity
                if s.n <= 5000.0:
                    if s.k <= 6000.0:
                        return 61
                    if s.shard_bytes / 1024 <= 400.0:  # shard_kb
                        return 62
                    if s.shard_bytes / 1024 <= 800.0:  # shard_kb
                        return 63
                    return 64
                return 65
            if s.k <= 6000.0:
                if s.m * s.n / 1024 <= 300.0:  # outputs_k
                    if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 119.0:  # intensity
                        return 66
                    return 67
                return 68
            if s.m <= 200.0:
                if int(s.b_layout == 'nk') <= 0.5:  # b_is_nk
                    if s.n <= 1800.0:
                        return 69
                    if int(s.shard == 'm') <= 0.5:  # shard_is_m
                        return 70
                    return 71
                return 72
            if s.n <= 1300.0:
                return 73
            return 74
        if s.m * s.n / 1024 <= 960.0:  # outputs_k
            if s.n <= 4400.0:
                if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 230.0:  # intensity
                    return 75
                if s.n <= 1300.0:
                    if s.k <= 3000.0:
                        return 76
                    return 77
                if s.k <= 3000.0:
                    return 78
                return 79
            if s.m <= 100.0:
                if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 63.6:  # intensity
                    if s.m <= 50.0:
                        return 80
                    return 81
                if s.k <= 3000.0:
                    return 82
                return 83
            if s.k <= 7700.0:
                if s.n <= 5000.0:
                    return 84
                if s.k <= 3000.0:
                    return 85
                return 86
            return 87
        if s.k <= 7700.0:
            if s.m * s.n / 1024 <= 1800.0:  # outputs_k
                if s.n <= 7000.0:
                    if s.flops / 1000000000.0 <= 8.0:  # gflop
                        if s.n <= 3600.0:
                            return 88
                        return 89
                    if s.n <= 3600.0:
                        return 90
                    return 91
                return 92
            if s.shard_bytes / 1024 <= 3000.0:  # shard_kb
                return 93
            if s.k <= 6000.0:
                return 94
            return 95
        if s.m * s.n / 1024 <= 1900.0:  # outputs_k
            if s.n <= 7000.0:
                if s.m * s.n / 1024 <= 1400.0:  # outputs_k
                    if s.m * s.n / 1024 <= 1200.0:  # outputs_k
                        return 96
                    return 97
                return 98
            return 99
        if s.shard_bytes / 1024 <= 3000.0:  # shard_kb
            return 100
        if s.m <= 800.0:
            return 101
        if s.n <= 1500.0:
            if s.k <= 12000.0:
                return 102
            return 103
        return 104
    if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 600.0:  # intensity
        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 480.0:  # intensity
            if s.k <= 6000.0:
                if s.n <= 10000.0:
                    return 105
                return 106
            if s.k <= 7700.0:
                return 107
            return 108
        if s.n <= 13000.0:
            if s.n <= 10000.0:
                return 109
            return 110
        if s.n <= 15000.0:
            return 111
        return 112
    if s.n <= 2300.0:
        if s.k <= 7700.0:
            if s.m * s.n / 1024 <= 3600.0:  # outputs_k
                if s.k <= 3000.0:
                    return 113
                return 114
            if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 1200.0:  # intensity
                return 115
            if s.m <= 6000.0:
                return 116
            return 117
        if s.n <= 1800.0:
            if s.n <= 1300.0:
                if s.shard_bytes / 1024 <= 50000.0:  # shard_kb
                    return 118
                return 119
            if s.m <= 3000.0:
                return 120
            return 121
        if s.m <= 6000.0:
            if s.m <= 3000.0:
                return 122
            return 123
        return 124
    if s.m * s.n / 1024 <= 35000.0:  # outputs_k
        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 810.0:  # intensity
            if s.flops / 1000000000.0 <= 47.0:  # gflop
                if s.n <= 2800.0:
                    return 125
                return 126
            return 127
        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 860.0:  # intensity
            if s.n <= 4400.0:
                return 128
            return 129
        if s.m * s.n / 1024 <= 7700.0:  # outputs_k
            if s.k <= 6000.0:
                if s.n <= 4096.0:
                    return 130
                return 131
            if s.k <= 12000.0:
                if s.n <= 2800.0:
                    return 132
                return 133
            if s.m <= 1500.0:
                return 134
            return 135
        if s.shard_bytes / 1024 <= 6000.0:  # shard_kb
            if s.m * s.n / 1024 <= 15000.0:  # outputs_k
                if s.n <= 5000.0:
                    if s.k <= 3000.0:
                        return 136
                    return 137
                if s.n <= 13000.0:
                    return 138
                return 139
            if s.k <= 3000.0:
                if s.n <= 5000.0:
                    return 140
                return 141
            if s.flops / 1000000000.0 <= 240.0:  # gflop
                return 142
            return 143
        if s.n <= 6700.0:
            if s.m <= 3000.0:
                if s.flops / 1000000000.0 <= 300.0:  # gflop
                    return 144
                return 145
            return 146
        if s.flops / 1000000000.0 <= 340.0:  # gflop
            return 147
        if s.n <= 10000.0:
            return 148
        return 149
    if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 3000.0:  # intensity
        return 150
    return 151

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
    if s.m * s.n / 1024 <= 400.0:  # outputs_k
        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 31.4:  # intensity
            if s.n <= 3300.0:
                if s.n <= 1800.0:
                    if s.m <= 20.0:
                        if s.k <= 6000.0:
                            if s.n <= 1300.0:
                                if s.shard_bytes / 1024 <= 20.0:  # shard_kb
                                    return 0
                                return 1
                            if s.m <= 6.0:
                                if s.k <= 3000.0:
                                    return 2
                                return 3
                            if s.k <= 3000.0:
                                return 4
                            return 5
                        if s.shard_bytes / 1024 <= 50.0:  # shard_kb
                            if s.k <= 12000.0:
                                return 6
                            return 7
                        if s.k <= 12000.0:
                            return 8
                        return 9
                    if s.k <= 3000.0:
                        if s.n <= 1300.0:
                            return 10
                        return 11
                    return 12
                if s.k <= 6000.0:
                    if s.n <= 2600.0:
                        if s.k <= 3000.0:
                            return 13
                        return 14
                    if s.shard_bytes / 1024 <= 1.5:  # shard_kb
                        return 15
                    if s.shard_bytes / 1024 <= 3.0:  # shard_kb
                        if s.k <= 3000.0:
                            return 16
                        return 17
                    if s.k <= 3000.0:
                        return 18
                    return 19
                if s.k <= 12000.0:
                    return 20
                return 21
            if s.k <= 7700.0:
                if s.k <= 3000.0:
                    if s.m <= 3.0:
                        if s.n <= 10000.0:
                            return 22
                        return 23
                    if s.flops / 1000000000.0 <= 0.7:  # gflop
                        if s.n <= 7000.0:
                            if s.n <= 5000.0:
                                return 24
                            return 25
                        if s.n <= 10000.0:
                            return 26
                        return 27
                    return 28
                if s.n <= 10000.0:
                    if s.flops / 1000000000.0 <= 0.44:  # gflop
                        if s.n <= 4400.0:
                            return 29
                        return 30
                    if s.n <= 7700.0:
                        return 31
                    return 32
                if s.n <= 14000.0:
                    return 33
                return 34
            if s.n <= 5000.0:
                if s.n <= 3800.0:
                    if s.m <= 3.0:
                        return 35
                    return 36
                if s.n <= 4400.0:
                    return 37
                return 38
            if s.n <= 7700.0:
                if s.k <= 12000.0:
                    return 39
                return 40
            if s.n <= 10000.0:
                if s.k <= 12000.0:
                    return 41
                return 42
            if s.shard_bytes / 1024 <= 10.0:  # shard_kb
                return 43
            if s.k <= 12000.0:
                return 44
            return 45
        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 90.0:  # intensity
            if s.m * s.n / 1024 <= 120.0:  # outputs_k
                if s.k <= 6000.0:
                    if s.shard_bytes / 1024 <= 100.0:  # shard_kb
                        if s.flops / 1000000000.0 <= 0.34:  # gflop
                            if s.m <= 50.0:
                                return 46
                            return 47
                        if s.n <= 1800.0:
                            return 48
                        return 49
                    return 50
                if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 31.64:  # intensity
                    if s.n <= 2300.0:
                        return 51
                    return 52
                if s.n <= 1300.0:
                    return 53
                return 54
            if s.m <= 50.0:
                if s.k <= 6000.0:
                    return 55
                if s.n <= 7700.0:
                    return 56
                if s.n <= 10000.0:
                    return 57
                return 58
            if s.k <= 12000.0:
                if s.flops / 1000000000.0 <= 5.0:  # gflop
                    if s.n <= 3300.0:
                        if s.k <= 6000.0:
                            return 59
                        return 60
                    if s.n <= 5000.0:
                        return 61
                    return 62
                return 63
            return 64
        return 65
    if s.m * s.n / 1024 <= 1900.0:  # outputs_k
        if s.m * s.n / 1024 <= 540.0:  # outputs_k
            if s.n <= 10000.0:
                if -(-s.m // 128) * -(-s.n // 256) <= 15.0:  # large_tiles
                    if int(s.shard == 'm') <= 0.5:  # shard_is_m
                        return 66
                    return 67
                if s.m <= 200.0:
                    if s.shard_bytes / 1024 <= 800.0:  # shard_kb
                        return 68
                    return 69
                if s.m <= 400.0:
                    if s.k <= 12000.0:
                        return 70
                    return 71
                if s.k <= 7700.0:
                    return 72
                return 73
            if s.n <= 15000.0:
                return 74
            return 75
        if s.flops / 1000000000.0 <= 18.0:  # gflop
            if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 400.0:  # intensity
                if s.k <= 6000.0:
                    if s.m <= 400.0:
                        if s.m <= 100.0:
                            return 76
                        if s.flops / 1000000000.0 <= 5.0:  # gflop
                            return 77
                        if s.shard_bytes / 1024 <= 200.0:  # shard_kb
                            return 78
                        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 243.0:  # intensity
                            return 79
                        return 80
                    return 81
                if s.n <= 3800.0:
                    return 82
                if s.n <= 10000.0:
                    if s.flops / 1000000000.0 <= 14.0:  # gflop
                        return 83
                    if s.flops / 1000000000.0 <= 16.0:  # gflop
                        return 84
                    return 85
                return 86
            if s.shard_bytes / 1024 <= 1500.0:  # shard_kb
                if s.m * s.n / 1024 <= 1300.0:  # outputs_k
                    return 87
                return 88
            if s.k <= 7700.0:
                return 89
            if s.n <= 1500.0:
                return 90
            return 91
        if s.m * s.n / 1024 <= 900.0:  # outputs_k
            if s.n <= 8192.0:
                return 92
            return 93
        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 243.0:  # intensity
            if s.n <= 10000.0:
                return 94
            return 95
        if s.n <= 2300.0:
            return 96
        if s.k <= 12000.0:
            if int(s.shard == 'm') <= 0.5:  # shard_is_m
                return 97
            return 98
        return 99
    if s.m * s.n / 1024 <= 8100.0:  # outputs_k
        if s.k <= 7700.0:
            if s.shard_bytes / 1024 <= 3000.0:  # shard_kb
                if s.m * s.n / 1024 <= 3800.0:  # outputs_k
                    if s.n <= 5000.0:
                        if s.flops / 1000000000.0 <= 10.0:  # gflop
                            if s.m <= 1500.0:
                                return 100
                            return 101
                        if s.m <= 1500.0:
                            return 102
                        return 103
                    if s.n <= 14000.0:
                        return 104
                    return 105
                if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 850.0:  # intensity
                    if s.shard_bytes / 1024 <= 1500.0:  # shard_kb
                        return 106
                    return 107
                if s.n <= 4096.0:
                    return 108
                return 109
            if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 1070.0:  # intensity
                if s.m <= 3000.0:
                    return 110
                return 111
            return 112
        if s.flops / 1000000000.0 <= 128.0:  # gflop
            if s.shard_bytes / 1024 <= 6000.0:  # shard_kb
                if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 810.0:  # intensity
                    if s.m * s.n / 1024 <= 3800.0:  # outputs_k
                        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 250.0:  # intensity
                            if s.k <= 12000.0:
                                return 113
                            return 114
                        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 467.0:  # intensity
                            return 115
                        return 116
                    if s.n <= 10000.0:
                        return 117
                    return 118
                if s.n <= 5000.0:
                    return 119
                return 120
            if s.flops / 1000000000.0 <= 80.0:  # gflop
                if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 950.0:  # intensity
                    if s.m <= 3000.0:
                        if s.flops / 1000000000.0 <= 40.0:  # gflop
                            return 121
                        if s.m <= 1500.0:
                            return 122
                        return 123
                    return 124
                return 125
            if s.flops / 1000000000.0 <= 94.0:  # gflop
                return 126
            return 127
        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 487.0:  # intensity
            return 128
        if s.flops / 1000000000.0 <= 150.0:  # gflop
            if s.m <= 3000.0:
                return 129
            return 130
        if s.flops / 1000000000.0 <= 180.0:  # gflop
            return 131
        return 132
    if s.n <= 2300.0:
        if s.k <= 7700.0:
            if s.m * s.n / 1024 <= 10000.0:  # outputs_k
                if s.k <= 6000.0:
                    return 133
                return 134
            if s.n <= 1800.0:
                return 135
            return 136
        if s.m * s.n / 1024 <= 14000.0:  # outputs_k
            return 137
        return 138
    if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 4000.0:  # intensity
        if s.n <= 13000.0:
            if s.m * s.n / 1024 <= 30000.0:  # outputs_k
                if s.m <= 6000.0:
                    if s.n <= 3800.0:
                        if s.n <= 3300.0:
                            return 139
                        return 140
                    if s.n <= 5000.0:
                        if s.k <= 7700.0:
                            return 141
                        if s.n <= 4400.0:
                            return 142
                        return 143
                    if s.k <= 6000.0:
                        if s.flops / 1000000000.0 <= 110.0:  # gflop
                            return 144
                        return 145
                    return 146
                return 147
            if s.k <= 12000.0:
                if s.k <= 3000.0:
                    return 148
                return 149
            if s.flops / 1000000000.0 <= 1400.0:  # gflop
                return 150
            return 151
        if s.flops / (s.element_bytes * s.k * (s.m + s.n)) <= 960.0:  # intensity
            return 152
        return 153
    if s.k <= 6000.0:
        if s.flops / 1000000000.0 <= 340.0:  # gflop
            return 154
        return 155
    return 156

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
