"""Find out what is fast: benches, checks, clocks, samplers and the search."""
