"""One file for each step of the schema."""
