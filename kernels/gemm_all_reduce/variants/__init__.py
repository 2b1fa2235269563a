"""The variants of gemm_all_reduce."""
