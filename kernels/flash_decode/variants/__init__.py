"""The variants of flash_decode, and the kernels that they are made of."""
