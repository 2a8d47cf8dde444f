"""What a checkout gives to an image, and what it never does."""

from __future__ import annotations

import os
import socket
import tarfile
import threading
from pathlib import Path, PurePosixPath

import pytest

from backstop.adapters.docker.building.context import Caps, read_context
from backstop.errors import SandboxError

HEADER = b'{"t":"ledger","format":1,"agent":"a"}\n'


def written(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def names(root: Path, **options: object) -> set[str]:
    with read_context(root, **options) as context:  # type: ignore[arg-type]  # handed on
        return set(context.entries)


def digest(root: Path, **options: object) -> str:
    with read_context(root, **options) as context:  # type: ignore[arg-type]  # handed on
        return context.digest


def refused(root: Path, **options: object) -> tuple[str, str]:
    with pytest.raises(SandboxError) as caught:
        read_context(root, **options)  # type: ignore[arg-type]  # handed on
    assert "\n" not in str(caught.value)
    return caught.value.slug, str(caught.value)


def test_source_is_taken_with_its_folders_and_its_bytes(tmp_path: Path) -> None:
    root = written(tmp_path, {"a/agent.py": "x = 1\n", "a/data/t.bin": b"\0\1", "b.txt": ""})
    with read_context(root) as context, tarfile.open(fileobj=context.archive) as tar:
        assert tar.getnames() == ["a", "a/agent.py", "a/data", "a/data/t.bin", "b.txt"]
        assert context.entries == set(tar.getnames())
        found = tar.extractfile("a/data/t.bin")
        assert found is not None
        assert found.read() == b"\0\1"
        assert context.size % 512 == 0
        assert context.withheld == 0


def test_the_same_content_is_the_same_bytes_whenever_and_by_whomever_it_was_made(
    tmp_path: Path,
) -> None:
    one = written(tmp_path / "one", {"a.py": "1", "b/c.py": "2"})
    two = written(tmp_path / "two", {"b/c.py": "2", "a.py": "1"})
    os.utime(two / "a.py", (1, 1))
    (two / "a.py").chmod(0o600)
    (two / "b").chmod(0o700)
    assert digest(one) == digest(two)
    with read_context(two) as context, tarfile.open(fileobj=context.archive) as tar:
        for member in tar:
            assert (member.uid, member.gid, member.uname, member.mtime) == (0, 0, "", 0)
            assert member.mode == (0o755 if member.isdir() else 0o644)


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a.py").write_text("2"),
        lambda root: (root / "a.py").chmod(0o755),
        lambda root: (root / "a.py").rename(root / "b.py"),
        lambda root: (root / "new").mkdir(),
        lambda root: (root / "link").symlink_to("a.py"),
    ],
)
def test_every_change_that_an_agent_could_see_changes_the_digest(
    tmp_path: Path, change: object
) -> None:
    root = written(tmp_path, {"a.py": "1"})
    before = digest(root)
    change(root)  # type: ignore[operator]  # each is a function of the root
    assert digest(root) != before


@pytest.mark.parametrize(
    "secret",
    [
        ".git/config",
        "sub/.git/config",
        ".env",
        "agent/.env",
        ".ENV",
        ".env.production",
        "prod.env",
        ".netrc",
        "pip.conf",
        "server.pem",
        "tls/Server.KEY",
        "id_rsa",
        "id_ed25519.old",
        ".ssh/config",
        ".aws/credentials",
        ".config/gcloud/application_default_credentials.json",
        "gha-creds-0123456789abcdef.json",
        "client_secret_1.apps.json",
        ".kube/config",
        "terraform.tfstate",
        "a/__pycache__/b.pyc",
        ".venv/lib/x.py",
        "node_modules/x/index.js",
    ],
)
def test_what_may_hold_a_secret_or_was_made_here_stays_out(tmp_path: Path, secret: str) -> None:
    root = written(tmp_path, {"agent.py": "", secret: "s3cret"})
    with read_context(root) as context:
        assert b"s3cret" not in context.archive.read()
        assert context.withheld == 1
    assert "agent.py" in names(root)


def test_a_git_file_of_a_worktree_stays_out_as_well(tmp_path: Path) -> None:
    root = written(tmp_path, {"agent.py": "", ".git": "gitdir: /elsewhere\n"})
    assert names(root) == {"agent.py"}


def test_a_folder_is_known_for_a_virtual_environment_by_what_is_in_it(tmp_path: Path) -> None:
    root = written(tmp_path, {"agent.py": "", "env312/pyvenv.cfg": "", "env312/lib/x.py": "s3cret"})
    assert names(root) == {"agent.py", "env312"}


@pytest.mark.parametrize(
    "ledger",
    [HEADER, b'{ "format": 1, "t": "ledger" }\n{}\n', b"\x28\xb5\x2f\xfd" + b"packed"],
)
def test_a_ledger_stays_out_by_what_it_is_wherever_it_lies(tmp_path: Path, ledger: bytes) -> None:
    root = written(tmp_path, {"a/data.jsonl": ledger, "a/rows.jsonl": '{"t":"row"}\n' + "x"})
    assert names(root) == {"a", "a/rows.jsonl"}


def test_what_is_named_stays_out_and_nothing_of_the_same_name_elsewhere(tmp_path: Path) -> None:
    root = written(tmp_path, {"l/a.db": "s3cret", "m/a.db": ""})
    assert names(root, withheld=[PurePosixPath("l/a.db")]) == {"l", "m", "m/a.db"}


def test_a_link_within_the_checkout_stays_a_link(tmp_path: Path) -> None:
    root = written(tmp_path, {"shared/tools.py": "", "a/agent.py": ""})
    (root / "a" / "tools.py").symlink_to("../shared/tools.py")
    (root / "b").symlink_to("a")
    with read_context(root) as context, tarfile.open(fileobj=context.archive) as tar:
        assert tar.getmember("a/tools.py").linkname == "../shared/tools.py"
        assert tar.getmember("b").issym()
        assert "b/agent.py" not in tar.getnames()


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "x/../../outside", "a/../../o"])
def test_a_link_out_of_the_checkout_is_refused(tmp_path: Path, target: str) -> None:
    written(tmp_path, {"outside": "s3cret", "o": "s3cret"})
    root = written(tmp_path / "checkout", {"a/agent.py": ""})
    (root / "link").symlink_to(target)
    slug, message = refused(root)
    assert slug == "context-refused"
    assert "'link' is a link to" in message
    assert "out of the checkout" in message


def test_a_link_that_is_ignored_does_not_matter(tmp_path: Path) -> None:
    root = written(tmp_path, {"agent.py": "", ".backstopignore": "link\n"})
    (root / "link").symlink_to("/etc/passwd")
    assert names(root) == {"agent.py", ".backstopignore"}


def test_what_is_neither_file_nor_folder_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    root = written(tmp_path, {"agent.py": ""})
    os.mkfifo(root / "pipe")
    slug, message = refused(root)
    assert slug == "context-refused"
    assert "'pipe' is neither file nor folder" in message


def test_a_socket_is_refused(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        assert refused(tmp_path)[0] == "context-refused"


def test_a_name_with_control_characters_is_shown_without_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a\n::error::\u202eb")
    _, message = refused(tmp_path)
    assert "\\n::error::\\u202eb" in message


@pytest.mark.parametrize(
    ("caps", "words"),
    [
        (Caps(size=1023), "more than 0 MiB"),
        (Caps(entries=3), "more than 3 files and folders"),
        (Caps(depth=1), "more than 1 folders deep"),
    ],
)
def test_a_checkout_beyond_a_cap_is_too_large(tmp_path: Path, caps: Caps, words: str) -> None:
    root = written(tmp_path, {"a/b/c": b"0" * 1024, "d": ""})
    assert names(root) == {"a", "a/b", "a/b/c", "d"}
    slug, message = refused(root, caps=caps)
    assert slug == "context-too-large"
    assert words in message


def test_a_million_ignored_files_are_not_looked_at_for_ever(tmp_path: Path) -> None:
    root = written(tmp_path, {".backstopignore": "x*\n", **{f"x{n}": "" for n in range(30)}})
    assert refused(root, caps=Caps(entries=3))[0] == "context-too-large"


def test_a_missing_checkout_and_a_closed_file_are_named(tmp_path: Path) -> None:
    slug, message = refused(tmp_path / "none")
    assert slug == "context-unreadable"
    assert "No such file" in message


def test_all_may_lie_below_a_prefix(tmp_path: Path) -> None:
    root = written(tmp_path, {"agent.py": ""})
    with (
        read_context(root, prefix=PurePosixPath("x/y")) as context,
        tarfile.open(fileobj=context.archive) as tar,
    ):
        assert tar.getnames() == ["x", "x/y", "x/y/agent.py"]


def test_names_that_are_no_text_and_long_names_survive(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.txt")
    long = "/".join(["d" * 100] * 3) + "/ü.txt"
    root = written(tmp_path, {long: "1"})
    (root / odd).write_text("2")
    with read_context(root) as context, tarfile.open(fileobj=context.archive) as tar:
        assert {odd, long} <= set(tar.getnames())


def test_a_folder_that_turns_into_a_link_meanwhile_is_never_followed(tmp_path: Path) -> None:
    written(tmp_path / "outside", {"agent.py": "s3cret"})
    root = written(tmp_path / "checkout", {"a/agent.py": "", "z": ""})
    (root / "link").symlink_to(tmp_path / "outside")
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            (root / "a").rename(root / ".git")
            (root / "link").rename(root / "a")
            (root / "a").rename(root / "link")
            (root / ".git").rename(root / "a")

    attacker = threading.Thread(target=swap)
    attacker.start()
    turned_away = 0
    try:
        for _ in range(20_000):
            if turned_away > 3:
                break
            try:
                with read_context(root, withheld=[PurePosixPath("link")]) as context:
                    assert b"s3cret" not in context.archive.read()
            except SandboxError:
                turned_away += 1
    finally:
        over.set()
        attacker.join()
    assert turned_away, "the attacker was never there at the right moment: this shows nothing"


def test_a_file_is_read_from_what_was_read_and_links_are_followed_within_it(tmp_path: Path) -> None:
    written(tmp_path, {"outside.txt": "s3cret"})
    root = written(tmp_path / "in", {"a/real.txt": "0123456789", ".env": "s3cret"})
    (root / "link.txt").symlink_to("a/real.txt")
    (root / "gone.txt").symlink_to("nowhere")
    (root / "secret.txt").symlink_to(".env")
    (root / "loop.txt").symlink_to("pool.txt")
    (root / "pool.txt").symlink_to("loop.txt")
    with read_context(root, prefix=PurePosixPath("x")) as context:
        (root / "a" / "real.txt").write_text("changed meanwhile")
        assert context.read("a/real.txt", most=100) == b"0123456789"
        assert context.read("link.txt", most=4) == b"0123"
        for nothing in ("gone.txt", "secret.txt", "loop.txt", "a", "none", "../outside.txt"):
            assert context.read(nothing, most=100) is None
        with tarfile.open(fileobj=context.archive) as tar:
            assert tar.getnames()[0] == "x"
