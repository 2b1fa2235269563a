"""The client of a fleet's service: rows go there, artifacts come back, verified and kept."""
