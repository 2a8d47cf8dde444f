"""Layers that travel between machines: believed only under the seal of the secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backstop.adapters.docker.building.kept import KeptLayers

FACTS = {"python": "/opt/backstop/env/bin/python"}


def read(kept: KeptLayers, name: str = "one") -> bytes | None:
    with kept.opened(name) as found:
        if found is None:
            return None
        facts, archive = found
        assert facts == FACTS
        return archive.read()


@pytest.fixture
def kept(tmp_path: Path) -> KeptLayers:
    layers = KeptLayers(folder=tmp_path / "cache", secret=b"k" * 32)
    assert layers.keep("one", FACTS, [b"a" * 3_000_000, b"b"])
    return layers


def test_what_was_kept_is_read_again(kept: KeptLayers) -> None:
    assert read(kept) == b"a" * 3_000_000 + b"b"
    assert read(kept, "other") is None
    assert "k" * 32 not in repr(kept)


def test_whatever_was_changed_is_not_believed(kept: KeptLayers) -> None:
    file = kept.folder / "one.layer"
    whole = file.read_bytes()
    for place in (0, 20, 90, 120, len(whole) // 2, len(whole) - 1):
        changed = bytearray(whole)
        changed[place] ^= 1
        file.write_bytes(changed)
        assert read(kept) is None, place
    for cut in (whole[:10], whole[:-1], whole + b"x", b""):
        file.write_bytes(cut)
        assert read(kept) is None
    file.write_bytes(whole)
    assert read(kept) is not None


def test_a_layer_of_another_name_or_another_secret_is_not_believed(kept: KeptLayers) -> None:
    whole = (kept.folder / "one.layer").read_bytes()
    (kept.folder / "two.layer").write_bytes(whole)
    assert read(kept, "two") is None
    assert read(KeptLayers(folder=kept.folder, secret=b"x" * 32)) is None


def test_only_the_newest_stay(kept: KeptLayers) -> None:
    os.utime(kept.folder / "one.layer", (1, 1))
    for name in ("two", "three"):
        assert kept.keep(name, FACTS, [name.encode()])
    assert sorted(path.name for path in kept.folder.iterdir()) == ["three.layer", "two.layer"]


def test_nothing_half_written_stays(kept: KeptLayers) -> None:
    def breaking() -> list[bytes]:
        raise ConnectionError("the daemon is gone")

    assert not kept.keep("two", FACTS, (chunk for _ in [0] for chunk in breaking()))
    assert [path.name for path in kept.folder.iterdir()] == ["one.layer"]


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not KeptLayers(folder=tmp_path / "file", secret=b"k").keep("one", FACTS, [b""])
