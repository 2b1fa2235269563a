"""The variants of all_reduce, and the kernels that they are made of."""
