# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config all_gather_gemm runs on h200x4, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'all_gather_gemm'
TARGET = 'h200x4'
ARCH = 'sm_90'
MODELLED = False
SHA256 = 'a9690053dd1813afa77ca7de3831a15fca003eab56f825730b62783ef68ca52f'
TRITON = '3.6.0'
KERNELS = {'push': '397835fd0f22', 'staged': 'f1bb5ad37c35'}
CONFIGS = {
    'graph': [
        {'variant': 'push', 'block_k': 128, 'block_m': 16, 'block_n': 128, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4},
        {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4},
        {'variant': 'push', 'block_k': 64, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8},
        {'variant': 'bsp', 'form': 'gather'},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1},
    ],
    'eager': [
        {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 8},
        {'variant': 'push', 'block_k': 64, 'block_m': 32, 'block_n': 256, 'comm_programs': 8, 'group_m': 1, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 5, 'num_warps': 4, 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4},
        {'variant': 'push', 'block_k': 128, 'block_m': 64, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 8, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 2},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 128, 'comm_programs': 16, 'group_m': 1, 'k_per_flag': 1024, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 8, 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 4},
        {'variant': 'staged', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1},
        {'variant': 'push', 'block_k': 64, 'block_m': 128, 'block_n': 256, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 8192, 'loads': 'descriptor', 'num_stages': 3, 'num_warps': 8, 'rows_per_flag': 64, 'schedule': 'static', 'split_k': 1},
    ],
}

def graph(s):
    if s.b_layout not in ('kn', 'nk'):
        return None
    if s.dtype not in ('bf16', 'fp16'):
        return None
    if not 4096.0 <= s.k <= 16384:
        return None
    if not 0.5 <= s.m <= 16384:
        return None
    if not 1792.0 <= s.n <= 7168:
        return None
    if s.shard not in ('k', 'm'):
        return None
    if s.world not in (4,):
        return None
    if int(s.shard == 'm') <= 0.5:  # shard_is_m
        if s.m <= 20.0:
            return 0
        if s.m <= 200.0:
            if s.m <= 100.0:
                if s.m <= 50.0:
                    return 1
                return 2
            return 3
        if s.m <= 800.0:
            if s.m <= 400.0:
                return 4
            return 5
        return 6
    if s.m <= 900.0:
        if s.m <= 32.0:
            return 7
        return 8
    return 9

def eager(s):
    if s.b_layout not in ('kn', 'nk'):
        return None
    if s.dtype not in ('bf16', 'fp16'):
        return None
    if not 4096.0 <= s.k <= 16384:
        return None
    if not 0.5 <= s.m <= 16384:
        return None
    if not 1792.0 <= s.n <= 7168:
        return None
    if s.shard not in ('k', 'm'):
        return None
    if s.world not in (4,):
        return None
    if s.m <= 20.0:
        return 0
    if s.m <= 800.0:
        if int(s.shard == 'm') <= 0.5:  # shard_is_m
            if s.m <= 200.0:
                if s.m <= 100.0:
                    return 1
                return 2
            if s.m <= 400.0:
                return 3
            return 4
        return 5
    if int(s.shard == 'm') <= 0.5:  # shard_is_m
        if s.m <= 1500.0:
            return 6
        return 7
    return 8

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
