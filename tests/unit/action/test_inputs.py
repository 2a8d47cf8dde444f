"""The action's inputs: every one has its default, its meaning and its own error line."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
import yaml

from backstop.action.inputs import InputError, Inputs, folder, parse, within
from backstop.adapters.github.comments import When
from backstop.core.divergence import Kind
from backstop.gate.request import Runtime

ACTION = Path(__file__).parents[3] / "action.yml"


def given(**inputs: str) -> Inputs:
    """The inputs as the runner hands them on: upper case, hyphens kept."""
    return parse({f"INPUT_{name.upper().replace('_', '-')}": text for name, text in inputs.items()})


def test_without_any_input_the_safe_defaults_hold() -> None:
    """A container, the event's base, a comment always, and no values shown."""
    found = parse({})
    assert found.config == PurePosixPath("backstop.yaml")
    assert found.runtime is Runtime.DOCKER
    assert found.comment is When.ALWAYS
    assert found.fail_on is None
    assert not found.allow_empty
    assert not found.show_values
    assert found.repeat == 1
    assert found.report_path == PurePosixPath("backstop-report")


def test_a_count_is_a_whole_number_within_its_bounds() -> None:
    """How often versions are replayed: digits, from 1 to 9."""
    assert given(repeat="2").repeat == 2
    for text in ("0", "10", "-1", "2.0", "two", "\u0662", "0000000002", "9" * 5000):
        with pytest.raises(InputError, match=r"input repeat: .* is no whole number from 1 to 9"):
            given(repeat=text)


def test_the_hyphens_of_a_name_are_kept() -> None:
    """The runner makes INPUT_GITHUB-TOKEN of github-token, and nothing else is read."""
    assert parse({"INPUT_GITHUB-TOKEN": "t0p"}).token == "t0p"  # noqa: S105  # made up
    assert parse({"INPUT_GITHUB_TOKEN": "t0p"}).token == ""


def test_each_input_becomes_its_value() -> None:
    """Words, truths, kinds and paths."""
    found = given(
        config="ci/backstop.yaml",
        agent="clerk",
        base_ref="release/1.x",
        runtime="none",
        comment="on-finding",
        fail_on="duplicate, missing",
        allow_empty="true",
        changed_only="false",
        cache_dir=".backstop-cache",
    )
    assert found.config == PurePosixPath("ci/backstop.yaml")
    assert (found.agent, found.base_ref) == ("clerk", "release/1.x")
    assert (found.runtime, found.comment) == (Runtime.NONE, When.ON_FINDING)
    assert found.fail_on == frozenset({Kind.DUPLICATE, Kind.MISSING})
    assert found.allow_empty
    assert found.changed_only is False
    assert found.cache_dir == PurePosixPath(".backstop-cache")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("runtime", "kvm", "none of docker, podman, none"),
        ("comment", "sometimes", "none of always, on-finding, never"),
        ("allow_empty", "yes", "neither true nor false"),
        ("fail_on", "duplicate,loss", "'loss' is no kind"),
        ("config", "/etc/passwd", "below the workspace"),
        ("config", "a/../../b", "below the workspace"),
        ("report_path", ".", "below the workspace"),
        ("base_ref", "--upload-pack=x", "no commit, branch or tag"),
        ("base_ref", "a..b", "no commit, branch or tag"),
    ],
)
def test_what_has_no_meaning_is_named_in_one_line(name: str, text: str, said: str) -> None:
    """The line says which input, what it was, and what would do."""
    with pytest.raises(InputError) as caught:
        given(**{name: text})
    assert str(caught.value).startswith(f"input {name.replace('_', '-')}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_two_names_of_the_base_are_refused() -> None:
    """Nobody could tell which of the two is meant."""
    with pytest.raises(InputError, match="keep one"):
        given(base="old", base_ref="main")


def test_secrets_are_not_in_a_representation() -> None:
    """Whatever prints the inputs prints no secret."""
    found = parse({"INPUT_GITHUB-TOKEN": "t0p", "INPUT_CACHE-SECRET": "s3cret"})
    assert found.secrets == ("t0p", "s3cret")
    assert "t0p" not in repr(found)
    assert "s3cret" not in repr(found)


def test_a_link_out_of_the_workspace_is_refused(tmp_path: Path) -> None:
    """A pull request that links its configuration to the runner's files gets one line."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "secret").touch()
    (tmp_path / "ws" / "backstop.yaml").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="out of the workspace"):
        within(tmp_path / "ws", PurePosixPath("backstop.yaml"))
    (tmp_path / "ws" / "real.yaml").touch()
    assert within(tmp_path / "ws", PurePosixPath("real.yaml")).name == "real.yaml"


def test_a_folder_that_others_wrote_is_reached_over_no_link(tmp_path: Path) -> None:
    """A change could put its own code in the place of the base, or hide it in the cache."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "base").symlink_to("shared")
    for path in ("base", "base/deep"):
        with pytest.raises(InputError, match="is a link, or lies behind one"):
            folder(tmp_path, PurePosixPath(path))
    assert folder(tmp_path, PurePosixPath("shared/new")) == tmp_path / "shared/new"
    assert within(tmp_path, PurePosixPath("base")) == tmp_path / "base"  # the control


def test_the_published_inputs_are_those_that_are_read() -> None:
    """action.yml declares each input that is parsed, and no other; its defaults parse."""
    declared = yaml.safe_load(ACTION.read_text())["inputs"]
    named = {name.replace("_", "-") for name in Inputs.__dataclass_fields__}
    assert set(declared) == named - {"token"} | {"github-token"}
    defaults = {
        f"INPUT_{name.upper()}": str(said.get("default", ""))
        for name, said in declared.items()
        if name != "github-token"
    }
    assert parse(defaults) == parse({})
