"""`python -m tftune` is the command `tftune`."""

from tftune.cli.app import main

main()
