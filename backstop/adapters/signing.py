"""Ed25519 keys: one that signs heads of ledgers, and those that are trusted to have signed.

A key's id is the digest of the key, so nobody can give theirs the id of another. Private keys
are PEM (PKCS 8), from a file that only its owner can read, or from the environment. Trusted ones
stand in a file of lines, ``trusted KEY NAME`` or ``revoked KEY WHY``, where KEY is the line
between the dashes of a public key's PEM. The library `cryptography` is loaded when first needed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backstop.adapters.files import read_bytes
from backstop.core.heads import (
    HEAD_TYPE,
    Envelope,
    Head,
    check_type,
    head_bytes,
    open_envelope,
    open_head,
    pre_authentication,
    write_envelope,
)
from backstop.errors import BackstopError, LedgerError, MissingExtra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY_VARIABLE: Final = "BACKSTOP_SIGNING_KEY"
"""The environment variable that may hold a private key, as PEM."""

_MAX_KEY: Final = 1 << 16
_MAX_KEYRING: Final = 1 << 20
_SHOWN: Final = 80
_PREFIX: Final = bytes.fromhex("302a300506032b6570032100")
"""What a public Ed25519 key's DER form begins with; the key's 32 bytes follow."""
_DER: Final = len(_PREFIX) + 32
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class KeyFault(BackstopError):
    """A key, or a list of keys, cannot be used."""

    slug = "key-format"


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A private key; its `id` is that of the public one."""

    id: str
    key: Ed25519PrivateKey = field(repr=False)

    def sign(self, head: Head) -> str:
        """The head in a signed envelope: what a seal carries as its `signature`."""
        payload = head_bytes(head)
        return write_envelope(
            Envelope(
                payload_type=HEAD_TYPE,
                payload=payload,
                keyid=self.id,
                signature=self.key.sign(pre_authentication(HEAD_TYPE, payload)),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedKey:
    """A public key, whose it is or why it is revoked, and whether it is."""

    der: bytes
    note: str
    revoked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A head whose signature holds, the id of the key that made it, and the key's name."""

    head: Head
    keyid: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyring:
    """The keys that are trusted or revoked, by their ids; `name` is the file they come from."""

    name: str
    keys: dict[str, TrustedKey]

    def authenticate(self, signature: str, *, name: str) -> Signed:
        """The head that a key of this ring signed; `name` is the ledger's.

        Raises `LedgerError`: head-format, head-type, head-untrusted, head-revoked,
        head-signature; `MissingExtra`.
        """
        envelope = open_envelope(signature, name=name)
        check_type(envelope, name=name)
        key = self.keys.get(envelope.keyid)
        if key is None:
            raise LedgerError(
                f"{name}: signed by key {envelope.keyid[:_SHOWN]!r}, which {self.name} does not "
                "name. Add it there if you know whose it is; else fetch the ledger again.",
                slug="head-untrusted",
            )
        if key.revoked:
            raise LedgerError(
                f"{name}: signed by key {envelope.keyid}, which is revoked ({key.note}). Have "
                "what it says confirmed, and sign it with another key.",
                slug="head-revoked",
            )
        if not _holds(key.der, envelope):
            raise LedgerError(
                f"{name}: its signature is not one that key {envelope.keyid} made of it. Fetch the "
                "ledger again, and find out who wrote this one.",
                slug="head-signature",
            )
        head = open_head(envelope.payload, name=name)
        return Signed(head=head, keyid=envelope.keyid, note=key.note)


def key_id(der: bytes) -> str:
    """The id of a public key in its DER form: 32 digits of its SHA-256."""
    return hashlib.sha256(der).hexdigest()[:32]


def read_key(path: Path) -> SigningKey:
    """The private key in a PEM file. Raises `BackstopError`.

    ``key-exposed`` where others than its owner may open it, ``key-format`` for any other
    content, `MissingExtra`, and what reading a file raises.
    """
    _check_mode(path)
    return key_of(read_bytes(path, cap=_MAX_KEY), name=str(path))


def _check_mode(path: Path) -> None:
    try:
        mode = path.stat().st_mode
    except OSError:
        return  # reading it says why
    if mode & _OTHERS:
        raise KeyFault(
            f"{path}: others than its owner can read or change this private key (mode "
            f"{stat.S_IMODE(mode):04o}). Run `chmod 600`, and take a new key if others were there.",
            slug="key-exposed",
        )


def key_of(pem: bytes, *, name: str) -> SigningKey:
    """The private key in a PEM text. Raises `KeyFault`, `MissingExtra`; never shows the key."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as exc:
        raise _missing() from exc
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise _no_key(name, "it is locked by a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise _no_key(name, "it cannot be read") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(name, "it is of another kind")
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return SigningKey(id=key_id(der), key=key)


def _no_key(name: str, why: str) -> KeyFault:
    # What the library says may quote the key.
    return KeyFault(
        f"{name}: not an Ed25519 private key in PEM: {why}. "
        "`openssl genpkey -algorithm ed25519 -out FILE` makes one."
    )


def _missing() -> MissingExtra:
    return MissingExtra("signatures need `pip install 'backstop-gate[signing]'`.")


def read_keyring(path: Path) -> Keyring:
    """The keys that a file names. Raises `KeyFault` (``keys-format``), naming the line."""
    try:
        text = read_bytes(path, cap=_MAX_KEYRING).decode()
    except UnicodeDecodeError:
        raise _no_line(str(path), 1, "it is not text in UTF-8") from None
    return keyring_of(text, name=str(path))


def keyring_of(text: str, *, name: str) -> Keyring:
    """The keys in a text of lines. Blank lines and those that begin with # say nothing.

    Raises `KeyFault` (``keys-format``), also for a key that stands there twice: nobody could
    tell whether it is trusted.
    """
    keys: dict[str, TrustedKey] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split(maxsplit=2)
        if not words or words[0].startswith("#"):
            continue
        if words[0] not in {"trusted", "revoked"} or len(words) < len(("word", "key", "note")):
            what = "a line is `trusted KEY NAME` or `revoked KEY WHY`"
            raise _no_line(name, number, what)
        der = _der_of(words[1])
        if der is None:
            raise _no_line(name, number, "no public Ed25519 key in base64")
        if key_id(der) in keys:
            raise _no_line(name, number, f"key {key_id(der)} stands above already")
        keys[key_id(der)] = TrustedKey(der=der, note=words[2], revoked=words[0] == "revoked")
    return Keyring(name=name, keys=keys)


def _der_of(text: str) -> bytes | None:
    try:
        der = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return der if der.startswith(_PREFIX) and len(der) == _DER else None


def _no_line(name: str, number: int, what: str) -> KeyFault:
    return KeyFault(
        f"{name}, line {number}: {what}. `openssl pkey -in KEY -pubout` prints a key in the line "
        "between the dashes.",
        slug="keys-format",
    )


def _holds(der: bytes, envelope: Envelope) -> bool:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as exc:
        raise _missing() from exc
    try:
        Ed25519PublicKey.from_public_bytes(der[len(_PREFIX) :]).verify(
            envelope.signature, pre_authentication(HEAD_TYPE, envelope.payload)
        )
    except (InvalidSignature, ValueError):
        return False
    return True
