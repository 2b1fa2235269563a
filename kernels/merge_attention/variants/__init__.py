"""The variants of merge_attention, and the kernels that they are made of."""
