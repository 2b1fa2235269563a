"""The release key: an Ed25519 pair whose private half signs artifacts offline and never meets the
service. Needs `cryptography`, of the extra [client]; Ed25519 is RFC 8032.

A public key and a signature are text: base64 of 32 and of 64 bytes.
"""

from __future__ import annotations

import base64
import binascii
import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from tftune.db.files import refuse_special

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_BYTES, SIGNATURE_BYTES = 32, 64


def _need(what: str) -> None:
    if find_spec("cryptography") is None:
        raise ImportError(
            f"{what} needs cryptography, which is not installed; in a clone: pip install "
            "'.[client]'"
        )


def create(path: Path) -> str:
    """Write a new private key (PKCS 8, PEM, readable by its owner alone) and return its public key.

    Raises ValueError where the file is there already: a lost release key cannot be made again.
    """
    _need("a release key")
    refuse_special(path)
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    content = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ValueError(
            f"{path} is there already; a key is never replaced: name another file"
        ) from error
    with os.fdopen(file, "wb") as opened:
        opened.write(content)
    return public_key_of(key)


def read_private(path: Path) -> Ed25519PrivateKey:
    """The private key of a file; raises ValueError where it is none."""
    _need("a release key")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"{path} is no private key without a passphrase; `tftune keys create` writes one"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError(f"{path} is a key of another kind than Ed25519; see `tftune keys create`")
    return key


def public_key_of(key: Ed25519PrivateKey) -> str:
    """Its public key, as text."""
    return base64.b64encode(key.public_key().public_bytes_raw()).decode()


def sign(content: bytes, key: Ed25519PrivateKey) -> str:
    """The signature over these very bytes, as text."""
    return base64.b64encode(key.sign(content)).decode()


def why_not_signed(content: bytes, signature: str, public_key: str) -> str | None:
    """The sentence for which `signature` is not the key's over these bytes, or None where it is.

    Raises ValueError where `public_key` is none: a key that is mistyped must not be passed over.
    """
    _need("an artifact's signature")
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    raw = decoded(public_key, KEY_BYTES)
    if raw is None:
        raise ValueError(
            f"the public key {public_key!r:.60} is not base64 of {KEY_BYTES} bytes; `tftune keys "
            "create` prints it"
        )
    if not signature:
        return "it is not signed, and a public key is pinned here"
    given = decoded(signature, SIGNATURE_BYTES)
    if given is None:
        return f"its signature {signature!r:.40} is not base64 of {SIGNATURE_BYTES} bytes"
    try:
        Ed25519PublicKey.from_public_bytes(raw).verify(given, content)
    except InvalidSignature:
        return "its signature is not the release key's over these bytes"
    return None


def decoded(text: str, size: int) -> bytes | None:
    """The bytes that base64 stands for; None where it stands for none, or for another number."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == size else None
