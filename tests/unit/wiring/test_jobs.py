"""What the configurations of a change and of its base come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from backstop.errors import ConfigError
from backstop.gate.request import ReplayRequest
from backstop.wiring.jobs import configured, job_of

AGENTS = "version: 1\nagents:\n  desk: {path: agents/desk}\n"


def asked(folder: Path, sandbox: str, *, base: str | None, is_checkout: bool) -> ReplayRequest:
    """A change that configures `sandbox`; `base` is what the base says of it, None no file."""
    for side, said in (("head", sandbox), ("base", base)):
        (folder / side).mkdir(parents=True)
        if said is not None:
            (folder / side / "backstop.yaml").write_text(f"{AGENTS}sandbox: {said}\n", "utf-8")
    return ReplayRequest(
        config=folder / "head/backstop.yaml",
        base=folder / "base",
        base_is_checkout=is_checkout,
    )


LOOSE = {
    "{kind: none}": "sandbox.kind",
    "{python: ./python}": "sandbox.python",
    "{kind: docker, build: {dockerfile: Dockerfile}}": "sandbox.build.dockerfile",
    "{kind: docker, build: {wheels_only: false}}": "sandbox.build.wheels_only",
}
"""What has something of the change run outside of the walls."""


@pytest.mark.parametrize("sandbox", LOOSE)
def test_d1_a_change_that_brings_backstop_in_does_not_choose_what_holds_it_back(
    sandbox: str, tmp_path: Path
) -> None:
    """D1: the base has no word of it, and the change is not asked."""
    request = asked(tmp_path, sandbox, base=None, is_checkout=True)
    with pytest.raises(ConfigError, match=LOOSE[sandbox]) as raised:
        configured(request)
    assert raised.value.slug == "base-silent"


@pytest.mark.parametrize("sandbox", LOOSE)
def test_d1_the_base_may_choose_it(sandbox: str, tmp_path: Path) -> None:
    """D1: the control. And where the base says nothing of it, the change's word is not heard."""
    _, said = configured(asked(tmp_path / "said", sandbox, base=sandbox, is_checkout=True))
    _, silent = configured(asked(tmp_path / "silent", sandbox, base="{}", is_checkout=True))
    assert said is not None
    assert silent is not None
    assert said.sandbox != silent.sandbox


def test_d1_the_base_says_what_stays_out_of_an_image_unless_the_agent_is_new_there(
    tmp_path: Path,
) -> None:
    """D1, G08."""
    for base, top in (("{}", tmp_path / "{}" / "base"), (None, None)):
        request = asked(tmp_path / str(base), "{}", base=base, is_checkout=True)
        config, ruling = configured(request)
        assert job_of(request, config, ruling, config.agent(None)).ruling_top == top


def test_g08_what_stays_within_the_walls_a_first_change_may_choose(tmp_path: Path) -> None:
    """G08: a team with an index and an image of its own is not red for ever."""
    said = "{kind: docker, memory: 2g, build: {base: 'corp/python:3', index: 'https://corp/i'}}"
    _, ruling = configured(asked(tmp_path, said, base=None, is_checkout=True))
    assert ruling is not None
    assert (ruling.agents, ruling.sandbox.build.base) == ({}, "corp/python:3")


def test_whoever_names_a_folder_of_their_own_machine_chooses(tmp_path: Path) -> None:
    """No checkout of a base, but an agent's folder: there is one configuration, and it rules."""
    assert configured(asked(tmp_path, "{kind: none}", base=None, is_checkout=False))[1] is None


@pytest.mark.parametrize("several", [False, True])
def test_the_checkout_that_is_judged_is_no_base_of_itself(several: bool, tmp_path: Path) -> None:
    request = asked(tmp_path, "{}", base="{}", is_checkout=False)
    request = replace(request, base=tmp_path / "head")
    config, base = configured(request)
    with pytest.raises(ConfigError, match="is the checkout that is judged") as raised:
        job_of(request, config, base, config.agents["desk"], several=several)
    assert raised.value.slug == "base-elsewhere"
