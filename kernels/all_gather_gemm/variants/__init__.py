"""The variants of all_gather_gemm: one file each, device code and what is its own on the host."""
