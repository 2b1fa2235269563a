"""What every operation is made of: shapes, spaces of configs, chips, the registry. Standard
library only."""
