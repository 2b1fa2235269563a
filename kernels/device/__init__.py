"""Device code that kernels share (the GEMM, attention), and kernels that calibrate a machine."""
