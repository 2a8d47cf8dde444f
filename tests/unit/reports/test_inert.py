"""Nothing that others can name comes alive in a comment, a summary or an annotation.

The proof is GitHub's own reader: whatever a text is, the page has the blocks that a harmless
text gives it, and no link, image, HTML, mention or reference but ours.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given

from backstop.core.verdict import Decision
from backstop.reports.annotations import annotations_of, error_annotation
from backstop.reports.comment import render_comment, render_error, render_not_applicable
from backstop.reports.context import CommentContext
from backstop.reports.escape import code, fenced, in_html, prose
from backstop.reports.markdown import details, row, table
from backstop.reports.summary import render_summary
from tests.unit.reports.gfm import Page, rendered
from tests.unit.reports.hostile import ATTACKS, TEXT, context_of, verdict_of

HARMLESS = "harmless"
OURS = ("https://docs.example/backstop/", "https://ours.example/")


def alive(page: Page) -> list[str]:
    """What a page does beyond showing text."""
    return [*page.faults, *(link for link in page.links if not link.startswith(OURS))]


def comments(text: str) -> list[str]:
    context = context_of(text, show_values=True)
    return [
        render_comment(verdict_of(text), context),
        render_comment(verdict_of(text, Decision.PASS), replace(context, show_values=False)),
        render_summary(verdict_of(text, Decision.INCONCLUSIVE), context),
        render_error("build", text, context, log=f"{text}\nend"),
        render_not_applicable(context),
    ]


@cache
def expected() -> list[tuple[str, ...]]:
    """The blocks of the same pages where everything is called harmless."""
    return [rendered(text).blocks for text in comments(HARMLESS)]


@pytest.mark.parametrize("text", ATTACKS)
def test_no_attack_comes_alive_in_any_field(text: str) -> None:
    for body, blocks in zip(comments(text), expected(), strict=True):
        page = rendered(body)
        assert alive(page) == []
        assert page.blocks == blocks or not text  # nothing known, nothing said


@given(TEXT)
def test_no_text_comes_alive_in_any_field(text: str) -> None:
    """The law that the attacks are cases of."""
    body = render_comment(verdict_of(text), context_of(text, show_values=True))
    page = rendered(body)
    assert alive(page) == []
    assert page.blocks == expected()[0] or not text


@pytest.mark.parametrize(
    "text",
    [
        "@octocat",
        "#1",
        "GH-123",
        "octo/repo@deadbeefcafe",
        "JIRA-abc",
        "defaced",
        "http://evil.example/x",
        "www.evil.example",
        "a@evil.example",
        "<https://evil.example>",
        "[text](https://evil.example)",
        "[text][ref]\n\n[ref]: https://evil.example",
        "![x](https://evil.example/pixel.png)",
        "<img src=https://evil.example/pixel.png>",
        "</details></td></table>",
        "<details><summary>x",
        "<!-- backstop-x:default -->",
        "<![CDATA[x]]>",
        "<?x?>",
        "$x$",
        "[^1]\n\n[^1]: evil",
        ":smile:",
        "~~x~~",
        "- [x] done",
        "&#64;octocat",
        "\u202eevil\u2066",
    ],
)
def test_the_same_text_unescaped_is_seen(text: str) -> None:
    """The control: the reader and the search behind it do see what is alive."""
    page = rendered(f"{text}\n")
    assert alive(page) != []


def cells_of(cell: str) -> Page:
    return rendered(table(("a", "b", "c"), [row((cell, "`x`", "`y`")), row(("x", "y", "z"))]))


@pytest.mark.parametrize("text", ["a\nb", "x\n\n# y", "`a | b` | `c`"])
def test_an_unescaped_text_that_breaks_a_table_is_seen(text: str) -> None:
    """The control for tables: cells that an unescaped text moves or loses."""
    page, whole = cells_of(text), cells_of(f"`{HARMLESS}`")
    assert (page.blocks, page.code[-1:]) != (whole.blocks, whole.code[-1:])


@given(TEXT)
def test_a_cell_keeps_its_text_and_its_neighbours(text: str) -> None:
    page = cells_of(code(text))
    assert page.code == (code(text).strip("`").removeprefix(" ").removesuffix(" "), "x", "y") or (
        page.code == (code(text).strip("`"), "x", "y")
    )
    assert page.blocks == cells_of("a").blocks


@given(TEXT)
def test_each_way_of_escaping_is_inert_by_itself(text: str) -> None:
    for escaped in (code(text), prose(text), details(in_html(text), "x"), fenced(text)):
        page = rendered(f"{escaped}\n")
        assert page.faults == ()
        assert page.links == ()
    assert rendered(f"a {prose(text)}\n").blocks == ("document", "paragraph")
    assert rendered(f"{prose(text)}\n").blocks in {("document", "paragraph"), ("document",)}


@given(TEXT)
def test_a_fence_holds_whatever_stands_in_it(text: str) -> None:
    assert rendered(f"{fenced(text)}\n").blocks == ("document", "code_block")


@given(TEXT)
def test_an_annotation_is_one_line_of_plain_text(text: str) -> None:
    context = context_of(text, show_values=True)
    told = [*annotations_of(verdict_of(text), context), error_annotation("x", text, context)]
    for one in told:
        for shown in (one.title, one.message):
            assert (
                re.search(r"[\x00-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]", shown) is None
            )
            assert len(shown.encode()) <= 4096


@pytest.mark.parametrize("text", ["javascript:alert(1)", "https://x.y) [z](https://w", "//x"])
def test_a_url_that_we_would_not_make_is_no_link(text: str) -> None:
    context = replace(CommentContext(), run_url=text, docs=text, report=text)
    assert rendered(render_comment(verdict_of(HARMLESS), context)).links == ()


def test_our_own_links_are_links() -> None:
    context = CommentContext(
        run_url="https://ours.example/run",
        docs="https://docs.example/backstop",
        report="https://ours.example/report",
    )
    links = rendered(render_comment(verdict_of(HARMLESS), context)).links
    assert set(links) >= {"https://ours.example/run", "https://ours.example/report"}
    assert "https://docs.example/backstop/divergences.md#duplicate-relabelled" in links
