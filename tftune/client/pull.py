"""Artifacts from the service: verified, kept, and served from the folder when the service is away.
Standard library only; a signature needs `cryptography`.

Nothing is served that was not checked here. The digest is always checked; the signature wherever a
public key is pinned, of what is kept, too. Whatever goes wrong, the last good artifact stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import Literal

from tftune.client.cache import Kept, Slot
from tftune.client.http import Reply, Service, ServiceError, Unreachable
from tftune.client.keys import why_not_signed
from tftune.client.settings import read_settings
from tftune.client.wait import LIMIT_S
from tftune.db.target import Target
from tftune.kernels.core.registry import operation, packages
from tftune.kernels.core.shape import check_word
from tftune.models.artifact import Artifact, read_artifact
from tftune.models.compatibility import log_once

STAGES = ("stable", "canary", "candidate")
SERVING_S = 10.0
"""How long one request of a process that serves may take: it may have a kept artifact to go on
with."""
Fresh = Literal["new", "unchanged", "kept"]


@dataclass(frozen=True)
class Pulled:
    """An artifact that is served from now on."""

    path: Path
    artifact: Artifact
    fresh: Fresh
    """new: it came now. unchanged: the service has the same one. kept: the service gave none, and
    this is the last good one."""
    signed: bool
    """Whether its signature was checked against the pinned key."""
    why_kept: ServiceError | None = None

    def sentence(self) -> str:
        """What happened, for a person."""
        name = f"{self.artifact.op} on {self.artifact.target}"
        how = "signature checked" if self.signed else "digest checked, no key is pinned"
        said = {
            "new": f"{name}: new artifact {self.artifact.digest[:12]} ({how})",
            "unchanged": f"{name}: unchanged, {self.artifact.digest[:12]} ({how})",
            "kept": f"{name}: keeps {self.artifact.digest[:12]} ({how}): {self.why_kept}",
        }
        return said[self.fresh]


@dataclass(frozen=True)
class Source:
    """Where artifacts come from, and what is asked of them."""

    service: Service
    cache: Path
    public_key: str = ""
    stage: str = "stable"
    build: str = ""
    """"" for whichever build the service takes."""

    def pull(self, op: str, target: str, away: ServiceError | None = None) -> Pulled:
        """The artifact of an operation on a target. `away`: why the service is not asked at all.

        Raises ServiceError where the service gives none and none is kept; ValueError for unknown
        names and for a public key that is none; ImportError for a pinned key without
        `cryptography`.
        """
        name, machine = operation(op).name, Target.parse(target).name
        check_word("stage", self.stage, STAGES)
        slot = Slot.of(self.cache, self.service.url, name, machine, self.stage, self.build)
        kept = self._trusted(slot, name, machine)
        asked = {"If-None-Match": kept[0].etag} if kept else {}
        try:
            if away is not None:
                raise away
            reply = self.service.get(
                "v1", "artifacts", name, machine, headers=asked, stage=self.stage, build=self.build
            )
            if reply.status != 304:
                return self._taken(slot, reply, name, machine)
            if kept is None:
                raise ServiceError("the service says that nothing changed, and nothing is kept")
        except ServiceError as error:
            if kept is None:
                raise
            return replace(self._served(slot, kept, "kept"), why_kept=error)
        return self._served(slot, kept, "unchanged")

    def _served(self, slot: Slot, kept: tuple[Kept, Artifact], fresh: Fresh) -> Pulled:
        return Pulled(slot.path(kept[0]), kept[1], fresh, bool(self.public_key))

    def _trusted(self, slot: Slot, op: str, target: str) -> tuple[Kept, Artifact] | None:
        """What is kept, checked as if it had just come: the key may have been pinned since."""
        if (kept := slot.current()) is None:
            return None
        path = slot.path(kept)
        try:
            return kept, self._checked(path, path.read_bytes(), kept.signature, op, target)
        except ServiceError:
            return None

    def _taken(self, slot: Slot, reply: Reply, op: str, target: str) -> Pulled:
        """The artifact of a reply, from now on the slot's; raises ServiceError where it is not to
        be trusted, and then nothing has changed."""
        path = slot.write(reply.body)
        signature = reply.headers.get("x-tftune-signature", "")
        try:
            artifact = self._checked(path, reply.body, signature, op, target)
            given = reply.headers.get("x-tftune-digest", "")
            known = (sha256(reply.body).hexdigest(), artifact.digest)
            if given not in known:
                raise ServiceError(
                    f"the service announced the digest {given[:12] or 'none'}, and sent bytes of "
                    f"{known[0][:12]}, an artifact of {known[1][:12]}"
                )
        except ServiceError:
            kept = slot.current()
            if kept is None or slot.path(kept) != path:
                path.unlink(missing_ok=True)
            raise
        kept = Kept(path.stem, reply.headers.get("etag", f'"{path.stem}"'), signature)
        slot.swap(kept)
        return self._served(slot, (kept, artifact), "new")

    def _checked(
        self, path: Path, content: bytes, signature: str, op: str, target: str
    ) -> Artifact:
        if self.public_key and (why := why_not_signed(content, signature, self.public_key)):
            raise ServiceError(
                f"the artifact of {op} on {target} is refused: {why}; ask who releases, and look "
                "at public_key in the configuration"
            )
        try:
            artifact = read_artifact(path)
        except ValueError as error:
            raise ServiceError(f"the artifact of {op} on {target} is refused: {error}") from error
        if (artifact.op, artifact.target.name) != (op, target):
            raise ServiceError(
                f"asked for {op} on {target}, the service sent {artifact.op} on {artifact.target}"
            )
        return artifact


def pull_all(source: Source, target: str) -> list[Artifact]:
    """The artifacts of a target, of every operation that has one; what is kept for want of the
    service is logged once. Raises ServiceError where there is none at all."""
    artifacts, refused = list[Artifact](), list[ServiceError]()
    until, away = monotonic() + LIMIT_S, None
    for op in packages():
        limit_s = min(SERVING_S, max(0.0, until - monotonic()))
        asked = replace(source, service=replace(source.service, limit_s=limit_s))
        try:
            pulled = asked.pull(op, target, away)
        except ServiceError as error:
            refused.append(error)
            why: ServiceError | None = error
        else:
            artifacts.append(pulled.artifact)
            why = pulled.why_kept
            if why is not None:
                log_once(f"kept {source.service.url} {op}", pulled.sentence())
        if isinstance(why, Unreachable):  # once is waited for it, not for each operation
            away = why
    if not artifacts:
        raise refused[0]
    return artifacts


def source_at(url: str, stage: str = "stable") -> Source:
    """The service at `url` as the configuration file in the home folder says to ask it."""
    settings = read_settings()
    return Source(settings.service(url), settings.cache_folder, settings.public_key, stage)
