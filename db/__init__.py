"""What happened: trials and runs as values, the SQLite store that keeps them, and the fingerprint
of machine and build."""
