# Written by tftune from the JSON beside it, whose digest it carries; `tftune export` and `tftune verify` write both.
"""Which config all_gather_gemm runs on mi300x8, for programs without tftune; tftune.load reads the JSON."""
# ruff: noqa
# fmt: off
# mypy: ignore-errors

OP = 'all_gather_gemm'
TARGET = 'mi300x8'
ARCH = 'gfx942'
MODELLED = True
SHA256 = '3d1c0ba3627d301a4a59992d1fecd25a5a8221e56d3703a8ab8fca14b6584cae'
TRITON = '3.7.1'
KERNELS = {'push': '0236c5cfd494'}
CONFIGS = [
    {'variant': 'bsp', 'form': 'gather_copy'},
    {'variant': 'bsp', 'form': 'local_transpose'},
    {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 64, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 4, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 0, 'xcds': 1},
    {'variant': 'push', 'block_k': 64, 'block_m': 16, 'block_n': 64, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 5, 'num_warps': 4, 'order': 'group', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 2, 'xcds': 1},
    {'variant': 'push', 'block_k': 128, 'block_m': 32, 'block_n': 128, 'comm_programs': 64, 'group_m': 1, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 2, 'num_warps': 4, 'order': 'column', 'rows_per_flag': 16, 'schedule': 'dynamic', 'split_k': 8, 'waves_per_eu': 2, 'xcds': 1},
    {'variant': 'push', 'block_k': 256, 'block_m': 16, 'block_n': 32, 'comm_programs': 16, 'group_m': 8, 'k_per_flag': 512, 'loads': 'pointer', 'num_stages': 3, 'num_warps': 4, 'order': 'column', 'rows_per_flag': 16, 'schedule': 'static', 'split_k': 1, 'waves_per_eu': 0, 'xcds': 8},
]
ANSWERS = {'graph': [(2,), (1,), (4,), (1,), (1,)], 'eager': [(3,), (5,), (4,), (0,)]}

def graph(s):
    m, n, k, world, dtype, shard, b_layout = s.m, s.n, s.k, s.world, s.dtype, s.shard, s.b_layout
    if b_layout not in ('kn',):
        return None
    if dtype not in ('fp16',):
        return None
    if not 4096.0 <= k <= 16384:
        return None
    if not 0.5 <= m <= 16384:
        return None
    if not 1792.0 <= n <= 7168:
        return None
    if shard not in ('k',):
        return None
    if world not in (8,):
        return None
    if m <= 16.0:
        return 0
    if (large_tiles := -(-m // 128) * -(-n // 256)) <= 40.0:
        if (small_tiles := -(-m // 64) * -(-n // 128)) <= 40.0:
            if m <= 60.0:
                return 1
            return 2
        return 3
    return 4

def eager(s):
    m, n, k, world, dtype, shard, b_layout = s.m, s.n, s.k, s.world, s.dtype, s.shard, s.b_layout
    if b_layout not in ('kn',):
        return None
    if dtype not in ('fp16',):
        return None
    if not 4096.0 <= k <= 16384:
        return None
    if not 0.5 <= m <= 16384:
        return None
    if not 1792.0 <= n <= 7168:
        return None
    if shard not in ('k',):
        return None
    if world not in (8,):
        return None
    if m <= 20.0:
        return 0
    if m <= 64.0:
        if m <= 50.0:
            return 1
        return 2
    return 3

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
