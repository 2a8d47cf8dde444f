"""Finding agents and the tools that their code names, without running a line of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from backstop.adapters.discovery.offered import Read, read_tools
from backstop.adapters.discovery.sources import read, variables_of
from backstop.adapters.discovery.walking import Found, entrance_of, find, made_in
from tests.e2e.adopted import lay


@pytest.mark.parametrize(
    ("name", "text", "is_agent"),
    [
        ("agent.py", "root_agent = make()\n", True),
        ("agent.py", "root_agent: object = make()\n", True),
        ("agent.py", "root_agent: object\n", False),
        ("agent.py", "if x:\n    root_agent = a\nelse:\n    root_agent = b\n", True),
        ("agent.py", "try:\n    pass\nexcept E:\n    root_agent = a\n", True),
        ("agent.py", "a, root_agent = make()\n", True),
        ("agent.py", "from .parts import main as root_agent\n", True),
        ("agent.py", "from .parts import root_agent as other\n", False),
        ("agent.py", "from .parts import *\nroot_agent.name\n", True),
        ("agent.py", "from .parts import *\n", False),
        ("agent.py", "app = App(name='x')\n", True),
        ("agent.py", "app: App = make()\n", True),
        ("agent.py", "app = FastAPI()\n", False),
        ("agent.py", "app = make()[0]()\n", False),
        ("agent.py", "@node\ndef root_agent():\n    pass\n", True),
        ("agent.py", "def root_agent():\n    pass\n", False),
        ("agent.py", "def f():\n    root_agent = 1\n", False),
        ("agent.py", "root_agent = (\n", False),
        ("agent.py", "root_agent = 1\0\n", False),
        ("__init__.py", "from .x import root_agent\n", True),
        ("root_agent.yaml", "agent_class: LlmAgent\n", True),
        ("other.py", "root_agent = 1\n", False),
    ],
)
def test_an_agent_is_what_the_frameworks_loader_takes(
    name: str, text: str, is_agent: bool, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert (entrance_of(tmp_path) == name) is is_agent


def test_a_file_that_is_no_text_of_a_person_is_no_agent(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("root_agent = 1\n#" + "x" * (1 << 20))
    assert entrance_of(tmp_path) is None
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "agent.py").symlink_to(tmp_path / "agent.py")
    assert entrance_of(tmp_path / "a") is None
    (tmp_path / "b" / "agent.py").mkdir(parents=True)
    assert entrance_of(tmp_path / "b") is None


def test_folders_inside_an_agent_are_a_part_of_it_and_links_lead_nowhere(tmp_path: Path) -> None:
    agent = "root_agent = 1\n"
    lay(tmp_path, {"a/agent.py": agent, "a/sub/agent.py": agent, "z/b/agent.py": agent})
    (tmp_path / "c").symlink_to(tmp_path / "a")
    (tmp_path / "z" / "up").symlink_to(tmp_path)
    found = find(tmp_path)
    assert [place.folder for place in found.places] == ["a", "z/b"]
    assert found.within == ("a/sub",)
    assert find(tmp_path / "a").places[0].folder == "."
    assert find(tmp_path / "nowhere") == Found(places=())


def test_where_agents_are_made_that_the_loader_does_not_find_is_told(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "a/desk.py": "from google.adk.agents import LlmAgent as M\n\nmine = M(name='x')\n",
            "b/graph.py": "from google.adk import Workflow\ndef make():\n    return Workflow()\n",
            "c/other.py": "from elsewhere import LlmAgent\nmine = LlmAgent(name='x')\n",
            "d/kind.py": "from google.adk.agents import BaseAgent\nclass Own(BaseAgent): ...\n",
            "e/odd.py": "from google.adk.agents import LlmAgent\nmine = LlmAgent(\n",
            "tests/test_it.py": "from google.adk import Agent\nmine = Agent(name='x')\n",
        },
    )
    assert find(tmp_path).places == ()
    assert made_in(tmp_path) == ("a/desk.py:3", "b/graph.py:3")
    assert made_in(tmp_path, with_tests=True)[-1] == "tests/test_it.py:2"
    assert made_in(tmp_path / "c") == ()


def test_an_agent_knows_its_project(tmp_path: Path) -> None:
    agent = "root_agent = 1\n"
    lay(
        tmp_path,
        {
            "pyproject.toml": "[project]\nname = 3\n[tool.poetry]\nname = 'whole'\n",
            "a/agent.py": agent,
            "b/pyproject.toml": "not = [toml",
            "b/agent.py": agent,
            "c/pyproject.toml": "[project]\nname = 'the c'\n",
            "c/agent.py": agent,
        },
    )
    places = find(tmp_path).places
    assert [(one.project, one.project_name) for one in places] == [
        (".", "whole"),
        ("b", ""),
        ("c", ""),
    ]


def offered(folder: Path, source: str, **others: str) -> Read:
    lay(folder, {"agent.py": source, **{f"{name}.py": text for name, text in others.items()}})
    return read_tools(folder, read(folder))


def test_tools_are_found_through_names_lists_and_wrappers(tmp_path: Path) -> None:
    source = """\
        from google.adk.tools import google_search, load_artifacts_tool
        from .more import MORE, third as tres
        from . import more

        def one(a: int, b: str = "x", *, tool_context: ToolContext, ctx: Context): ...
        def two(names: list[str], at: Optional[float], who: dict | None, n: Decimal, odd): ...

        wrapped = FunctionTool(two)
        NONE = None
        root_agent = LlmAgent(
            tools=[one, wrapped, *MORE, LongRunningFunctionTool(func=tres), google_search,
                   load_artifacts_tool, more.fourth, AgentTool(agent=x), Retrieval(name="shelf"),
                   McpToolset(url), made()[0]] + list_of() + [FunctionTool()]
        )
        other = LlmAgent(tools=NONE, sub_agents=[])
        async def act(ctx):
            await ctx.run_node(FunctionTool(fifth), node_input={})
            await ctx.run_node(fifth)
        def fifth(): ...
        left, right = map(FunctionTool, (sixth, one))
        def sixth(): ...
        third_agent = LlmAgent(tools=[left, *map(FunctionTool, [seventh])])
        def seventh(): ...
        """
    more = "def third(): ...\ndef fourth(): ...\nMORE = [third]\n"
    found = offered(tmp_path, source, more=more)
    assert {tool.name for tool in found.tools} == {
        *("one", "two", "third", "fourth", "fifth", "sixth", "seventh"),
        *("google_search", "load_artifacts", "shelf"),
    }
    assert [one.partition(" at ")[0] for one in found.unlisted] == [
        "McpToolset",
        "made()[0]",
        "list_of",
    ]
    by_name = {tool.name: tool for tool in found.tools}
    assert by_name["one"].parameters == {
        "a": {"type": "integer"},
        "b": {"type": "string", "default": None},
    }
    assert by_name["two"].parameters == {
        "names": {"type": "array", "items": {"type": "string"}},
        "at": {"type": "number"},
        "who": {"type": "object"},
        "n": {"type": "number"},
        "odd": {},
    }
    assert by_name["google_search"].origin == "google.adk.tools.google_search"
    assert by_name["shelf"].parameters is None


def test_what_an_agent_imports_from_elsewhere_in_its_repository_is_read_too(
    tmp_path: Path,
) -> None:
    lay(
        tmp_path,
        {
            "svc/pyproject.toml": "",
            "svc/desk/agent.py": """\
                import json, os.path
                from shared.tools import get_order, missing
                from ..beside import get_bill
                from lib import get_stock
                root_agent = LlmAgent(tools=[get_order, get_bill, get_stock])
                """,
            "svc/shared/__init__.py": "",
            "svc/shared/tools.py": "from shared import deep\ndef get_order(a): deep.ask(a)\n",
            "svc/shared/deep.py": "import requests\ndef ask(a): return requests.get(a)\n",
            "svc/shared/other.py": "root_agent = LlmAgent(tools=[never])\n",
            "svc/beside.py": "def get_bill(*, a=1): return a\n",
            "src/lib/__init__.py": "def get_stock(): return {}\n",
            "svc/desk/.venv/lib/site-packages/requests.py": "def get(a): ...\n",
        },
    )
    folder = tmp_path / "svc/desk"
    roots = [tmp_path / "svc", tmp_path, tmp_path / "src"]
    sources = read(folder, roots=roots)
    assert [one.path for one in sources.modules] == [
        "agent.py",
        "../shared/tools.py",
        "../beside.py",
        "../../src/lib/__init__.py",
        "../shared/deep.py",
    ]
    found = {one.name: one for one in read_tools(folder, sources).tools}
    assert {name: one.function is not None for name, one in found.items()} == {
        "get_order": True,
        "get_bill": True,
        "get_stock": True,
    }
    assert found["get_bill"].parameters == {"a": {"default": None}}
    assert sources.at("../shared/tools.py:get_order") is not None
    [alone] = read(folder).modules
    assert alone.path == "agent.py"


def test_nothing_outside_of_the_repository_is_read(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "out.py": "def get_x(): ...\n",
            "repo/desk/agent.py": "from ...out import get_x\nfrom linked import get_x\n",
            "repo/venv/lib/python3.11/site-packages/linked.py": "",
        },
    )
    (tmp_path / "repo/linked.py").symlink_to(tmp_path / "out.py")
    found = read(tmp_path / "repo/desk", roots=[tmp_path / "repo"])
    assert [one.path for one in found.modules] == ["agent.py"]


def test_names_that_go_in_circles_come_to_an_end(tmp_path: Path) -> None:
    found = offered(tmp_path, "A = B\nB = A\nC = [*A]\nroot_agent = LlmAgent(tools=[A, *C])\n")
    assert found.tools == ()


def test_tools_of_yaml_are_found_and_what_is_no_agent_is_not_read(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {
            "root_agent.yaml": """\
                agent_class: LlmAgent
                tools: [{name: google_search}, {name: desk.tools.close}, {name: 3}, odd]
                """,
            "list.yaml": "agent_class: X\ntools: 3\n",
            "broken.yaml": "agent_class: [\n",
            "other.yaml": "tools: [{name: x}]\n",
            "tools.py": "def close(): ...\n",
        },
    )
    found = read_tools(tmp_path, read(tmp_path))
    assert {tool.name: tool.origin for tool in found.tools} == {
        "google_search": "google.adk.tools.google_search",
        "close": "desk.tools.close",
    }


def test_variables_without_a_default_are_found(tmp_path: Path) -> None:
    source = """\
        a = os.environ["A"] + os.getenv("B") + environ.get("C") + getenv("D")
        b = os.environ.get("E", "x"), os.getenv("F", ""), table["G"], table.get("H"), os.getenv(n)
        os.environ["I"] = os.environ["A"]
        os.getenv("not a name")
        """
    lay(tmp_path, {"agent.py": source})
    assert set(variables_of(read(tmp_path))) == {"A", "B", "C", "D"}
