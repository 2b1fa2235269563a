#!/usr/bin/env bash
# Measure all_gather_gemm on a GPU node into one database, within a time budget; run again, it goes on.
# usage: benchmarks/node.sh DB WORLD SECONDS [POOL]
set -euo pipefail
db=$1 world=$2 seconds=$3 pool=${4:-60}
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1  # no NVLink multicast
others=""
for m in 16 128 1024 8192; do
  size="m=$m,n=3584,k=8192,world=$world"
  others+="$size,shard=m;$size,dtype=bf16;$size,b_layout=nk;"
done
tftune search all_gather_gemm --shapes "paper:world=$world" --pool "$pool" --budget "$((seconds * 13 / 20))s" --db "$db"
tftune search all_gather_gemm --shapes "${others%;}" --pool "$((pool / 2))" --budget "$((seconds * 7 / 20))s" --db "$db"
tftune db check --db "$db"
