# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config all_gather_gemm runs on h200x4, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'all_gather_gemm'
TARGET = 'h200x4'
ARCH = 'sm_90'
MODELLED = False
SHA256 = '98c718eead14315079ee33432e26ae5c92557c6e8150a063d70e97d143c2ec8e'
TRITON = '3.6.0'
KERNELS = {'push': '7b43b63bbc74', 'pull': 'ee2762b6b54b', 'bsp_chunked': 'f18f1da8df08', 'push_ce': 'e2be0e7a5f5e', 'staged': 'c252859588a4'}
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
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 256, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'pull', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 256, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 256, 'loads': 'descriptor', 'num_stages': 2, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 1024, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 64, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 1024, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 256, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'staged', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather_copy'},
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 256, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather_copy'},
        {'variant': 'bsp', 'form': 'local_transpose'},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 128, 'block_n': 64, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 512, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'column', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'local_transpose'},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 128, 'growth': 1},
        {'variant': 'bsp', 'form': 'local_transpose'},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'local_transpose'},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather_copy'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'column', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp', 'form': 'gather_copy'},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 128, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 3, 'first_rows': 256, 'growth': 7},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 2048, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'bsp_chunked', 'copy_streams': 1, 'first_rows': 512, 'growth': 7},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 32, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 128, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 2048, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 256, 'block_n': 128, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 2048, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 1, 'k_per_flag': 1048576, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 1024, 'schedule': 'dynamic', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
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
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 256, 'comm_programs': 32, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 8, 'order': 'chunk', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4, 'waves_per_eu': 0, 'xcds': 1},
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
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push_ce', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 0, 'copy_streams': 1, 'group_m': 8, 'k_per_flag': 1048576, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 512, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'order': 'group', 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 1},
    ],
}

GRAPH_OWN = {
    ('all_gather_gemm', 16, 1024, 7168, 4, 'fp16', 'k', 'kn'): 57,
    ('all_gather_gemm', 16, 3584, 8192, 2, 'fp16', 'k', 'kn'): 58,
    ('all_gather_gemm', 16, 4608, 16384, 4, 'fp16', 'k', 'kn'): 59,
    ('all_gather_gemm', 16, 6144, 1536, 4, 'fp16', 'k', 'kn'): 60,
    ('all_gather_gemm', 16, 9216, 7168, 4, 'fp16', 'k', 'kn'): 61,
    ('all_gather_gemm', 16, 26624, 16384, 4, 'fp16', 'k', 'kn'): 62,
    ('all_gather_gemm', 16, 32064, 8192, 4, 'fp16', 'k', 'kn'): 63,
    ('all_gather_gemm', 16, 32064, 16384, 4, 'fp16', 'k', 'kn'): 64,
    ('all_gather_gemm', 16, 32320, 7168, 4, 'fp16', 'k', 'kn'): 65,
    ('all_gather_gemm', 32, 2048, 2048, 4, 'fp16', 'k', 'kn'): 66,
    ('all_gather_gemm', 32, 4608, 7168, 4, 'fp16', 'k', 'kn'): 67,
    ('all_gather_gemm', 32, 4608, 16384, 4, 'fp16', 'k', 'kn'): 68,
    ('all_gather_gemm', 32, 14336, 8192, 4, 'fp16', 'k', 'kn'): 69,
    ('all_gather_gemm', 32, 16032, 4096, 4, 'fp16', 'k', 'kn'): 70,
    ('all_gather_gemm', 64, 3584, 8192, 4, 'fp16', 'k', 'kn'): 71,
    ('all_gather_gemm', 128, 1536, 4096, 4, 'fp16', 'k', 'kn'): 72,
    ('all_gather_gemm', 128, 2048, 2048, 4, 'fp16', 'k', 'kn'): 73,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'bf16', 'k', 'kn'): 74,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'k', 'nk'): 75,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'm', 'kn'): 76,
    ('all_gather_gemm', 128, 4608, 16384, 4, 'fp16', 'k', 'kn'): 77,
    ('all_gather_gemm', 128, 8192, 512, 4, 'fp16', 'k', 'kn'): 78,
    ('all_gather_gemm', 128, 9216, 7168, 4, 'fp16', 'k', 'kn'): 79,
    ('all_gather_gemm', 128, 16032, 4096, 4, 'fp16', 'k', 'kn'): 80,
    ('all_gather_gemm', 128, 26624, 16384, 4, 'fp16', 'k', 'kn'): 81,
    ('all_gather_gemm', 128, 32064, 8192, 4, 'fp16', 'k', 'kn'): 82,
    ('all_gather_gemm', 128, 32064, 16384, 4, 'fp16', 'k', 'kn'): 83,
    ('all_gather_gemm', 128, 32320, 7168, 4, 'fp16', 'k', 'kn'): 84,
    ('all_gather_gemm', 256, 3584, 8192, 4, 'fp16', 'k', 'kn'): 85,
    ('all_gather_gemm', 512, 4096, 2048, 4, 'fp16', 'k', 'kn'): 86,
    ('all_gather_gemm', 1024, 3584, 8192, 2, 'fp16', 'k', 'kn'): 87,
    ('all_gather_gemm', 1024, 3584, 8192, 4, 'bf16', 'k', 'kn'): 88,
    ('all_gather_gemm', 1024, 3584, 8192, 4, 'fp16', 'k', 'kn'): 89,
    ('all_gather_gemm', 1024, 3584, 8192, 4, 'fp16', 'k', 'nk'): 90,
    ('all_gather_gemm', 1024, 3584, 8192, 4, 'fp16', 'm', 'kn'): 91,
    ('all_gather_gemm', 1024, 6144, 1536, 4, 'fp16', 'k', 'kn'): 92,
    ('all_gather_gemm', 1024, 7168, 4096, 4, 'fp16', 'k', 'kn'): 93,
    ('all_gather_gemm', 1024, 7168, 8192, 4, 'fp16', 'k', 'kn'): 94,
    ('all_gather_gemm', 1024, 8192, 512, 4, 'fp16', 'k', 'kn'): 95,
    ('all_gather_gemm', 1024, 9216, 7168, 4, 'fp16', 'k', 'kn'): 96,
    ('all_gather_gemm', 1024, 16032, 4096, 4, 'fp16', 'k', 'kn'): 97,
    ('all_gather_gemm', 1024, 26624, 16384, 4, 'fp16', 'k', 'kn'): 98,
    ('all_gather_gemm', 1024, 32064, 8192, 4, 'fp16', 'k', 'kn'): 99,
    ('all_gather_gemm', 1024, 32064, 16384, 4, 'fp16', 'k', 'kn'): 100,
    ('all_gather_gemm', 1024, 32320, 7168, 4, 'fp16', 'k', 'kn'): 101,
    ('all_gather_gemm', 2048, 2560, 8192, 4, 'fp16', 'k', 'kn'): 102,
    ('all_gather_gemm', 2048, 3584, 8192, 4, 'fp16', 'k', 'kn'): 103,
    ('all_gather_gemm', 2048, 4096, 2048, 4, 'fp16', 'k', 'kn'): 104,
    ('all_gather_gemm', 2048, 7168, 4096, 4, 'fp16', 'k', 'kn'): 105,
    ('all_gather_gemm', 4096, 2560, 8192, 4, 'fp16', 'k', 'kn'): 106,
    ('all_gather_gemm', 4096, 3584, 8192, 4, 'fp16', 'k', 'kn'): 107,
    ('all_gather_gemm', 4096, 4608, 16384, 4, 'fp16', 'k', 'kn'): 108,
    ('all_gather_gemm', 4096, 6144, 1536, 4, 'fp16', 'k', 'kn'): 109,
    ('all_gather_gemm', 4096, 9216, 7168, 4, 'fp16', 'k', 'kn'): 110,
    ('all_gather_gemm', 4096, 14336, 8192, 4, 'fp16', 'k', 'kn'): 111,
    ('all_gather_gemm', 4096, 26624, 16384, 4, 'fp16', 'k', 'kn'): 112,
    ('all_gather_gemm', 4096, 32064, 8192, 4, 'fp16', 'k', 'kn'): 113,
    ('all_gather_gemm', 4096, 32064, 16384, 4, 'fp16', 'k', 'kn'): 114,
    ('all_gather_gemm', 4096, 32320, 7168, 4, 'fp16', 'k', 'kn'): 115,
    ('all_gather_gemm', 8192, 1024, 7168, 4, 'fp16', 'k', 'kn'): 116,
    ('all_gather_gemm', 8192, 2560, 8192, 4, 'fp16', 'k', 'kn'): 117,
    ('all_gather_gemm', 8192, 3584, 8192, 2, 'fp16', 'k', 'kn'): 118,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'bf16', 'k', 'kn'): 119,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'fp16', 'k', 'kn'): 120,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'fp16', 'k', 'nk'): 121,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'fp16', 'm', 'kn'): 122,
    ('all_gather_gemm', 8192, 4096, 2048, 4, 'fp16', 'k', 'kn'): 123,
    ('all_gather_gemm', 8192, 4608, 7168, 4, 'fp16', 'k', 'kn'): 124,
    ('all_gather_gemm', 8192, 4608, 16384, 4, 'fp16', 'k', 'kn'): 125,
}

def graph(s):
    if (own := GRAPH_OWN.get(s.key)) is not None:
        return own
    if s.b_layout not in ('kn', 'nk'):
        return None
    if s.dtype not in ('bf16', 'fp16'):
        return None
    if not 256.0 <= s.k <= 32768:
        return None
    if not 0.5 <= s.m <= 16384:
        return None
    if not 512.0 <= s.n <= 64640:
        return None
    if s.shard not in ('k', 'm'):
        return None
    if s.world not in (2, 4):
        return None
    if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 31.73:
        if s.n <= 2800.0:
            if s.n <= 1800.0:
                if s.m <= 20.0:
                    if s.k <= 3000.0:
                        return 0
                    if s.k <= 6000.0:
                        return 1
                    return 2
                if s.n <= 1300.0:
                    if s.k <= 3000.0:
                        return 3
                    return 4
                if s.k <= 3000.0:
                    return 5
                return 6
            if s.m <= 20.0:
                if s.k <= 6000.0:
                    if s.k <= 3000.0:
                        return 7
                    return 8
                return 9
            if s.k <= 6000.0:
                return 10
            return 11
        if s.n <= 6700.0:
            if s.k <= 7700.0:
                if s.n <= 3600.0:
                    if s.k <= 1500.0:
                        return 12
                    if s.m <= 20.0:
                        return 13
                    return 14
                if s.n <= 4400.0:
                    if s.k <= 3000.0:
                        return 15
                    return 16
                if s.k <= 1300.0:
                    return 17
                return 18
            if s.m <= 20.0:
                if s.n <= 4400.0:
                    return 19
                return 20
            return 21
        if s.k <= 12000.0:
            if s.n <= 15000.0:
                if s.n <= 13000.0:
                    if s.k <= 800.0:
                        return 22
                    return 23
                return 24
            return 25
        return 26
    if (gflop := 2 * s.m * s.n * s.k / 1000000000.0) <= 55.0:
        if intensity <= 240.0:
            if s.m <= 100.0:
                if s.n <= 6700.0:
                    if s.k <= 3000.0:
                        return 27
                    if s.n <= 1800.0:
                        return 28
                    return 29
                if s.m <= 50.0:
                    return 30
                if s.n <= 14000.0:
                    return 31
                return 32
            if (outputs_k := s.m * s.n / 1024) <= 300.0:
                if s.k <= 6000.0:
                    return 33
                if gflop <= 2.7:
                    return 34
                return 35
            if outputs_k <= 540.0:
                return 36
            if intensity <= 125.9:
                return 37
            return 38
        if (outputs_k := s.m * s.n / 1024) <= 1900.0:
            if outputs_k <= 900.0:
                return 39
            if s.k <= 7700.0:
                return 40
            return 41
        if outputs_k <= 3800.0:
            if s.k <= 7700.0:
                if (shard_kb := s.shard_bytes / 1024) <= 3000.0:
                    return 42
                return 43
            return 44
        if (shard_kb := s.shard_bytes / 1024) <= 3000.0:
            if s.k <= 800.0:
                return 45
            return 46
        return 47
    if intensity <= 600.0:
        if intensity <= 250.0:
            return 48
        return 49
    if (outputs_k := s.m * s.n / 1024) <= 40000.0:
        if s.n <= 2300.0:
            if outputs_k <= 5000.0:
                return 50
            if s.k <= 7700.0:
                return 51
            return 52
        if (shard_is_m := int(s.shard == 'm')) <= 0.5:
            return 53
        return 54
    if gflop <= 256.0:
        return 55
    return 56

EAGER_OWN = {
    ('all_gather_gemm', 1, 4096, 2048, 4, 'fp16', 'k', 'kn'): 41,
    ('all_gather_gemm', 1, 16032, 4096, 4, 'fp16', 'k', 'kn'): 42,
    ('all_gather_gemm', 8, 4096, 2048, 4, 'fp16', 'k', 'kn'): 43,
    ('all_gather_gemm', 8, 16032, 4096, 4, 'fp16', 'k', 'kn'): 44,
    ('all_gather_gemm', 16, 3584, 8192, 2, 'fp16', 'k', 'kn'): 45,
    ('all_gather_gemm', 32, 2560, 8192, 4, 'fp16', 'k', 'kn'): 46,
    ('all_gather_gemm', 64, 3584, 8192, 4, 'fp16', 'k', 'kn'): 47,
    ('all_gather_gemm', 128, 3584, 8192, 2, 'fp16', 'k', 'kn'): 48,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'bf16', 'k', 'kn'): 49,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'k', 'kn'): 50,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'k', 'nk'): 51,
    ('all_gather_gemm', 128, 3584, 8192, 4, 'fp16', 'm', 'kn'): 52,
    ('all_gather_gemm', 128, 4608, 16384, 4, 'fp16', 'k', 'kn'): 53,
    ('all_gather_gemm', 128, 16032, 4096, 4, 'fp16', 'k', 'kn'): 54,
    ('all_gather_gemm', 256, 3584, 8192, 4, 'fp16', 'k', 'kn'): 55,
    ('all_gather_gemm', 512, 16032, 4096, 4, 'fp16', 'k', 'kn'): 56,
    ('all_gather_gemm', 1024, 3584, 8192, 4, 'fp16', 'm', 'kn'): 57,
    ('all_gather_gemm', 1024, 4608, 16384, 4, 'fp16', 'k', 'kn'): 58,
    ('all_gather_gemm', 1024, 7168, 4096, 4, 'fp16', 'k', 'kn'): 59,
    ('all_gather_gemm', 1024, 16032, 4096, 4, 'fp16', 'k', 'kn'): 60,
    ('all_gather_gemm', 2048, 4096, 2048, 4, 'fp16', 'k', 'kn'): 61,
    ('all_gather_gemm', 2048, 4608, 7168, 4, 'fp16', 'k', 'kn'): 62,
    ('all_gather_gemm', 2048, 7168, 4096, 4, 'fp16', 'k', 'kn'): 63,
    ('all_gather_gemm', 8192, 2048, 2048, 4, 'fp16', 'k', 'kn'): 64,
    ('all_gather_gemm', 8192, 3584, 8192, 2, 'fp16', 'k', 'kn'): 65,
    ('all_gather_gemm', 8192, 3584, 8192, 4, 'fp16', 'k', 'nk'): 66,
}

def eager(s):
    if (own := EAGER_OWN.get(s.key)) is not None:
        return own
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
    if s.world not in (2, 4):
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
                    if s.k <= 3000.0:
                        return 3
                    return 4
                return 5
            if s.k <= 7700.0:
                return 6
            if s.n <= 4400.0:
                return 7
            if s.n <= 7700.0:
                return 8
            if s.n <= 10000.0:
                return 9
            return 10
        if intensity <= 63.2:
            if outputs_k <= 120.0:
                if s.k <= 6000.0:
                    return 11
                return 12
            if s.n <= 3300.0:
                return 13
            if intensity <= 62.95:
                return 14
            if s.k <= 6000.0:
                return 15
            return 16
        if s.m <= 100.0:
            if s.k <= 6000.0:
                return 17
            return 18
        return 19
    if outputs_k <= 2030.0:
        if (shard_kb := s.shard_bytes / 1024) <= 1900.0:
            if outputs_k <= 540.0:
                if s.m <= 50.0:
                    if s.n <= 15000.0:
                        return 20
                    return 21
                return 22
            if (gflop := 2 * s.m * s.n * s.k / 1000000000.0) <= 23.0:
                return 23
            if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 125.7:
                return 24
            return 25
        if outputs_k <= 960.0:
            return 26
        if s.n <= 1800.0:
            return 27
        return 28
    if outputs_k <= 7600.0:
        if s.k <= 7700.0:
            if (shard_kb := s.shard_bytes / 1024) <= 3000.0:
                if outputs_k <= 3800.0:
                    return 29
                return 30
            return 31
        if (gflop := 2 * s.m * s.n * s.k / 1000000000.0) <= 128.0:
            return 32
        if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 487.0:
            return 33
        return 34
    if s.n <= 2300.0:
        if s.k <= 7700.0:
            return 35
        return 36
    if outputs_k <= 23000.0:
        return 37
    if (intensity := 2 * s.m * s.n * s.k / (s.element_bytes * s.k * (s.m + s.n))) <= 3700.0:
        if (shard_kb := s.shard_bytes / 1024) <= 30000.0:
            return 38
        return 39
    return 40

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
