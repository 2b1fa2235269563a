"""The search: which config is tried next, what was found, what wins."""
