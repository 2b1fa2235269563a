"""The commands of the service: serve, and tokens create, list and revoke."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tftune.cli.console import note, print_json, print_table
from tftune.cli.options import Json

if TYPE_CHECKING:
    from tftune.serve.database import Database

DB = "tftune-serve.db"
ServiceDb = Annotated[
    str,
    typer.Option(
        "--db",
        metavar="PLACE",
        envvar="TFTUNE_SERVE_DB",
        help="SQLite file, or postgresql://user:password@host/name.",
    ),
]


def serve(
    db: ServiceDb = DB,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="Port.")] = 8377,
    anonymous_read: Annotated[
        bool, typer.Option("--anonymous-read", help="Scope read needs no token.")
    ] = False,
) -> None:
    """Serve a fleet's rows and artifacts over HTTP until Ctrl-C or SIGTERM; the database is made or
    migrated first."""
    _need()
    from tftune.serve.server import run
    from tftune.serve.settings import Settings

    run(Settings(db, anonymous_read), host, port)


def create_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will use it.")],
    scope: Annotated[
        list[str],
        typer.Option("--scope", help="read, rows, promote or admin; repeat for several."),
    ],
    days: Annotated[
        float | None, typer.Option("--days", help="It expires after so many days; default: never.")
    ] = None,
    node: Annotated[
        str | None, typer.Option("--node", help="It speaks for this node and no other.")
    ] = None,
    db: ServiceDb = DB,
    as_json: Json = False,
) -> None:
    """Make a token and print it, once: only its hash is stored."""
    with _database(db) as database:
        from tftune.serve.tokens import create

        token = create(database, name, scope, days, node)
    if as_json:
        return print_json({"token": token, "name": name, "scopes": scope, "node": node})
    print(token)
    note("keep it: the service stores its hash alone")


def list_tokens(db: ServiceDb = DB, as_json: Json = False) -> None:
    """Show every token without its secret."""
    with _database(db, must=True) as database:
        from tftune.serve.tokens import listed

        tokens = listed(database)
    if as_json:
        return print_json(tokens)
    head = ["id", "name", "scopes", "node", "created", "expires", "revoked"]
    print_table(f"tokens in {db}", head, [[_cell(row[name]) for name in head] for row in tokens])


def revoke_token(
    number: Annotated[str, typer.Argument(metavar="ID", help="Of the token, as list shows it.")],
    db: ServiceDb = DB,
    as_json: Json = False,
) -> None:
    """Revoke a token, at once."""
    with _database(db, must=True) as database:
        from tftune.serve.tokens import revoke

        if not revoke(database, number):
            raise ValueError(f"there is no token {number!r}; `tftune tokens list` shows them")
    if as_json:
        return print_json({"revoked": number})
    print(f"token {number} is revoked")


def _cell(value: Any) -> str:
    return {None: "-", True: "yes", False: "no"}.get(value, str(value))


@contextmanager
def _database(place: str, must: bool = False) -> Iterator[Database]:
    """The service's database; raises ValueError where it `must` be there and is not."""
    _need()
    if must and "://" not in place and not Path(place).exists():
        raise ValueError(f"there is no database {place}; `tftune serve` makes one; check --db")
    from sqlalchemy.exc import DBAPIError

    from tftune.serve.database import Database

    database = Database.open(place)
    try:
        yield database
    except DBAPIError as error:
        raise database.refusal(error) from error
    finally:
        database.close()


def _need() -> None:
    """Raise ImportError, with the next command, where the extra is not installed."""
    from importlib.util import find_spec

    packages = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "jinja2", "prometheus_client")
    if missing := [name for name in packages if find_spec(name) is None]:
        raise ImportError(
            f"the service needs {missing[0]}; install it with (in a clone): pip install '.[serve]'",
            name="tftune.serve",
        )
