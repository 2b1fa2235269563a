"""The command `tftune`, and `python -m tftune`: all of it where typer is installed, else `select`
and `doctor`."""

from __future__ import annotations

from importlib.util import find_spec


def main() -> None:
    """Run the command line and exit."""
    if find_spec("typer") is None:
        from tftune.cli.base import main as run
    else:
        from tftune.cli.app import main as run
    run()


if __name__ == "__main__":
    main()
