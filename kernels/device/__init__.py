"""Device code that several kernels share: the GEMM, attention, and kernels that calibrate a machine."""
