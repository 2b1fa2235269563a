"""Where configs are checked and timed: the node under its sandbox, the model, rows of the past."""
