"""Which packages a candidate is given, and what a pull request cannot slip in among them."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

import pytest

from backstop.adapters.docker.building.locks import find_packages
from backstop.adapters.docker.building.requirements import Packages, release
from backstop.errors import SandboxError

ROOT = Path(__file__).parents[5]
AGENT = PurePosixPath("agents/vendor")
SHA = "sha256:" + "0a" * 32
OTHER = "sha256:" + "1b" * 32


def found(files: dict[str, str], *, named: str | None = None, index: str | None = None) -> Packages:
    def read(name: str) -> bytes | None:
        text = files.get(name)
        return None if text is None else text.encode()

    return find_packages(AGENT, read, named=named, index=index)


def refused(files: dict[str, str], **options: str) -> tuple[str, str]:
    with pytest.raises(SandboxError) as caught:
        found(files, **options)
    assert "\n" not in str(caught.value)
    return caught.value.slug, str(caught.value)


def of(text: str, **options: str) -> list[str]:
    return found({"requirements.txt": text}, **options).wanted


def test_the_nearest_file_counts_and_in_one_folder_the_most_exact() -> None:
    near = {"agents/vendor/requirements.txt": "a", "agents/requirements.txt": "b"}
    assert found(near).file == "agents/vendor/requirements.txt"
    assert found({"agents/requirements.txt": "b", "requirements.txt": "c"}).wanted == ["b"]
    project = '[project]\nname = "x"\ndependencies = ["a>=1"]\n'
    both = {"pyproject.toml": project, "requirements.txt": "b"}
    assert found(both).file == "requirements.txt"
    assert found({"pyproject.toml": project}).wanted == ["a>=1"]


def test_a_project_file_that_names_no_packages_is_passed_by() -> None:
    files = {"agents/pyproject.toml": "[tool.ruff]\n", "requirements.txt": "a"}
    assert found(files).file == "requirements.txt"


def test_a_file_that_is_named_counts_alone() -> None:
    files = {"requirements.txt": "a", "locks/agent.txt": "b"}
    assert found(files, named="locks/agent.txt").wanted == ["b"]
    slug, message = refused(files, named="locks/none.txt")
    assert slug == "requirements-missing"
    assert "locks/none.txt" in message


def test_an_agent_for_which_nothing_is_named_is_told_so() -> None:
    slug, message = refused({"other/requirements.txt": "a"})
    assert slug == "requirements-missing"
    assert "google-adk" in message


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("google-adk==2.13.0", "google-adk==2.13.0"),
        ("  a  >=  1 , < 2 ", "a >= 1 , < 2"),
        ("a[b, c]~=1.0", "a[b, c]~=1.0"),
        ("a (>=1)", "a (>=1)"),
        ("a==1.*; python_version<'3.13'", "a==1.* ; python_version<'3.13'"),
        ("a===1!2.0+local", "a===1!2.0+local"),
        ("a==1  # why", "a==1"),
        (f"a==1 \\\n    --hash={SHA} \\\n    --hash={OTHER}", f"a==1 --hash={SHA} --hash={OTHER}"),
    ],
)
def test_releases_are_let_through(line: str, expected: str) -> None:
    assert of(line) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "a @ https://evil.example/a.whl",
        "a@git+https://evil.example/a",
        "https://evil.example/a-1.tar.gz",
        "git+ssh://git@evil.example/a",
        "./local",
        "../local",
        "/etc",
        "file:///etc/a.whl",
        "a.whl/b",
        "-e .",
        "--editable=.",
        "--index-url https://evil.example/simple",
        "-i https://evil.example/simple",
        "--extra-index-url=https://evil.example/simple",
        "--find-links https://evil.example",
        "-f /host",
        "--trusted-host evil.example",
        "--no-binary :all:",
        "--no-binary=a",
        "--no-index",
        "--use-feature=fast-deps",
        "--config-settings x=y",
        "a==1 --global-option=build",
        "a==1 --config-settings=x",
        "a==1 --hash=md5:0123",
        "a==1 --no-binary=a",
        "a==1 ; x == '1' --no-binary=a",
        "a==1 ; x == '1'\t--no-binary=a",
        "a==${SECRET}",
        "a==1 b==2",
        "-",
        'a==1;x=="',
        "é==1",
        "-r https://evil.example/r.txt",
        "-r ../../../../etc/passwd",
        "-r /etc/passwd",
        "-c ..",
    ],
)
def test_whatever_is_no_release_is_refused_with_its_line(line: str) -> None:
    slug, message = refused({"requirements.txt": f"b\n{line}\n"})
    assert slug == "requirements-refused"
    assert message.startswith("requirements.txt:2: ")


def test_what_the_recipe_does_anyway_may_be_asked_for() -> None:
    text = "--only-binary :all:\n--prefer-binary\n--require-hashes\n--pre\na\n"
    assert found({"requirements.txt": text}).wanted == ["a"]
    assert found({"requirements.txt": text}).preview
    assert of("-i https://pypi.org/simple/\na") == ["a"]
    own = "https://index.example/simple"
    assert of(f"--index-url={own}\na", index=own) == ["a"]
    assert refused({"requirements.txt": "-i https://pypi.org/simple"}, index=own)[0] == (
        "requirements-refused"
    )


def test_files_name_others_of_the_checkout_and_bounds_are_kept_apart() -> None:
    files = {
        "agents/requirements.txt": "-r ../shared/base.txt\n-c bounds.txt\na\n",
        "shared/base.txt": "b\n",
        "agents/bounds.txt": "c<2\n",
    }
    assert found(files).wanted == ["b", "a"]
    assert found(files).bounds == ["c<2"]
    del files["shared/base.txt"]
    assert refused(files)[0] == "requirements-missing"


def test_files_that_name_each_other_come_to_an_end() -> None:
    slug, message = refused({"requirements.txt": "-r requirements.txt"})
    assert slug == "requirements-refused"
    assert "without an end" in message
    many = "\n".join(["-r requirements.txt"] * 50)
    assert refused({"requirements.txt": "a\n" * 2000 + many})[0] == "requirements-refused"


def test_it_is_locked_where_everything_has_a_hash() -> None:
    assert found({"requirements.txt": f"a==1 --hash={SHA}"}).locked
    assert not found({"requirements.txt": f"a==1 --hash={SHA}\nb==1"}).locked
    assert not found({"requirements.txt": ""}).locked


def test_a_line_made_to_take_for_ever_is_refused_at_once() -> None:
    for hostile in ("a;" + "a" * 7000 + "%", "a;" + "=" * 7000 + "%", "a" * 7000 + "%", "a" * 9000):
        with pytest.raises(SandboxError):
            release(hostile, at="x")


def test_a_pylock_gives_versions_hashes_and_markers() -> None:
    text = f"""
        lock-version = "1.0"
        [[packages]]
        name = "a"
        version = "1.2"
        marker = "python_version < '3.13'"
        sdist = {{url = "https://x/a.tar.gz", hashes = {{sha256 = "{OTHER[7:]}"}}}}
        [[packages.wheels]]
        url = "https://elsewhere.example/a.whl"
        hashes = {{sha256 = "{SHA[7:]}"}}
    """
    packages = found({"pylock.toml": text})
    assert packages.wanted == [f"a==1.2 ; python_version < '3.13' --hash={SHA} --hash={OTHER}"]
    assert packages.locked


@pytest.mark.parametrize(
    "entry",
    ['directory = {path = "."}', 'vcs = {type = "git"}', 'archive = {url = "https://x"}', ""],
)
def test_a_pylock_with_anything_but_releases_is_refused(entry: str) -> None:
    version = "" if not entry else 'version = "1"'
    text = f'[[packages]]\nname = "a"\n{version}\n{entry}\n'
    assert refused({"pylock.toml": text})[0] == "requirements-refused"


UV = """
version = 1
[[package]]
name = "project"
version = "0.1"
source = {{ editable = "." }}
dependencies = [
  {{ name = "a" }},
  {{ name = "b", extra = ["fast"], marker = "sys_platform == 'linux'" }},
  {{ name = "sibling" }},
]
[[package]]
name = "sibling"
version = "0.1"
source = {{ directory = "sibling" }}
dependencies = [{{ name = "d", marker = "python_version < '3.12'" }}]
[[package]]
name = "a"
version = "1.0"
source = {{ registry = "https://elsewhere.example/simple" }}
dependencies = [{{ name = "d", marker = "os_name == 'nt'" }}]
sdist = {{ url = "x", hash = "{sha}" }}
[[package]]
name = "b"
version = "2.0"
source = {{ registry = "https://pypi.org/simple" }}
wheels = [{{ url = "x", hash = "{other}" }}]
[package.optional-dependencies]
fast = [{{ name = "c", version = "3.0" }}]
[[package]]
name = "c"
version = "3.0"
source = {{ registry = "https://pypi.org/simple" }}
[[package]]
name = "c"
version = "4.0"
source = {{ registry = "https://pypi.org/simple" }}
[[package]]
name = "d"
version = "5.0"
source = {{ registry = "https://pypi.org/simple" }}
dependencies = [{{ name = "a" }}]
[[package]]
name = "unneeded"
version = "6.0"
source = {{ git = "https://evil.example" }}
"""


def uv(text: str = UV) -> str:
    return text.format(sha=SHA, other=OTHER)


def test_a_uv_lock_gives_what_its_project_needs_and_when() -> None:
    assert found({"uv.lock": uv()}).wanted == [
        f"a==1.0 --hash={SHA}",
        f"b==2.0 ; (sys_platform == 'linux') --hash={OTHER}",
        "c==3.0 ; (sys_platform == 'linux')",
        "d==5.0 ; ((os_name == 'nt')) or ((python_version < '3.12'))",
    ]


def test_the_project_of_a_workspace_that_holds_the_agent_counts() -> None:
    text = uv().replace('directory = "sibling"', 'editable = "agents"')
    assert [line.split(" ")[0] for line in found({"uv.lock": text}).wanted] == ["a==1.0", "d==5.0"]


def test_a_uv_lock_with_anything_but_releases_or_without_a_project_is_refused() -> None:
    needed = uv().replace('{ name = "sibling" }', '{ name = "unneeded" }')
    assert "'unneeded' comes from" in refused({"uv.lock": needed})[1]
    assert "no project" in refused({"uv.lock": uv().replace('editable = "."', 'git = "x"')})[1]
    assert "no project" in refused({"uv.lock": uv().replace('editable = "."', 'virtual = "x"')})[1]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[[package]]\nversion = '1'",
        "package = 1",
        uv().replace('name = "a"\nversion', 'name = "z"\nversion'),
        uv().replace("os_name == 'nt'", "os_name == 'nt' --no-binary x"),
        uv().replace('name = "a"', 'name = "a @ https://evil.example/x.whl"'),
    ],
)
def test_a_damaged_lock_is_refused_in_one_line(text: str) -> None:
    slug, message = refused({"uv.lock": text})
    assert slug == "requirements-refused"
    assert message.startswith("uv.lock: ")


def test_ways_without_an_end_are_given_up() -> None:
    needs = ", ".join(f'{{ name = "x", marker = "a == \'{n}\'" }}' for n in range(70))
    text = f"""
        [[package]]
        name = "p"
        source = {{ virtual = "." }}
        dependencies = [{needs}]
        [[package]]
        name = "x"
        version = "1"
        source = {{ registry = "r" }}
    """
    assert "uv export" in refused({"uv.lock": text})[1]


def test_our_own_lock_gives_what_our_own_package_needs() -> None:
    def read(name: str) -> bytes | None:
        path = ROOT / name
        return path.read_bytes() if path.is_file() else None

    packages = find_packages(PurePosixPath(), read, named="uv.lock", index=None)
    names = {re.split("[=\\[]", line)[0] for line in packages.wanted}
    assert {"msgspec", "pydantic", "pydantic-core", "pyyaml", "rich", "typer"} <= names
    assert "pytest" not in names
    assert packages.locked
