"""What an agent lacks that does not load: which variable, which package, and what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backstop.replay.missing import Failure, Kind, missing

SETTINGS = (
    "ValidationError: 1 validation error for Settings {field} Field required [type=missing, "
    "input_value={given}, input_type=dict] For further information visit a page"
)


def kind_and_name(detail: str, line: str = "", slug: str = "agent-import") -> tuple[Kind, str]:
    found = missing(Failure(slug=slug, detail=detail, where="agent.py:3", line=line))
    assert "\n" not in str(found)
    assert found.name in str(found)
    return found.kind, found.name


@pytest.mark.parametrize(
    ("detail", "line", "name"),
    [
        ("KeyError: 'CRM_URL'", 'URL = os.environ["CRM_URL"]', "CRM_URL"),
        ("KeyError: 'crm'", "url = environ['crm']", "crm"),
        ("KeyError: 'GOOGLE_API_KEY'", "return settings[name]", "GOOGLE_API_KEY"),
        (
            "TypeError: str expected, not NoneType",
            "os.environ['A_B'] = os.getenv('A_B')",
            "A_B",
        ),
        (
            "TypeError: str expected, not NoneType",
            'os.environ.setdefault("GOOGLE_CLOUD_PROJECT", project_id)',
            "GOOGLE_CLOUD_PROJECT",
        ),
        ("OSError: Project was not passed and could not be determined", "", "GOOGLE_CLOUD_PROJECT"),
        ("TypeError: int() argument must be a string", 'PORT = int(os.getenv("PORT"))', "PORT"),
        ("ValueError: Missing key inputs argument! set GOOGLE_API_KEY", "", "GOOGLE_API_KEY"),
        ("_AgentLoadError: No API key was provided. Please pass one.", "", "GOOGLE_API_KEY"),
        ("ValueError: The API needs STRIPE_SECRET, which is not set", "", "STRIPE_SECRET"),
        (SETTINGS.format(field="crm_token", given="{}"), "configs = Config()", "CRM_TOKEN"),
        ("the agent left by sys.exit('set TOKEN_OF_MINE')", "", "TOKEN_OF_MINE"),
    ],
)
def test_the_variable_that_is_not_set_is_named(detail: str, line: str, name: str) -> None:
    assert kind_and_name(detail, line) == (Kind.VARIABLE, name)


@pytest.mark.parametrize(
    ("detail", "line"),
    [
        ("KeyError: 'colour'", "COLOUR = table['colour']"),
        ("ValueError: no such thing", "raise ValueError('no such thing')"),
        ("ValueError: the HTTP status must be set", ""),
        ("the agent left by sys.exit(7)", ""),
    ],
)
def test_what_is_no_variable_is_told_as_it_was_said(detail: str, line: str) -> None:
    kind, name = kind_and_name(detail, line)
    assert (kind, name) == (Kind.CODE, "")
    assert detail in str(missing(Failure(slug="agent-import", detail=detail, line=line)))


def test_a_class_of_settings_is_known_though_some_of_it_is_set_and_all_it_lacks_is_named() -> None:
    some = SETTINGS.format(field="mongo_uri", given="{'key': 'x'}")
    assert kind_and_name(some) == (Kind.VARIABLE, "MONGO_URI")
    told = missing(Failure(slug="agent-import", detail=f"{some} key Field required [type=missing,"))
    assert str(told) == (
        "the environment variables MONGO_URI, KEY are not set; give each a harmless value: "
        "--env NAME=VALUE, or sandbox.env in backstop.yaml"
    )
    assert told.at_a_gate(python="").endswith(
        "give each a harmless value by sandbox.env in backstop.yaml"
    )


def test_a_model_that_is_no_class_of_settings_is_told_without_what_it_says_of_itself() -> None:
    detail = SETTINGS.format(field="name", given="{'id': 1}").replace("Settings", "Vendor")
    detail = detail.replace("a page", "https://errors.pydantic.dev/2.14/v/missing")
    told = missing(Failure(slug="agent-import", detail=detail))
    assert (told.kind, told.what) == (
        Kind.CODE,
        "its import raised ValidationError: 1 validation error for Vendor name Field required",
    )


@pytest.mark.parametrize(
    ("detail", "name"),
    [
        ("ModuleNotFoundError: No module named 'stripe'", "stripe"),
        (
            "ImportError: Fail to load 'a'. No module named 'google.cloud.tasks'",
            "google.cloud.tasks",
        ),
        ("ImportError: cannot import name 'Agent' from 'google.adk' (unknown)", "google.adk"),
        ("ImportError: cannot import name 'b' from 'a' (unknown location)", "a.b"),
        ("ImportError: run `pip install google-adk[extensions]` first", "google-adk[extensions]"),
    ],
)
def test_the_package_that_is_not_installed_is_named(detail: str, name: str) -> None:
    assert kind_and_name(detail) == (Kind.PACKAGE, name)


@pytest.mark.parametrize(
    ("slug", "detail", "kind"),
    [
        ("agent-import", "DefaultCredentialsError: none", Kind.CREDENTIALS),
        ("agent-import", "ConnectionError: refused", Kind.NETWORK),
        ("agent-import", "Barred: socket", Kind.NETWORK),
        ("agent-hangs", "/a: the candidate said nothing", Kind.TIME),
        ("agent-exited", "the candidate's process left with status 9", Kind.CODE),
        ("agent-no-root", "No root_agent found", Kind.CODE),
        ("adk-missing", "google-adk cannot be imported", Kind.FRAMEWORK),
    ],
)
def test_what_no_sandbox_gives_is_told_apart(slug: str, detail: str, kind: Kind) -> None:
    found = missing(Failure(slug=slug, detail=detail))
    assert (found.kind, found.remedy != "") == (kind, True)


def test_what_the_loader_puts_before_it_is_not_told() -> None:
    told = missing(
        Failure(slug="agent-import", detail="RuntimeError: Fail to load 'a.agent' module. no luck")
    )
    assert told.what == "its import raised RuntimeError: no luck"


def test_a_name_that_the_agents_own_module_lacks_is_no_matter_of_versions() -> None:
    said = "ImportError: cannot import name 'look' from 'desk.tools' ({})"
    own = missing(Failure(slug="agent-import", detail=said.format("/repo/desk/tools/__init__.py")))
    assert (own.kind, own.what) == (Kind.CODE, "its own module desk.tools has no look")
    for place in ("/venv/lib/python3.11/site-packages/desk/tools.py", "/usr/lib/python3.11/x.py"):
        found = missing(Failure(slug="agent-import", detail=said.format(place)))
        assert found.kind is Kind.PACKAGE


def test_a_file_that_is_not_there_is_named() -> None:
    detail = "FileNotFoundError: [Errno 2] No such file or directory: 'prompts/a.txt'"
    assert kind_and_name(detail) == (Kind.FILE, "prompts/a.txt")


def test_a_file_that_an_import_writes_is_named_as_one_that_is_written() -> None:
    detail = "Barred: [Errno 1] open is barred in a replay: writes out/log.txt"
    found = missing(Failure(slug="agent-import", detail=detail))
    assert (found.kind, found.name) == (Kind.FILE, "out/log.txt")
    assert "writes out/log.txt, and a sandbox writes nowhere but below TMPDIR" in str(found)


def test_what_an_import_tried_is_why_where_nothing_else_is() -> None:
    tried = ("socket.connect (('10.0.0.1', 80))",)
    for slug in ("agent-hangs", "agent-import"):
        found = missing(Failure(slug=slug, detail="ValueError: odd", attempts=tried))
        assert found.kind is Kind.NETWORK
        assert tried[0] in found.what
        assert "and ended with ValueError: odd" in found.what
    named = Failure(slug="agent-import", detail="KeyError: 'A_KEY'", attempts=tried)
    assert missing(named).kind is Kind.VARIABLE


def test_at_a_gate_the_options_are_those_of_a_gate() -> None:
    def told(detail: str) -> str:
        found = missing(Failure(slug="agent-import", detail=detail))
        return found.at_a_gate(python="--base-python")

    assert told("KeyError: 'SHOP_URL'") == (
        "the environment variable SHOP_URL is not set; give it a harmless value by sandbox.env in "
        "backstop.yaml"
    )
    assert told("No module named 'x'").endswith("where Backstop runs, or say --base-python")
    assert told("RuntimeError: no luck").endswith("import it by hand to see why")


def test_code_of_another_python_is_told_as_that_where_its_project_names_one() -> None:
    odd = Failure(slug="agent-import", detail="SyntaxError: expected '(' (config.py, line 422)")
    found = missing(replace(odd, python=">=3.13"))
    assert str(found) == (
        "this Python cannot read it (SyntaxError: expected '(' (config.py, line 422)); its "
        "project asks for Python >=3.13: say --python"
    )
    assert missing(odd).kind is Kind.CODE
    assert missing(replace(odd, detail="no luck", python=">=3.13")).kind is Kind.CODE
