"""Say what is fast: the analytic timeline, the data set, the tree, its evaluation and export, and
the selector."""
