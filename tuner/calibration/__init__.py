"""Measure a machine's constants."""
