"""The command line makes the keys that the guard makes, of tokens, and shows no value."""

from __future__ import annotations

from pathlib import Path

import pytest

import backstop as library
from backstop.core.declaration import Declaration
from backstop.core.redaction import key_from, token
from tests.e2e.command import in_a_process, refused

SECRET = "a secret of the desk"  # noqa: S105 - of nobody
HIDDEN = Declaration(tool="mail", identity=("to",), fields={"to": ("email", "redact")})


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "b.yaml"
    path.write_text(
        "version: 1\nagents: {desk: {tools: {mail: "
        "{identity: [to], fields: {to: [email, redact]}}}}}\n",
        encoding="utf-8",
    )
    return path


def test_a_key_is_made_of_the_token_whatever_the_spelling(config: Path) -> None:
    made = token("ana@example.org", ("email", "redact"), key_from(SECRET))
    key = library.effect_key("mail", {"to": made}, declaration=HIDDEN, agent="desk", run="r1")
    for text in ("ana@example.org", " ANA@example.org"):
        call = ("--tool", "mail", "--args", f'{{"to": "{text}"}}', "--run", "r1")
        ran = in_a_process("canon", "key", *call, "--config", config, BACKSTOP_REDACTION_KEY=SECRET)
        assert (ran.code, ran.err) == (0, "")
        assert f"key          {key}" in ran.out
        assert "example.org" not in ran.out


def test_without_the_key_no_key_is_made_up(config: Path) -> None:
    call = ("--tool", "mail", "--args", '{"to": "ana@example.org"}', "--config", config)
    assert "ana" not in refused("redaction-key", "canon", "key", *call)
    with pytest.raises(library.BackstopError) as caught:
        library.effect_key("mail", {"to": "ana@example.org"}, declaration=HIDDEN)
    assert caught.value.slug == "redaction-key"


def test_a_key_that_could_be_guessed_is_refused(config: Path) -> None:
    call = ("canon", "key", "--tool", "mail", "--args", '{"to": "x"}', "--config", config)
    ran = in_a_process(*call, BACKSTOP_REDACTION_KEY="short")
    assert ran.code == 2
    assert ran.err.startswith("error[redaction-key]: the redaction key has 5 bytes")
