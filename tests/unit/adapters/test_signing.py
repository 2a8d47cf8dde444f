"""Keys and signatures: where a key comes from, who is trusted, and what a signature is of."""

from __future__ import annotations

import base64
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from backstop.adapters.marks import MarkFile
from backstop.adapters.signing import KEY_VARIABLE, key_of, keyring_of, read_key, read_keyring
from backstop.core.heads import Head, Mark, open_envelope, tip_of, write_envelope
from backstop.errors import BackstopError
from backstop.wiring.signing import signer
from tests.signed import key

OURS, OTHER = key(1), key(2)
HEAD = Head(agent="desk", size=3, digest="d" * 64, tip="e" * 64, epoch=0, at="2026-11-30")
TRUSTED = keyring_of(f"# ours\n\ntrusted {OURS.public} ci 2026\n", name="keys")
NOW = datetime(2026, 11, 30, tzinfo=UTC)


def error_of(action: Callable[[], object]) -> BackstopError:
    with pytest.raises(BackstopError) as caught:
        action()
    return caught.value


def test_a_signature_of_a_trusted_key_is_believed() -> None:
    found = TRUSTED.authenticate(OURS.signing.sign(HEAD), name="L")
    assert (found.head, found.keyid, found.note) == (HEAD, OURS.signing.id, "ci 2026")


def test_a_signature_of_any_other_key_is_not() -> None:
    error = error_of(lambda: TRUSTED.authenticate(OTHER.signing.sign(HEAD), name="L"))
    assert error.slug == "head-untrusted"
    assert OTHER.signing.id in str(error)


def test_nobody_signs_under_the_id_of_another() -> None:
    envelope = msgspec.json.decode(OTHER.signing.sign(HEAD))
    envelope["signatures"][0]["keyid"] = OURS.signing.id
    text = msgspec.json.encode(envelope).decode()
    assert error_of(lambda: TRUSTED.authenticate(text, name="L")).slug == "head-signature"


def test_what_anybody_may_have_written_does_not_flood_an_error() -> None:
    envelope = open_envelope(OURS.signing.sign(HEAD), name="L")
    for flood in ({"keyid": "k" * 9999}, {"payload_type": "t" * 9999}):
        text = write_envelope(replace(envelope, **flood))  # type: ignore[arg-type]  # text, both
        error = error_of(lambda t=text: TRUSTED.authenticate(t, name="L"))  # type: ignore[misc]  # a default binds it now
        assert error.slug in {"head-untrusted", "head-type"}
        assert len(str(error)) < 400


def test_every_bit_of_payload_and_signature_counts() -> None:
    text = OURS.signing.sign(HEAD)
    envelope = msgspec.json.decode(text)
    for member in (envelope, envelope["signatures"][0]):
        name = "payload" if member is envelope else "sig"
        whole = member[name]
        changed = bytearray(base64.b64decode(whole))
        changed[5] ^= 1
        member[name] = base64.b64encode(changed).decode()
        other = msgspec.json.encode(envelope).decode()
        assert error_of(lambda t=other: TRUSTED.authenticate(t, name="L")).slug == "head-signature"  # type: ignore[misc]  # a default binds it now
        member[name] = whole
    assert TRUSTED.authenticate(msgspec.json.encode(envelope).decode(), name="L").head == HEAD


def test_a_signature_that_is_no_signature_at_all_is_refused() -> None:
    envelope = open_envelope(OURS.signing.sign(HEAD), name="L")
    for bad in (b"", b"s", b"s" * 64, b"s" * 65):
        text = write_envelope(replace(envelope, signature=bad))
        assert error_of(lambda t=text: TRUSTED.authenticate(t, name="L")).slug == "head-signature"  # type: ignore[misc]  # a default binds it now


def test_keys_rotate_and_a_revoked_one_is_named() -> None:
    both = keyring_of(f"trusted {OURS.public} old\ntrusted {OTHER.public} new\n", name="keys")
    assert {both.authenticate(k.signing.sign(HEAD), name="L").note for k in (OURS, OTHER)} == {
        "old",
        "new",
    }
    after = keyring_of(
        f"revoked {OURS.public} laptop lost 2026-11-30\ntrusted {OTHER.public} new\n", name="keys"
    )
    assert after.authenticate(OTHER.signing.sign(HEAD), name="L").note == "new"
    error = error_of(lambda: after.authenticate(OURS.signing.sign(HEAD), name="L"))
    assert error.slug == "head-revoked"
    assert "laptop lost 2026-11-30" in str(error)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"trust {OURS.public} ci", 1),
        (f"trusted {OURS.public}", 1),
        ("trusted", 1),
        ("# x\ntrusted c29tZXRoaW5n ci", 2),
        ("trusted !!! ci", 1),
        ("trusted é ci", 1),
        (f"trusted {OURS.public[:-4]} ci", 1),
        (f"trusted {OURS.public} ci\nrevoked {OURS.public} lost", 2),
        ("-----BEGIN PUBLIC KEY-----", 1),
    ],
)
def test_a_list_of_keys_says_nothing_that_is_not_understood(text: str, line: int) -> None:
    """A revocation with a typing error must not go unread."""
    error = error_of(lambda: keyring_of(text, name="keys"))
    assert (error.slug, f"keys, line {line}:" in str(error)) == ("keys-format", True)


def test_a_list_of_keys_is_a_file_of_text(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    assert error_of(lambda: read_keyring(path)).slug == "file-missing"
    path.write_bytes(b"\xff")
    assert error_of(lambda: read_keyring(path)).slug == "keys-format"
    path.write_text(f"trusted {OURS.public} ci\n", encoding="utf-8")
    assert list(read_keyring(path).keys) == [OURS.signing.id]


def test_a_private_key_is_its_owners_alone(tmp_path: Path) -> None:
    assert read_key(OURS.file(tmp_path / "key.pem")).id == OURS.signing.id
    for mode in (0o640, 0o604, 0o602, 0o620):
        path = OURS.file(tmp_path / "key.pem", mode=mode)
        error = error_of(lambda: read_key(path))  # noqa: B023  # called at once
        assert (error.slug, f"mode {mode:04o}" in str(error)) == ("key-exposed", True)


def test_a_private_key_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert error_of(lambda: read_key(tmp_path / "key.pem")).slug == "file-missing"


def test_a_private_key_may_come_through_a_pipe() -> None:
    """As ``--key <(vault read ...)`` gives it."""
    reading, writing = os.pipe()
    os.write(writing, OURS.pem)
    os.close(writing)
    assert read_key(Path(f"/dev/fd/{reading}")).id == OURS.signing.id
    os.close(reading)


def locked() -> bytes:
    return Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )


def of_another_kind() -> bytes:
    return generate_private_key(SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


@pytest.mark.parametrize(
    ("pem", "why"),
    [
        (locked(), "passphrase"),
        (of_another_kind(), "of another kind"),
        (b"MC4CAQAwBQYDK2VwBCIEIHNlY3JldA==", "cannot be read"),
        (OURS.pem[:60], "cannot be read"),
        (b"\xff\0", "cannot be read"),
    ],
    ids=["locked", "another kind", "no PEM", "cut", "bytes"],
)
def test_what_is_no_ed25519_key_is_refused_and_never_shown(pem: bytes, why: str) -> None:
    error = error_of(lambda: key_of(pem, name="K"))
    assert error.slug == "key-format"
    assert why in str(error)
    assert "IEI" not in str(error)
    assert error.__cause__ is None


def test_a_key_does_not_show_itself() -> None:
    assert "rivate" not in repr(OURS.signing)


def test_a_key_comes_from_a_file_or_else_from_the_environment(tmp_path: Path) -> None:
    environ = {KEY_VARIABLE: OTHER.pem.decode()}
    from_file = signer(OURS.file(tmp_path / "key.pem"), environ, now=NOW)
    from_environment = signer(None, environ, now=NOW)
    assert from_file is not None
    assert from_environment is not None
    assert (from_file.key.id, from_environment.key.id) == (OURS.signing.id, OTHER.signing.id)


def test_no_key_is_nobody_and_a_bad_one_is_an_error() -> None:
    assert signer(None, {}, now=NOW) is None
    assert signer(None, {KEY_VARIABLE: " \n"}, now=NOW) is None
    error = error_of(lambda: signer(None, {KEY_VARIABLE: "hunter2"}, now=NOW))
    assert error.slug == "key-format"
    assert "hunter2" not in str(error)


def test_signatures_say_which_extra_they_need(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['cryptography'] = sys.modules['cryptography.exceptions'] = None\n"
        "from backstop.adapters.signing import key_of, keyring_of\n"
        "from backstop.errors import MissingExtra\n"
        "ring = keyring_of(f'trusted {sys.argv[1]} ci', name='keys')\n"
        "for use, it in (key_of, b''), (ring.authenticate, sys.argv[2]):\n"
        "    try:\n"
        "        use(it, name='it')\n"
        "    except MissingExtra as exc:\n"
        "        print(exc)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, OURS.public, OURS.signing.sign(HEAD)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("backstop-gate[signing]") == 2


MARK = Mark(
    format=1,
    head=msgspec.structs.replace(HEAD, tip=tip_of({"r1": "a" * 32})),
    keyid="k",
    heads={"r1": "a" * 32},
)


def test_a_mark_is_kept_whole(tmp_path: Path) -> None:
    path = tmp_path / "mark.json"
    with MarkFile(path).held() as kept:
        assert kept.read() is None
        kept.write(MARK)
        assert kept.read() == MARK
    assert not list(tmp_path.glob("*.part"))


def test_a_mark_that_is_there_and_cannot_be_read_is_never_taken_for_none(tmp_path: Path) -> None:
    damaged, dangling = tmp_path / "damaged.json", tmp_path / "dangling.json"
    damaged.write_bytes(b"")
    dangling.symlink_to("nowhere")
    assert error_of(MarkFile(damaged).read).slug == "mark-damaged"
    assert error_of(MarkFile(dangling).read).slug == "file-missing"


def test_nobody_else_reads_a_mark_while_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "mark.json"
    with MarkFile(path).held():
        lock = os.open(tmp_path / ".mark.json.lock", os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(lock)


def test_a_mark_in_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    def hold() -> None:
        with MarkFile(tmp_path / "no" / "mark.json").held():
            raise AssertionError

    assert error_of(hold).slug == "file-unwritable"
