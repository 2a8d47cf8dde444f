"""What is kept of a gate between two runs, and why it may be believed: a seal by a secret.

Whoever can write to a cache can write anything there: on a runner that is every branch and
pull request. An entry counts only if it was sealed under the secret, and under the very key
that is asked for; the key names all that the entry depends on.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from backstop.core.canon import Json, canonical, digest
from backstop.errors import ConfigError

FORM: Final = b"backstop-cache/1"
_SHORTEST: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """What entries are sealed with."""

    value: bytes = field(repr=False)


def secret_from(text: str) -> Secret:
    """The secret that `text` holds, blanks around it left out.

    Raises `ConfigError` (``cache-key``) for one that could be guessed.
    """
    value = text.strip().encode()
    if len(value) < _SHORTEST:
        raise ConfigError(
            f"the cache key has {len(value)} bytes; use at least {_SHORTEST}, made by chance, like "
            "those of `openssl rand -hex 32`",
            slug="cache-key",
        )
    return Secret(value=value)


def key_of(facts: Mapping[str, Json]) -> str:
    """The name of the entry that depends on these facts and on nothing else."""
    return digest(canonical(dict(facts), size=1 << 30))


def blinded(text: str, secret: Secret) -> str:
    """Stands for a secret text among the facts of a key: equal for equal, and no way back."""
    return hmac.new(secret.value, b"blinded\n" + text.encode(), hashlib.sha256).hexdigest()


def seal(body: bytes, *, key: str, secret: Secret) -> bytes:
    """An entry that holds `body` under `key`."""
    return b"\n".join([FORM, _mac(body, key, secret), body])


def unseal(entry: bytes, *, key: str, secret: Secret) -> bytes | None:
    """The body of an entry that was sealed just so; None for anything else."""
    parts = entry.split(b"\n", 2)
    if len(parts) != len(("form", "mac", "body")) or parts[0] != FORM:
        return None
    _, mac, body = parts
    return body if hmac.compare_digest(mac, _mac(body, key, secret)) else None


def _mac(body: bytes, key: str, secret: Secret) -> bytes:
    covered = b"\n".join([FORM, key.encode(), body])
    return hmac.new(secret.value, covered, hashlib.sha256).hexdigest().encode()
