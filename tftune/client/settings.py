"""Where the service is, and what is trusted of it: the client's configuration file. Standard
library only.

    url = "https://tune.example"
    token_file = "/etc/tftune/token"
    public_key = "1W7...="

The file is `~/.config/tftune/client.toml`; every field may be left out.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tftune.client.http import Service

FILE = Path(".config/tftune/client.toml")
"""In the home folder."""
CACHE = Path(".cache/tftune")
"""In the home folder: what was pulled, and what was pushed."""


@dataclass(frozen=True)
class Settings:
    """What the configuration file says."""

    url: str = ""
    token_file: str = ""
    """A file that holds the token alone: never the token itself, so that this file may be
    shared."""
    public_key: str = ""
    """The release key that artifacts must be signed with, as `tftune keys create` prints it; "" for
    artifacts whose digest alone is checked."""
    plain_http: bool = False
    """Whether a token may travel unencrypted to another machine."""
    cache: str = ""
    """The folder that keeps what was pulled; "" for `~/.cache/tftune`."""

    @property
    def cache_folder(self) -> Path:
        return Path(self.cache) if self.cache else Path.home() / CACHE

    def service(self, url: str | None = None, token: str | None = None) -> Service:
        """The service at `url`, else at the file's, asked with `token`, else with that of
        TFTUNE_TOKEN, else with the file's.

        Raises ValueError where neither names a service, or where the token file cannot be read.
        """
        if not (place := url or self.url):
            raise ValueError(
                f'no service is named; give --url, or write url = "https://..." into ~/{FILE}'
            )
        known = token or os.environ.get("TFTUNE_TOKEN") or self._token()
        return Service.at(place, known, plain_http=self.plain_http)

    def _token(self) -> str:
        if not self.token_file:
            return ""
        try:
            return Path(self.token_file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(
                f"cannot read the token in {self.token_file}: {error}; write the token there, or "
                f"change token_file in ~/{FILE}"
            ) from error


def read_settings(path: Path | None = None) -> Settings:
    """The settings of a file; None: the file in the home folder, which need not be there.

    Raises ValueError naming the file and the field where it is not one.
    """
    place = Path.home() / FILE if path is None else path
    try:
        table = tomllib.loads(place.read_text())
    except FileNotFoundError as error:
        if path is None:
            return Settings()
        raise ValueError(
            f"there is no configuration file {place}; write one, see docs/fleet.md"
        ) from error
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read {place}: {error}; see docs/fleet.md for its form") from error
    return _checked(place, table)


def _checked(place: Path, found: dict[str, Any]) -> Settings:
    known = {field.name: type(field.default) for field in fields(Settings)}
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"{place} has no field {name!r} to set; it has {', '.join(known)}")
        if type(value) is not known[name]:
            raise ValueError(
                f"{name} in {place} is {value!r:.60}, and must be of type {known[name].__name__}"
            )
    return Settings(**found)
