"""Relative paths of a candidate begin at its project, each version's at its own (ADR 43)."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from backstop.core.verdict import AgentVerdict, Decision, content_digest
from backstop.wiring.examining import Asked, examine, settled
from backstop.wiring.surveying import Search, survey
from tests.e2e.checkouts import AGENT, Repository, repository
from tests.e2e.command import ROOT, backstop, in_a_process

pytestmark = pytest.mark.filterwarnings("ignore")

READS = AGENT.replace(
    "from google.adk.agents import LlmAgent\n",
    "import json\n\nfrom google.adk.agents import LlmAgent\n\n"
    'ENDING = open("data/ending.txt").read()\n',
).replace("    pass\n", '    args["vendor"] += ENDING\n')
WRITES = """    try:
        with open({path}, "w") as file:
            file.write("paid")
    except PermissionError:
        pass
"""


def project(folder: Path, agent: str = READS, **data: str) -> Repository:
    """A repository whose agent lies two folders deep in a project; both versions are the same."""
    made = repository(folder)
    for side in (made.base, made.head):
        (side / "pyproject.toml").write_text('[project]\nname = "desk"\nversion = "1"\n', "utf-8")
        (side / "agents/desk/agent.py").write_text(agent, "utf-8")
        (side / "data").mkdir()
        for stem, text in {"ending": "", **data}.items():
            (side / f"data/{stem}.txt").write_text(text, "utf-8")
    return made


def judged(repo: Repository) -> AgentVerdict:
    (agent,) = repo.gate().verdict.agents
    return agent


def refused(repo: Repository) -> str:
    """What the command says where it cannot load a version."""
    asked = ("gate", "--config", repo.head / "backstop.yaml", "--base", repo.base)
    ran = backstop(*asked)
    assert (ran.code, ran.out) == (2, "")
    return ran.err.strip()


def test_a_relative_path_is_read_from_the_project(tmp_path: Path) -> None:
    found = judged(project(tmp_path))
    assert (found.decision, found.counts["match"]) == (Decision.PASS, 1)


def test_a_file_that_a_run_misses_is_named_and_no_pass(tmp_path: Path) -> None:
    late = ("    pass\n", '    args["vendor"] += open("data/ending.txt").read()\n')
    repo = project(tmp_path, AGENT.replace(*late))
    assert judged(repo).decision is Decision.PASS
    (repo.head / "data/ending.txt").unlink()
    found = judged(repo)
    assert found.decision is Decision.INCONCLUSIVE
    assert "No such file or directory: 'data/ending.txt' at agent.py:11" in " ".join(found.why)


def test_a_file_that_an_import_misses_is_named_and_no_pass(tmp_path: Path) -> None:
    repo = project(tmp_path)
    (repo.head / "data/ending.txt").unlink()
    assert "the file data/ending.txt is not there; commit it; a relative path" in refused(repo)


def test_each_version_reads_its_own_file_and_the_difference_is_judged(tmp_path: Path) -> None:
    repo = project(tmp_path)
    repo.write("data/ending.txt", " Ltd")
    found = judged(repo)
    assert (found.decision, found.counts["duplicate"]) == (Decision.BLOCK, 1)


def test_d7_a_file_that_code_names_and_no_run_reads_is_told_where_it_changed(
    tmp_path: Path,
) -> None:
    """D7: it lies outside of the agent's folder, and one that nobody names is none of it."""
    body = ('return {"ok": True}', 'return {"ok": open("data/fees.txt").read()}')
    repo = project(tmp_path, READS.replace(*body), fees="1", notes="1")
    assert judged(repo).decision is Decision.PASS
    repo.write("data/notes.txt", "2")
    assert judged(repo).decision is Decision.PASS
    repo.write("data/fees.txt", "2")
    found = judged(repo)
    assert found.decision is Decision.INCONCLUSIVE
    assert found.coverage.uncovered == ("../../data/fees.txt changed and no run read it",)


def test_a_relative_write_is_refused_and_told_as_one(tmp_path: Path) -> None:
    repo = project(
        tmp_path, READS.replace("    args[", WRITES.format(path='"paid.log"') + "    args[")
    )
    found = judged(repo)
    assert found.decision is Decision.INCONCLUSIVE
    (told,) = [line for line in found.coverage.uncovered if "paid.log" in line]
    assert "open (writes paid.log at agent.py:" in told
    assert not list(tmp_path.rglob("paid.log"))


@pytest.mark.parametrize(
    "path", ['__import__("os").environ["TMPDIR"] + "/x"', "__import__('tempfile').mkstemp()[0]"]
)
def test_a_write_to_a_temporary_folder_costs_nothing(tmp_path: Path, path: str) -> None:
    repo = project(tmp_path, READS.replace("    args[", WRITES.format(path=path) + "    args["))
    assert judged(repo).decision is Decision.PASS


def test_a_temporary_folder_is_removed_as_ever(tmp_path: Path) -> None:
    """Its files are removed by names alone, below an open folder."""
    removes = (
        '    with __import__("tempfile").TemporaryDirectory() as at: open(at + "/x", "w").close()\n'
    )
    repo = project(tmp_path, READS.replace("    args[", removes + "    args["))
    assert judged(repo).decision is Decision.PASS


def test_nothing_of_the_project_shadows_what_a_replay_imports(tmp_path: Path) -> None:
    """It is no import path of who can do without; who makes it one is shadowed (the control)."""
    repo = project(tmp_path)
    for name in sys.stdlib_module_names - {"agents", "data"}:
        for side in (repo.base, repo.head):
            (side / f"{name}.py").write_text("raise RuntimeError('shadowed')\n", "utf-8")
    assert judged(repo).decision is Decision.PASS
    shadowed = READS.replace(
        "import json\n", "import sys\nsys.path.insert(0, '')\nimport antigravity\n"
    )
    repo.write("agents/desk/agent.py", shadowed)
    assert "shadowed" in refused(repo)


@pytest.mark.parametrize("where", ["", "src"])
def test_a_module_of_the_project_is_found_where_an_agent_cannot_do_without(
    where: str, tmp_path: Path
) -> None:
    """A server that is started there, or told of it, serves such an agent."""
    repo = project(tmp_path, READS.replace("import json\n", "import json\n\nimport ours.deep\n"))
    lacks = "the module ours is not installed; install the agent's requirements where Backstop"
    assert lacks in refused(repo)  # the control
    for side in (repo.base, repo.head):
        (side / where / "ours").mkdir(parents=True)
        (side / where / "ours/deep.py").write_text("import json\n", "utf-8")
    assert judged(repo).decision is Decision.PASS
    (repo.head / where / "ours/deep.py").write_text("import json, os\n", "utf-8")
    found = judged(repo)
    assert found.decision is Decision.INCONCLUSIVE
    assert "ours/deep.py changed, and outside of the agent's folder" in " ".join(found.why)


def test_init_and_doctor_start_an_agent_where_a_replay_does(tmp_path: Path) -> None:
    repo = project(tmp_path)
    (agent,) = survey(Search(root=repo.head)).agents
    assert (agent.lack, [tool.name for tool in agent.tools]) == ("", ["pay"])
    (seen,) = examine(settled(Asked(config=repo.head / "backstop.yaml")))
    assert seen.lack == ""
    (repo.head / "data/ending.txt").unlink()
    (agent,) = survey(Search(root=repo.head)).agents
    (seen,) = examine(settled(Asked(config=repo.head / "backstop.yaml")))
    for lack in (agent.lack, seen.lack):
        assert lack.startswith("the file data/ending.txt is not there; commit it; a relative path")


def test_an_import_that_writes_says_which_file(tmp_path: Path) -> None:
    repo = project(tmp_path, READS.replace("ENDING =", 'open("log.txt", "w")\nENDING ='))
    (agent,) = survey(Search(root=repo.head)).agents
    assert agent.lack.startswith("its import writes log.txt, and a sandbox writes nowhere but")


@pytest.mark.docker
def test_processes_and_containers_read_and_write_the_same(
    dockerd: str, base_image: str, specimen_packages: None, tmp_path: Path
) -> None:
    """Also what is refused reads the same, and no digest knows where a checkout lies."""
    repo = project(
        tmp_path, READS.replace("    args[", WRITES.format(path='"paid.log"') + "    args[")
    )
    repo.write("data/ending.txt", " Ltd")
    for side in (repo.base, repo.head):
        shutil.copy(ROOT / "examples/vendor_onboarding/requirements.txt", side)
        with (side / "backstop.yaml").open("a", encoding="utf-8") as config:
            config.write(f"sandbox: {{build: {{base: {json.dumps(base_image)}}}}}\n")
    told = [
        in_a_process(
            *("gate", "--config", repo.head / "backstop.yaml", "--base", repo.base),
            *("--format", "json", "--runtime", runtime),
            DOCKER_HOST=dockerd,
        )
        for runtime in ("docker", "none")
    ]
    contained, process = [json.loads(one.out) for one in told]
    assert contained["agents"][0]["counts"]["duplicate"] == 1
    assert "writes paid.log" in json.dumps(contained["agents"][0]["coverage"])
    assert contained["digest"] == process["digest"]


def test_no_digest_knows_where_a_checkout_lies(tmp_path: Path) -> None:
    agent = READS.replace("    args[", WRITES.format(path="__file__ + '.log'") + "    args[")
    here = project(tmp_path / "a", agent)
    there = Repository(folder=shutil.copytree(here.folder, tmp_path / "b" / "c"))
    first, second = here.gate().verdict, there.gate().verdict
    assert "writes agents/desk/agent.py.log" in str(first)
    assert content_digest(first) == content_digest(second)
