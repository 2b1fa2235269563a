"""Measure in place: a few configs beside BSP, on the ranks that will run them; and remember what
was found."""
