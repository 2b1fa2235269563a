"""The variants of gemm_reduce_scatter."""
