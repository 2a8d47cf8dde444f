"""Signs a ledger's file, and checks one against trusted keys and a high-water mark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from backstop.adapters.files import chunks, write_atomic
from backstop.adapters.marks import MarkFile
from backstop.adapters.signing import (
    KEY_VARIABLE,
    Keyring,
    Signed,
    SigningKey,
    key_of,
    read_key,
    read_keyring,
)
from backstop.core.heads import Mark, check_head, check_mark, head_of, raised, signed, unsigned
from backstop.core.ledgerfile import Summary, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """Signs ledgers with one key, as of one instant and in one epoch of trust."""

    key: SigningKey
    now: datetime
    epoch: int = 0

    def sign(self, source: Path, target: Path, *, name: str, agent: str | None = None) -> Summary:
        """Write the sealed ledger `source` to `target`, signed; what it holds.

        Only what holds is signed, and only if it is still the same once it is written.
        Raises `LedgerError`, naming `name`; nothing is written then.
        """
        found = verify(chunks(source, kind="ledger"), name=name, expect_agent=agent)
        head = head_of(
            found.seal,
            agent=found.header.agent,
            epoch=self.epoch,
            at=self.now.isoformat(timespec="seconds"),
        )
        body = chunks(source, kind="ledger")
        write_atomic(target, signed(body, self.key.sign(head), digest=found.digest, name=name))
        return found


def signer(
    path: Path | None, environ: Mapping[str, str], *, now: datetime, epoch: int = 0
) -> Signer | None:
    """Who signs: the key in the file `path`, else the one in the environment, else nobody.

    Raises `BackstopError` for a key that cannot be used: whoever names one wants a signature.
    """
    if path is not None:
        return Signer(key=read_key(path), now=now, epoch=epoch)
    pem = environ.get(KEY_VARIABLE, "")
    # A secret that CI does not hand out (to forks, say) is an empty variable there.
    if not pem.strip():
        return None
    return Signer(key=key_of(pem.encode(), name=KEY_VARIABLE), now=now, epoch=epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A ledger whose signature holds, and the marks before and after it, if any is kept."""

    found: Summary
    by: Signed
    before: Mark | None = None
    after: Mark | None = None


def check_signed(
    file: Path, *, agent: str | None, trusted: Path, high_water: Path | None
) -> Checked:
    """Verify a ledger that must be signed, and hold it to the mark, which is raised if it holds.

    What the file says is looked at first, then who signed it, then what was seen before.
    Raises `BackstopError`; the mark is as it was then.
    """
    keyring = read_keyring(trusted)
    if high_water is None:
        found, by = _authenticated(file, keyring, agent=agent, mark=None)
        return Checked(found=found, by=by)
    with MarkFile(high_water).held() as kept:
        before = kept.read()
        found, by = _authenticated(file, keyring, agent=agent, mark=before)
        if before is not None:
            check_mark(before, by.head, found.marked, name=str(file))
        after = raised(before, by.head, heads=found.seal.heads, keyid=by.keyid)
        if after is not before:
            kept.write(after)
    return Checked(found=found, by=by, before=before, after=after)


def _authenticated(
    file: Path, keyring: Keyring, *, agent: str | None, mark: Mark | None
) -> tuple[Summary, Signed]:
    name = str(file)
    wanted = frozenset(() if mark is None else mark.heads.values())
    found = verify(chunks(file, kind="ledger"), name=name, expect_agent=agent, marked=wanted)
    if found.seal.signature is None:
        raise unsigned(name)
    by = keyring.authenticate(found.seal.signature, name=name)
    check_head(by.head, found.seal, agent=found.header.agent, name=name)
    return found, by
