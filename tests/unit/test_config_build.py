"""What `sandbox.build` says of how a candidate's image is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop import config
from backstop.errors import ConfigError


def build_of(said: str) -> config.Build:
    text = f"version: 1\nagents: {{a: {{path: x}}}}\nsandbox: {{build: {{{said}}}}}\n"
    return config.loads(text, name="backstop.yaml", root=Path("/project")).sandbox.build


def test_what_is_left_out_is_ours_to_choose_and_builds_nothing_from_source() -> None:
    assert build_of("") == config.Build(
        python="3.12",
        base=None,
        requirements=None,
        index=None,
        proxy=None,
        wheels_only=True,
        dockerfile=None,
        memory=2 << 30,
        wall=600,
    )


def test_all_that_can_be_said_of_a_build_is_read() -> None:
    digest = "sha256:" + "0a" * 32
    said = (
        f"python: '3.13', base: 'registry.example:5000/team/python:3.13@{digest}', "
        "requirements: a/.locks/pylock.toml, index: 'https://index.example/simple/', "
        "proxy: 'http://10.0.0.1:3128', wheels_only: false, dockerfile: deploy/Dockerfile, "
        "memory: 512m, wall: 2m"
    )
    assert build_of(said) == config.Build(
        python="3.13",
        base=f"registry.example:5000/team/python:3.13@{digest}",
        requirements="a/.locks/pylock.toml",
        index="https://index.example/simple/",
        proxy="http://10.0.0.1:3128",
        wheels_only=False,
        dockerfile="deploy/Dockerfile",
        memory=512 << 20,
        wall=120,
    )


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("python: '3.10'", "build.python"),
        ("python: 3.12", "build.python"),
        ("base: '--privileged'", "build.base"),
        ("base: 'python@sha256:abc'", "build.base"),
        ("base: 'a b'", "build.base"),
        ("requirements: ../other/requirements.txt", "no file below the checkout"),
        ("requirements: /etc/passwd", "no file below the checkout"),
        ("requirements: ''", "no file below the checkout"),
        ("requirements: 'a//b'", "no file below the checkout"),
        ("dockerfile: ./Dockerfile", "no file below the checkout"),
        ('dockerfile: "a\\nb"', "no file below the checkout"),
        ("index: 'https://me:secret@index.example/'", "BACKSTOP_INDEX_URL"),
        ("index: 'file:///etc'", "BACKSTOP_INDEX_URL"),
        ("proxy: 'http://a b'", "BACKSTOP_INDEX_URL"),
        ("wheels_only: 'no'", "build.wheels_only"),
        ("memory: lots", "is no size"),
        ("wall: soon", "is no time span"),
        ("network: host", "unknown key"),
    ],
)
def test_what_has_no_meaning_is_refused_with_its_place(said: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as refused:
        build_of(said)
    assert str(refused.value).startswith("backstop.yaml:3: ")
    assert "secret" not in str(refused.value)
