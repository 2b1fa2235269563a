"""The pass of torch.compile that replaces collectives around GEMMs, as `tftune.compile_pass` makes
it."""
