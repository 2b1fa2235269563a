"""Several nodes, simulated: whether signals of single tiles pay beyond one node."""
