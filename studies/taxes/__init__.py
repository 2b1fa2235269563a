"""The three taxes of BSP, isolated: launches, waiting, and bytes through memory."""
