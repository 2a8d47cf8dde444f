"""`backstop init` on repositories that nobody here wrote: what it finds, says and writes."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backstop.adapters.bounds import Limits
from backstop.config import load
from backstop.wiring.initializing import plan
from backstop.wiring.surveying import Search
from tests.e2e.adopted import ROOT, desk, lay
from tests.e2e.command import Ran, backstop, in_a_process, refused

CONFIG = "backstop.yaml"
WORKFLOW = ".github/workflows/backstop.yml"


def init(root: Path, *options: str | Path) -> Ran:
    return backstop("init", "--root", root, *options)


def done(root: Path, *options: str | Path) -> str:
    ran = init(root, *options)
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 80 + len(str(root))
    return ran.out


def test_a_monorepo_of_three_agents(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            **desk("services/billing/app"),
            "services/billing/pyproject.toml": '[project]\nname = "billing-desk"\n',
            **desk("services/support/app"),
            "services/support/pyproject.toml": '[tool.poetry]\nname = "support-desk"\n',
            **desk("agents/returns"),
            **desk("agents/returns/tests/helper"),
            **desk("tests/fixture"),
            **desk(".hidden/agent"),
            **desk("venv/lib/agent"),
            **desk("env2/agent"),
            "env2/pyvenv.cfg": "",
            **desk("node_modules/agent"),
            "web/agent.py": "app = FastAPI()\n",
        },
    )
    out = " ".join(done(tmp_path).split())
    config = load(tmp_path / CONFIG)
    assert list(config.agents) == ["returns", "billing-desk", "support-desk"]
    assert "2 agents are called app: here, services/billing/app is billing-desk" in out
    assert "where one runs, say which in BACKSTOP_AGENT" in out
    for agent in config.agents.values():
        assert not agent.declarations["get_order"].effect
        assert agent.declarations["cancel_order"].identity == ("order_id",)
        assert agent.path is not None
        assert (agent.path / "agent.py").is_file()
    assert (tmp_path / WORKFLOW).read_text() == Path("examples/workflow.yml").read_text()


def test_what_is_written_is_written_once_and_never_over(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk"))
    done(tmp_path)
    first = (tmp_path / CONFIG).read_bytes()
    assert "nothing to write" in done(tmp_path)
    assert (tmp_path / CONFIG).read_bytes() == first
    (tmp_path / CONFIG).write_bytes(first + b"# mine\n")
    line = refused_to_write(tmp_path)
    assert "backstop.yaml (0 lines more, 1 lines less)" in line
    assert "--diff" in line
    assert (tmp_path / CONFIG).read_bytes() == first + b"# mine\n"
    assert "wrote backstop.yaml" in done(tmp_path, "--force")
    assert (tmp_path / CONFIG).read_bytes() == first
    assert not list(tmp_path.rglob("*.part"))


def refused_to_write(root: Path) -> str:
    ran = init(root)
    assert ran.code == 2
    [line] = ran.err.splitlines()
    assert line.startswith("error[init-exists]: ")
    return line


def test_a_diff_is_shown_and_nothing_written(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk"))
    out = done(tmp_path, "--diff")
    assert "--- /dev/null\n+++ b/backstop.yaml\n" in out
    assert "+      cancel_order: {identity: [order_id]}" in out
    assert "+++ b/.github/workflows/backstop.yml" in out
    assert [file.name for file in tmp_path.iterdir()] == ["desk"]
    done(tmp_path)
    assert init(tmp_path, "--diff").out == ""


def test_a_nested_package_with_a_project_around_it_and_imports_from_the_project(
    tmp_path: Path,
) -> None:
    lay(
        tmp_path,
        {
            "pyproject.toml": '[project]\nname = "shop"\n',
            **desk("src/shop/agents/desk"),
            "src/shop/__init__.py": "",
            "src/shop/agents/__init__.py": "",
        },
    )
    done(tmp_path)
    agent = load(tmp_path / CONFIG).agent(None)
    assert agent.name == "desk"
    assert agent.path == tmp_path / "src/shop/agents/desk"


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("import os\nKEY = os.environ['SHOP_API_KEY']\n", "variable SHOP_API_KEY is not set"),
        ("import no_such_library\n", "the module no_such_library is not installed"),
        ("from google.cloud import no_such_part\n", "google.cloud.no_such_part is not installed"),
        ("import sys\nsys.exit('set SHOP_TOKEN first')\n", "variable SHOP_TOKEN is not set"),
        ("import os\nos._exit(3)\n", "left with status 3 while it was imported"),
        ("raise RuntimeError('no\\nluck \\x1b[31m')\n", "its import raised RuntimeError: no luck"),
        (
            "import socket\nsocket.create_connection(('10.0.0.1', 80))\n",
            "wants what no sandbox has, like a network",
        ),
    ],
    ids=["variable", "package", "part", "sys-exit", "exit", "raise", "network"],
)
def test_an_agent_that_does_not_load_says_what_is_missing_and_is_read(
    before: str, said: str, tmp_path: Path
) -> None:
    lay(tmp_path, desk("desk", before=before))
    out = " ".join(done(tmp_path).split())
    assert "! not loaded: " in out
    assert said in out
    assert "\x1b" not in out
    assert "seen in code only" in out
    agent = load(tmp_path / CONFIG).agent(None)
    assert {name: one.effect for name, one in agent.declarations.items()} == {
        "get_order": False,
        "cancel_order": True,
    }
    assert "# Not loaded: " in (tmp_path / CONFIG).read_text()


def test_a_variable_that_is_given_is_there_on_import_and_written_down(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk", before="import os\nassert os.environ['SHOP_KEY'] == 'none = 1'\n"))
    out = done(tmp_path, "--env", "SHOP_KEY=none = 1")
    assert "not loaded" not in out
    assert dict(load(tmp_path / CONFIG).sandbox.env) == {"SHOP_KEY": "none = 1"}


def test_an_interpreter_is_named_from_the_configurations_folder(tmp_path: Path) -> None:
    root = lay(tmp_path / "repo", desk("desk"))
    link = root / ".venv" / "bin" / "python"
    link.parent.mkdir(parents=True)
    link.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    link.chmod(0o755)
    out = done(root, "--python", os.path.relpath(link, Path.cwd()))
    assert "not loaded" not in out
    assert "  python: .venv/bin/python\n" in (root / CONFIG).read_text()
    assert load(root / CONFIG).sandbox.python == str(link)


def test_an_interpreter_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk"))
    line = refused("sandbox", "init", "--root", tmp_path, "--python", tmp_path / "none")
    assert "cannot start" in line


def test_an_import_that_hangs_is_ended(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk", before="import threading\nthreading.Event().wait()\n"))
    limits = Limits(silence_s=12.0, wall_s=30.0)
    [agent] = plan(Search(root=tmp_path, limits=limits)).surveyed.agents
    assert "does not come to an end" in agent.lack
    assert [tool.name for tool in agent.tools] == ["get_order", "cancel_order"]


def test_an_import_that_prints_and_forges_is_only_noise(tmp_path: Path) -> None:
    before = """\
        import os
        print('{"t":"ready","id":1,"protocol":1}' * 1000)
        os.write(1, b'{"t":"fault","slug":"forged","detail":"x"}\\n')
        """
    lay(tmp_path, desk("desk", before=before))
    out = done(tmp_path)
    assert "forged" not in out
    assert "not loaded" not in out


def test_two_agents_of_one_name_are_told_apart(tmp_path: Path) -> None:
    app = 'from google.adk.apps import App\napp = App(name="front", root_agent=root_agent)\n'
    lay(tmp_path, {**desk("a/desk", root=ROOT + app), **desk("b/desk", root=ROOT + app)})
    out = " ".join(done(tmp_path).split())
    assert "2 agents are called front: here, a/desk is a-front, b/desk is b-front" in out
    assert list(load(tmp_path / CONFIG).agents) == ["a-front", "b-front"]


def test_one_agent_is_chosen_by_name_or_folder(tmp_path: Path) -> None:
    lay(tmp_path, {**desk("a/one"), **desk("b/two")})
    out = done(tmp_path, "--agent", "./b/two/", "--diff")
    assert "path: b/two" in out
    assert "path: a/one" not in out
    line = refused("usage", "init", "--root", tmp_path, "--agent", "three")
    assert "there is no agent 'three'; there are: one (a/one), two (b/two)" in line


def test_a_root_without_agents_is_one_line(tmp_path: Path) -> None:
    lay(tmp_path, {"agent.py": "import os\n", "broken/agent.py": "root_agent = (\n"})
    assert "no agent was found" in refused("agent-missing", "init", "--root", tmp_path)
    assert "is no folder" in refused("usage", "init", "--root", tmp_path / "nowhere")


def test_an_agent_in_yaml(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "helper/root_agent.yaml": """\
                agent_class: LlmAgent
                name: helper
                model: gemini-2.5-flash
                instruction: Help.
                tools:
                  - name: google_search
                  - name: helper.tools.close_ticket
                """,
            "helper/__init__.py": "",
            "helper/tools.py": 'def close_ticket(ticket_id: str) -> str:\n    return "ok"\n',
        },
    )
    out = done(tmp_path)
    told = load(tmp_path / CONFIG).agent(None).declarations
    assert told["close_ticket"].effect, out
    assert not told["google_search"].effect


HOSTILE = (
    'a"b',
    "a: {effect: false}",
    "# x",
    "true",
    "a\nb: 1",
    "\u202eevil",
    "naïve-tool",
    "\U0001f600",
    "- x",
    "*a",
    "1.5",
)


def test_hostile_names_are_quoted_and_read_back_as_they_are(tmp_path: Path) -> None:
    source = f"""\
        from google.adk.agents import LlmAgent
        from google.adk.tools import FunctionTool

        def act(order_id: str) -> str:
            "Acts.\\n# get_x: {{effect: false}}"
            return order_id

        def named(name):
            tool = FunctionTool(act)
            tool.name = name
            return tool

        root_agent = LlmAgent(
            name="odd", model="gemini-2.5-flash", tools=[named(n) for n in {json.dumps(HOSTILE)}]
        )
        """
    lay(tmp_path, {"o'dd: [x]/agent.py": source, "o'dd: [x]/__init__.py": ""})
    out = done(tmp_path)
    agent = load(tmp_path / CONFIG).agent(None)
    assert set(agent.declarations) == set(HOSTILE)
    assert all(one.effect for one in agent.declarations.values())
    assert "\u202e" not in out + (tmp_path / CONFIG).read_text()


def test_the_same_repository_makes_the_same_bytes(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        root = lay(tmp_path / name / "repo", {**desk("desk"), **desk("other/desk")})
        done(root)
        made.append((root / CONFIG).read_bytes())
    assert made[0] == made[1]


def test_a_link_that_leads_out_of_the_repository_is_not_followed(tmp_path: Path) -> None:
    root = lay(tmp_path / "repo", desk("desk"))
    (tmp_path / "elsewhere").mkdir()
    (root / ".github").symlink_to(tmp_path / "elsewhere")
    ran = init(root)
    assert ran.code == 2
    assert "error[file-unwritable]" in ran.err
    assert not list((tmp_path / "elsewhere").iterdir())
    assert not (root / CONFIG).exists()


def test_a_second_init_knows_the_variables_of_the_first(tmp_path: Path) -> None:
    needs = 'import os\nKEY = os.environ["DESK_KEY"]\n'
    root = lay(tmp_path / "repo", desk("desk", before=needs))
    assert init(root, "--env", "DESK_KEY=none").code == 0
    again = init(root)
    assert (again.code, "nothing to write" in again.out) == (0, True)
    assert 'DESK_KEY: "other"' in init(root, "--env", "DESK_KEY=other", "--diff").out


def test_nothing_is_asked_where_nobody_can_answer(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk"))
    ran = in_a_process("init", "--root", tmp_path, COLUMNS="80")
    assert (ran.code, ran.err) == (0, "")
    assert "?" not in ran.out


def test_the_specimens_first_version_is_declared_as_it_is_or_more_carefully(tmp_path: Path) -> None:
    ours = load(Path("backstop.yaml")).agent("vendor-onboarding").declarations
    [agent] = plan(Search(root=Path("examples/vendor_onboarding/v1"))).config.agents.values()
    assert set(agent.declarations) == set(ours)
    for name, one in agent.declarations.items():
        assert one.effect or not ours[name].effect
        assert one.identity is None or one.identity == ours[name].identity


def on_a_terminal(root: Path, answer: bytes, *options: str) -> bytes:
    """What `backstop init` shows on a terminal where somebody types `answer`."""
    ours, theirs = os.openpty()
    os.write(ours, answer)
    command = [sys.executable, "-m", "backstop", "init", "--root", str(root), *options]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # so Linux says that nobody is there any more
            while chunk := os.read(ours, 4096):
                shown += chunk
        process.wait(60)
    os.close(ours)
    return shown


def test_a_person_is_asked_once_and_a_no_is_a_no(tmp_path: Path) -> None:
    lay(tmp_path, desk("desk"))
    shown = on_a_terminal(tmp_path, b"n\n")
    assert shown.count(b"?") == 1
    assert b"nothing was written" in shown
    assert not (tmp_path / CONFIG).exists()
    assert b"?" not in on_a_terminal(tmp_path, b"n\n", "--yes")
    assert (tmp_path / CONFIG).exists()
