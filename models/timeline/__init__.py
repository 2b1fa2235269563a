"""The analytic model: what a chip takes for each thing, and a simulator that plays a call."""
