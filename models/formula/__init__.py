"""Time formulas: fitted to rows, evaluated at dispatch."""
