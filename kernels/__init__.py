"""What can be computed, and how it may vary. Knows nothing of tuning; importing it loads the
standard library only."""
