"""`python -m tftune` is the command `tftune`."""

from tftune.cli import main

main()
