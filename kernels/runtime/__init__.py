"""From a config to a launch: compiling, operands, plans."""
