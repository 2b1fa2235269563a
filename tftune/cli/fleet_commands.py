"""The commands that talk to a fleet's service: push, pull, sign, keys create."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tftune.cli.console import note
from tftune.cli.options import DEFAULT_DB, Db, Op, TargetName, file_to_write, open_store, out_option
from tftune.cli.store_commands import AnyBench, AnyMode, OneOp, filters_of

if TYPE_CHECKING:
    from tftune.client.http import Service
    from tftune.client.push import Pushed
    from tftune.client.settings import Settings
    from tftune.models.artifact import Artifact

Url = Annotated[
    str | None,
    typer.Option(
        "--url", metavar="URL", help="The service; default: url of the configuration file."
    ),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        envvar="TFTUNE_TOKEN",
        show_default=False,
        help="Who asks; default: what token_file of the configuration file holds. Better not as a "
        "word of a command, which others can list.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="PATH",
        help="Configuration of the client; default: ~/.config/tftune/client.toml.",
    ),
]
PublicKey = Annotated[
    str | None,
    typer.Option(
        "--public-key",
        metavar="KEY",
        help="Release key that the artifact must be signed with; default: public_key of the "
        "configuration file.",
    ),
]


def push(
    url: Url = None,
    op: OneOp = None,
    target: TargetName = None,
    bench: AnyBench = None,
    mode: AnyMode = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also what the service has had before.")
    ] = False,
    captured: Annotated[
        list[Path] | None,
        typer.Option(
            "--captured", metavar="FILE", help="In place of rows, this capture; repeat for several."
        ),
    ] = None,
    db: Db = DEFAULT_DB,
    token: Token = None,
    config: ConfigFile = None,
) -> None:
    """Send the rows of the database to the service; the same command goes on after a stop, and rows
    that are there already are not stored twice."""
    from tftune.client.push import node_name
    from tftune.client.push import push as send
    from tftune.db.findings import findings

    settings, service = _asked(config, url, token)
    if captured:
        return _push_captures(captured, target, service)
    with open_store(db) as store:
        trials = store.trials(**filters_of(op, target, bench, mode, db), condition=None)
        runs, all_findings = store.runs(), findings(store)
    if not trials:
        raise ValueError(f"{db} has no such rows; `tftune trials stats --db {db}` counts them")

    def told(pushed: Pushed) -> None:
        through = pushed.sent + pushed.skipped
        note(f"{through:,} of {pushed.rows:,} rows, {pushed.stored:,} new to {service.url}")

    done = send(service, settings.cache_folder, runs, trials, again=again, told=told)
    for finding in (finding for finding in all_findings if finding.state != "closed"):
        value = {name: getattr(finding, name) for name in ("op", "target", "shape", "mode", "text")}
        value |= {"node": node_name(), "at": finding.opened}
        service.post_json("v1", "findings", value=value)
        note(f"{service.url} has finding {finding.id}")
    print(
        f"{done.rows:,} rows of {db}: {done.stored:,} stored by {service.url}, {done.known:,} "
        f"known to it, {done.skipped:,} pushed before"
    )


def _push_captures(paths: list[Path], target: str | None, service: Service) -> None:
    """One request for each process: sent again later, its counts replace those before."""
    from tftune.client.push import node_name
    from tftune.db.captured import FORM, captures, merged

    all_captures = captures(paths)
    for capture in all_captures:
        shapes = [count.to_dict() for count in merged(capture.counts)]
        named = {"id": capture.id, "target": target}
        value: dict[str, Any] = {name: word for name, word in named.items() if word}
        value |= {"capture": FORM, "node": node_name(), "shapes": shapes}
        service.post_json("v1", "captures", value=value)
    print(f"{len(all_captures):,} captures are with {service.url}")


def pull(
    op: Op,
    target: TargetName = None,
    url: Url = None,
    stage: Annotated[
        Literal["stable", "canary", "candidate"],
        typer.Option("--stage", help="How far the artifact has been promoted."),
    ] = "stable",
    build: Annotated[
        str,
        typer.Option("--build", metavar="BUILD", help="Of this build, as the service names it."),
    ] = "",
    out: Annotated[Path | None, out_option("Also write the artifact here, whole.")] = None,
    public_key: PublicKey = None,
    token: Token = None,
    config: ConfigFile = None,
) -> None:
    """Fetch the artifact of an operation, check digest and signature, and keep it; prints its path.
    Exit code 1 where the last good one had to serve."""
    from tftune.client.pull import Source
    from tftune.db.files import replace_file
    from tftune.db.target import detect

    settings, service = _asked(config, url, token)
    key = public_key or settings.public_key
    source = Source(service, settings.cache_folder, key, stage, build)
    pulled = source.pull(op, target if target is not None else detect().name)
    note(pulled.sentence())
    if out is not None:
        replace_file(out, pulled.path.read_bytes(), what="the artifact ", make_folder=True)
    print(out or pulled.path)
    raise typer.Exit(1 if pulled.fresh == "kept" else 0)


def sign(
    artifact: Annotated[Path, typer.Argument(metavar="ARTIFACT", help="An exported artifact.")],
    key: Annotated[
        Path, typer.Option("--key", metavar="FILE", help="The private key of `tftune keys create`.")
    ],
    send: Annotated[
        bool, typer.Option("--send", help="Give the signature to the service; the key stays here.")
    ] = False,
    url: Url = None,
    token: Token = None,
    config: ConfigFile = None,
) -> None:
    """Sign an artifact with the release key, without any connection, and print the signature; it is
    checked first that the artifact is whole."""
    from hashlib import sha256

    from tftune.client import keys
    from tftune.models.artifact import read_artifact

    loaded, content = read_artifact(artifact), artifact.read_bytes()
    private = keys.read_private(key)
    signature = keys.sign(content, private)
    note(f"{artifact} ({loaded.digest[:12]}) for public key {keys.public_key_of(private)}")
    print(signature)
    if send:
        _, service = _asked(config, url, token)
        value = {"digest": sha256(content).hexdigest(), "signature": signature}
        place = ("v1", "artifacts", loaded.op, loaded.target.name, "signature")
        service.post_json(*place, value=value)
        note(f"{service.url} has the signature")


def create_key(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", callback=file_to_write, help="Where the private key is written."
        ),
    ],
) -> None:
    """Make a release key: the private half goes into FILE, which its owner alone may read, and the
    public half is printed."""
    from tftune.client.keys import create

    public = create(file)
    note(f'{file}: keep it away from nodes and service; clients pin: public_key = "{public}"')
    print(public)


def send_report(
    url: str, found: Artifact, build: Mapping[str, str], checks: Sequence[dict[str, Any]]
) -> None:
    """Give the service what `tftune verify` measured on this node."""
    from tftune.client.push import node_name

    _, service = _asked(None, url, None)
    value = {
        "node": node_name(), "op": found.op, "target": found.target.name, "digest": found.digest,
        "build": dict(build), "rows": list(checks),
    }  # fmt: skip
    service.post_json("v1", "reports", value=value)
    note(f"{service.url} has the report")


def _asked(config: Path | None, url: str | None, token: str | None) -> tuple[Settings, Service]:
    """The client's settings, and the service that the options or they name."""
    from tftune.client.settings import read_settings

    settings = read_settings(config)
    return settings, settings.service(url, token)
