"""The documentation says what the code does: slugs, links."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, python_files

ERRORS = ROOT / "docs" / "errors.md"
DECISIONS = ROOT / "docs" / "adr"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def slugs_given(tree: ast.AST) -> set[str]:
    """Slugs that code gives to an error: `slug=…` in a call, or `slug` in a class."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="slug", value=value):
                found |= texts(value)
            case ast.ClassDef(body=body):
                for item in body:
                    match item:
                        case ast.Assign(targets=[ast.Name(id="slug")], value=value):
                            found |= texts(value)
                        case ast.AnnAssign(target=ast.Name(id="slug"), value=ast.expr() as value):
                            found |= texts(value)
                        case _:
                            pass
            case _:
                pass
    return found


def texts(node: ast.AST) -> set[str]:
    """All string literals in an expression."""
    return {
        item.value
        for item in ast.walk(node)
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    }


def explained() -> set[str]:
    return set(re.findall(r"^## (\S+)$", ERRORS.read_text(encoding="utf-8"), re.MULTILINE))


def test_every_slug_is_explained() -> None:
    trees = [ast.parse(path.read_bytes()) for path in python_files("backstop")]
    assert {slug for tree in trees for slug in slugs_given(tree)} - explained() == set()


def test_every_explained_slug_is_used() -> None:
    trees = [ast.parse(path.read_bytes()) for path in python_files("backstop")]
    assert explained() - {text for tree in trees for text in texts(tree)} == set()


def test_a_slug_is_seen_wherever_it_is_given() -> None:
    annotated = "class A:\n    slug: ClassVar[str] = 'a'"
    plain = "class B:\n    slug = 'b'"
    keyword = "f(slug='c' if x else 'd')"
    found = [slugs_given(ast.parse(text)) for text in (annotated, plain, keyword)]
    assert found == [{"a"}, {"b"}, {"c", "d"}]


def test_every_decision_has_its_row_and_numbers_have_no_holes() -> None:
    files = sorted(DECISIONS.glob("*.md"))
    rows = re.findall(
        r"^\| \[(\d{4})\]\(adr/(\S+)\) \| (.+) \|$",
        (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    titles = [page.read_text(encoding="utf-8").partition("\n")[0] for page in files]
    assert rows == [
        (f"{number:04}", page.name, title.removeprefix(f"# {number}. "))
        for number, (page, title) in enumerate(zip(files, titles, strict=True), start=1)
    ]
    assert [page.name[:4] for page in files] == [number for number, _, _ in rows]


def anchors(page: Path) -> set[str]:
    """The anchors that a Markdown page offers, as the hosting site makes them."""
    titles = HEADING.findall(CODE.sub(lambda m: m[0].strip("`"), page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    dead: list[str] = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue  # the web is not part of this repository
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []
