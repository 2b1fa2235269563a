"""The command line: one file for what a command does, `app` for their order."""
