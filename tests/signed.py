"""Keys for tests, always the same ones, and files that hold them."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backstop.adapters.signing import SigningKey, key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key pair: as PEM, as the text that a list of keys holds, and as what signs."""

    pem: bytes
    public: str
    signing: SigningKey

    def file(self, path: Path, *, mode: int = 0o600) -> Path:
        """The private key in a file of this mode."""
        path.write_bytes(self.pem)
        path.chmod(mode)
        return path


def key(number: int) -> Key:
    """The key pair of this number, below 256."""
    private = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32)
    pem = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    der = private.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return Key(
        pem=pem, public=base64.b64encode(der).decode(), signing=key_of(pem, name="a test's key")
    )
