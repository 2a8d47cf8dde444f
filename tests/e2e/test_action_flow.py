"""The action from its variables to its exit code, against a GitHub on loopback.

Without containers (`runtime: none`): what the runner and a pull request see is the same. Where no
verdict matters, the change deletes its ledger, which is no pass and needs no replay.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.action_runner import events
from tests.action_runner.described import described
from tests.action_runner.runner import Ended
from tests.action_runner.specimen import AGENT, LEDGER, lay_out
from tests.action_runner.town import Town, rows, run_here
from tests.contract.github.installed import DESCRIPTIONS
from tests.github.fake import TOKEN, Fault, fake_github


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    """A repository whose base is v1 and whose change, v3, deletes the ledger too."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        town.forget()
        yield town


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Town, Ended]]:
    """v3 on a pull request, once for all that is asked of it."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path_factory.mktemp("blocked"))
        town.set_up()
        yield town, town.run()


def test_a_change_that_orders_again_is_blocked_in_one_comment(
    blocked: tuple[Town, Ended],
) -> None:
    """v3: exit 1, one comment with three rows, the summary, annotations and outputs."""
    town, ended = blocked
    assert ended.exit_code == 1
    (comment,) = town.comments
    assert comment.startswith("<!-- backstop-gate:backstop-yaml -->\n")
    assert rows(comment, "DUPLICATE") == 3
    assert rows(ended.summary, "DUPLICATE") == 3
    assert [a.name for a in ended.log.annotations].count("error") == 3
    assert ended.outputs["decision"] == "BLOCK"
    assert ended.outputs["exit-code"] == "1"
    assert ended.outputs["duplicates"] == "3"
    assert ended.outputs["verdict-digest"] in comment


def test_g13_the_coverage_is_said_first_and_the_name_of_the_gate_stays(
    blocked: tuple[Town, Ended],
) -> None:
    """G13: 'compared N of M' everywhere; the marker follows from what is gated alone."""
    town, ended = blocked
    assert ended.outputs["coverage"] == "7/7"
    assert "Compared **7 of 7 runs**" in town.comments[0]
    assert "compared 7 of 7 runs" in ended.log.text


def test_g03_no_output_holds_the_comment(blocked: tuple[Town, Ended]) -> None:
    """G03: outputs are short; the report is a folder, and its path the output."""
    _, ended = blocked
    assert max(map(len, ended.outputs.values())) < 100
    folder = ended.workspace / ended.outputs["report-path"]
    assert rows((folder / "report.md").read_text(), "DUPLICATE") == 3
    assert (folder / "verdict.json").is_file()


def test_g24_no_place_shows_a_value(blocked: tuple[Town, Ended]) -> None:
    """G24, G25: comment, summary, log and report name the field, and none has its value."""
    town, ended = blocked
    folder = ended.workspace / ended.outputs["report-path"]
    told = [*town.comments, ended.summary, ended.raw]
    told += [path.read_text() for path in folder.iterdir()]
    assert all("vendor_id" in text for text in told)
    assert not any("acme-corp" in text.lower() for text in told)


def test_values_are_shown_where_the_workflow_asks_and_a_merge_queue_gets_no_comment(
    tmp_path: Path,
) -> None:
    """The control of G24; and `merge_group` is judged as a pull request is."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        ended = town.run("merge_group", inputs={"show-values": "true"})
    assert (ended.exit_code, ended.outputs["decision"]) == (1, "BLOCK")
    assert "acme-corp" in ended.summary.lower()
    verdict = ended.workspace / ended.outputs["report-path"] / "verdict.json"
    assert "acme-corp" in verdict.read_text().lower()
    assert town.comments == []


def test_the_version_that_wrote_the_ledger_passes(tmp_path: Path) -> None:
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up(head="v1")
        town.touch()
        ended = town.run()
    assert (ended.exit_code, ended.outputs["decision"]) == (0, "PASS")
    assert ended.outputs["duplicates"] == "0"
    assert "Backstop: pass" in town.comments[0]


def test_g23_what_the_base_does_already_is_marked_on_a_pull_request(tmp_path: Path) -> None:
    """G23, D3: subtracted on a pull request."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up(base="v3", head="v3")
        town.touch()
        assert town.run().exit_code == 0
        assert "also on base" in town.comments[0].lower()


def test_before_a_deploy_nothing_is_subtracted(tmp_path: Path) -> None:
    """D3: what blocked on the pull request's base blocks on a push just the same."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up(base="v3", head="v3")
        ended = town.run("push")
    assert (ended.exit_code, ended.outputs["duplicates"]) == (1, "3")
    assert town.comments == []


def test_a_run_by_hand_without_a_base_is_judged_by_its_own_ledger(tmp_path: Path) -> None:
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        ended = town.run("workflow_dispatch")
    assert (ended.exit_code, ended.outputs["duplicates"]) == (1, "3")
    assert "no base: nobody named one" in ended.summary


def test_g29_a_second_push_updates_the_same_comment(town: Town) -> None:
    """G29: the comment of the first push says what the second one comes to, and is the only one."""
    assert town.run().exit_code == 3
    (first,) = town.comments
    assert "inconclusive" in first
    town.move_on("v1")
    assert town.run().exit_code == 0
    (second,) = town.comments
    assert "not applicable" in second


def test_g20_a_change_that_touches_no_agent_is_told_so_at_once(town: Town) -> None:
    """G20: the required check ends instead of staying pending."""
    town.move_on("v1")
    (town.head / "README.md").write_text("New words.\n")
    ended = town.run()
    assert (ended.exit_code, ended.outputs["decision"]) == (0, "PASS")
    assert "touches no agent" in ended.summary
    assert ended.outputs["coverage"] == "0/0"


def test_g12_a_history_of_nothing_is_no_pass(town: Town) -> None:
    """G12: a change that deletes the ledger compares nothing, and is not green."""
    ended = town.run()
    assert (ended.exit_code, ended.outputs["decision"]) == (3, "INCONCLUSIVE")
    assert "its ledger vanished" in ended.log.text
    assert "its ledger vanished" in town.comments[0]


def test_g10_a_fork_gets_the_summary_and_the_same_verdict(town: Town) -> None:
    """G10: the token reads only, so nothing is posted, and nothing else is otherwise."""
    town.github.accounts[TOKEN] = replace(town.github.accounts[TOKEN], writes=False)
    step = town.step()
    told = events.pull_request(base=town.base, head=step.sha, fork=True)
    ended = run_here(replace(step, event=told), town.root / "fork")
    assert (ended.exit_code, ended.outputs["decision"]) == (3, "INCONCLUSIVE")
    assert town.comments == []
    assert "its ledger vanished" in ended.summary
    (notice,) = [a for a in ended.log.named("notice") if "no comment" in a.properties["title"]]
    assert "fork" in notice.data


def test_a_token_that_may_not_comment_is_a_warning(town: Town) -> None:
    """Not a fork: somebody forgot the permission, and is told which."""
    town.github.accounts[TOKEN] = replace(town.github.accounts[TOKEN], writes=False)
    ended = town.run()
    assert ended.exit_code == 3
    (warning,) = ended.log.named("warning")
    assert "pull-requests: write" in warning.data


def test_a_comment_that_github_does_not_take_changes_no_decision(town: Town) -> None:
    town.github.plan(Fault.GARBLES, on="GET /repos/octo/repo/issues/")
    ended = town.run()
    assert ended.exit_code == 3
    assert any("comment could not be written" in w.data for w in ended.log.named("warning"))


@pytest.mark.parametrize(("comment", "written"), [("never", 0), ("on-finding", 1), ("always", 1)])
def test_g06_a_comment_always_on_finding_or_never(town: Town, comment: str, written: int) -> None:
    """G06: whom to tell is an input; the exit code is not moved by it."""
    ended = town.run(inputs={"comment": comment})
    assert ended.exit_code == 3
    assert len(town.comments) == written


def test_g06_without_a_finding_nobody_is_told(town: Town) -> None:
    """G06: `on-finding` stays silent on a change that touches nothing."""
    town.move_on("v1")
    assert town.run(inputs={"comment": "on-finding"}).exit_code == 0
    assert town.comments == []


def test_a_change_of_the_policy_is_said_and_judged_under_both(town: Town) -> None:
    """D1: the change that lets duplicates pass is judged by the base's word."""
    config = town.head / "backstop.yaml"
    config.write_text(config.read_text().replace("[duplicate]", "[missing]"))
    ended = town.run()
    assert ended.exit_code == 3
    assert "edits the policy" in town.comments[0]
    assert "edits the declarations" not in town.comments[0]


def test_g07_a_base_without_a_ledger_takes_that_of_an_ancestor_and_says_so(tmp_path: Path) -> None:
    """G07: the nearest ancestor that has one; the report names the commit."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        older = town.base
        (town.root / "base" / LEDGER).unlink()
        town.base = github.commit_folder(town.root / "base", older)
        ended = town.run()
    assert (ended.exit_code, ended.outputs["duplicates"]) == (1, "3")
    assert older[:12] in ended.summary


def test_g07_no_ancestor_with_a_ledger_is_its_own_exit_code(tmp_path: Path) -> None:
    """G07: nothing to compare with is 3, and said; never a pass."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        (town.root / "base" / LEDGER).unlink()
        town.base = github.commit_folder(town.root / "base")
        ended = town.run()
    assert ended.exit_code == 3
    assert "nothing to compare with" in ended.summary


def test_g08_the_change_that_brings_backstop_in_is_neutral(tmp_path: Path) -> None:
    """G08: the base has neither; the change is not green by accident, and not red for ever."""
    with fake_github() as github:
        town = Town(github=github, root=tmp_path)
        town.set_up()
        town.forget()
        town.base = github.commit({"README.md": b"Before Backstop.\n"})
        strict = town.run()
        allowed = town.run(inputs={"allow-empty": "true"})
    assert strict.exit_code == 3
    assert allowed.exit_code == 0
    assert "nothing to compare yet" in allowed.summary


def test_untrusted_words_are_no_commands(town: Town) -> None:
    """What a change writes into its configuration is quoted in the error, and not obeyed."""
    planted = "::error title=planted::x"
    (town.head / "backstop.yaml").write_text(f'version: 1\n"{planted}\\n##[error]planted": 1\n')
    ended = town.run()
    assert ended.exit_code == 2
    assert "planted" in ended.log.text
    assert not any("planted" in command.name for command in ended.log.commands)
    assert not any(c.properties.get("title") == "planted" for c in ended.log.commands)
    assert len(ended.log.named("error")) == 1


def test_the_checkout_cannot_send_the_report_elsewhere(town: Town) -> None:
    """A change that links the report's folder out of the workspace has no report written."""
    (town.head / "backstop-report").symlink_to(town.root)
    ended = town.run()
    assert ended.exit_code == 3
    assert ended.outputs["report-path"] == ""
    assert not (town.root / "verdict.json").exists()
    assert any("out of the workspace" in w.data for w in ended.log.named("warning"))


def test_a_link_in_the_reports_folder_is_replaced_and_not_followed(town: Town) -> None:
    victim = town.root / "victim"
    victim.write_text("kept")
    (town.head / "backstop-report").mkdir()
    (town.head / "backstop-report" / "verdict.json").symlink_to(victim)
    ended = town.run()
    assert ended.outputs["report-path"] == "backstop-report"
    assert victim.read_text() == "kept"


def test_secrets_are_masked_before_anything_is_said(town: Town) -> None:
    ended = town.run(inputs={"cache-secret": "a-secret-of-the-cache"})
    masks = [command.data for command in ended.log.named("add-mask")]
    assert masks == [TOKEN, "a-secret-of-the-cache"]
    assert ended.raw.startswith("::add-mask::")
    told = [*town.comments, ended.summary, ended.log.text]
    assert not any(secret in text for secret in masks for text in told)


def add_clerk(town: Town) -> None:
    """Base and change get a second agent, whose ledger is still to come."""
    for folder in (town.root / "base", town.head):
        config = folder / "backstop.yaml"
        text = config.read_text()
        start, end = text.index("  vendor-onboarding:"), text.index("gate:")
        clerk = text[start:end].replace("vendor-onboarding", "clerk")
        clerk = clerk.replace("vendor_onboarding", "clerk")
        config.write_text(f"{text[:end]}{clerk}{text[end:]}")
        shutil.copytree(folder / AGENT, folder / "agents" / "clerk")
    town.base = town.github.commit_folder(town.root / "base")


def test_g32_an_agent_without_a_history_has_its_own_verdict_in_the_one_comment(town: Town) -> None:
    """G32: enabled, and nothing recorded yet: 3, in a section of its own beside the other's."""
    add_clerk(town)
    ended = town.run()
    assert (ended.exit_code, ended.outputs["decision"]) == (3, "INCONCLUSIVE")
    (comment,) = town.comments
    assert "neither its commit nor an ancestor at hand has that file" in ended.log.text
    assert "clerk" in comment
    assert "vendor-onboarding" in comment


def test_g09_an_agent_that_is_not_touched_is_carried_forward(town: Town) -> None:
    """G09: it keeps what was said of it, as of then; it is neither judged anew nor MISSING."""
    add_clerk(town)
    first = town.run()
    assert "vendor-onboarding: INCONCLUSIVE" in first.log.text
    shutil.copyfile(town.root / "base" / LEDGER, town.head / LEDGER)
    shutil.rmtree(town.head / AGENT)
    shutil.copytree(town.root / "base" / AGENT, town.head / AGENT)
    with (town.head / "agents" / "clerk" / "agent.py").open("a") as file:
        file.write("# touched\n")
    second = town.run()
    assert second.exit_code == 3
    assert "vendor-onboarding" not in second.log.text.split("clerk: INCONCLUSIVE")[0]
    (comment,) = town.comments
    assert "vendor-onboarding" in comment
    assert second.outputs["missing"] == "0"


@pytest.mark.parametrize("description", DESCRIPTIONS)
def test_what_a_run_asks_and_is_answered_is_what_github_describes(
    tmp_path: Path, description: str
) -> None:
    """Through a proxy that answers 422 to a wrong request and 500 to a wrong answer of the fake."""
    with fake_github() as github, described(github, description) as proxy:
        town = Town(github=github, root=tmp_path, api=proxy)
        town.set_up()
        town.forget()
        assert town.run().exit_code == 3
        assert town.run().exit_code == 3
        assert len(town.comments) == 1
        assert github.requests("PATCH")


def test_the_self_gate_of_our_own_ci_finds_its_base_beside_its_head(tmp_path: Path) -> None:
    """`gate.yml`: base and head are folders of one workspace, and nothing is fetched."""
    lay_out(tmp_path / "workspace" / "specimen" / "base", "v1")
    lay_out(tmp_path / "workspace" / "specimen" / "head", "v3")
    with fake_github() as github:
        town = Town(github=github, root=tmp_path, base="a" * 40, head=tmp_path / "workspace")
        inputs = {
            "config": "specimen/head/backstop.yaml",
            "base": "specimen/base",
            "changed-only": "false",
            "comment": "never",
        }
        ended = town.run(inputs=inputs)
        assert github.asked == []
    assert (ended.exit_code, ended.outputs["duplicates"]) == (1, "3")
