"""Confirm a shortlist on the ranks that will serve it."""
