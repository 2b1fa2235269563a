"""The service: one place for a fleet's rows and artifacts. Nothing that selects or runs a kernel
imports this folder; it needs the extra `[serve]`."""
