"""`backstop-waivers.yaml`: what is refused, with file and line, and how it gets one more."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from backstop.config.waivers import load, loads
from backstop.config.waiving import appended
from backstop.core.divergence import Kind
from backstop.core.waivers import ByCall, ByFingerprint, ByKey, Waiver
from backstop.errors import ConfigError

PRINT = "0123456789abcdef0123456789abcdef"
ENTRY = f"""version: 1
waivers:
  - fingerprint: {PRINT}
    agent: desk
    reason: the first order was cancelled
    author: eva@example.org
    expires: 2026-12-14
"""
PATTERN = """  - key: {tool: pay, run: "2026-*", args: {vendor: "ac*"}}
    kind: DUPLICATE
    agent: desk
    reason: renamed
    author: eva
    expires: 2026-12-24
    count: 3
  - key: abcdef*
    kind: MISSING
    agent: desk
    reason: gone
    author: eva
    expires: 2026-12-24
"""


def refused(text: str) -> tuple[str, str]:
    """The slug and the line of a text that must be refused."""
    with pytest.raises(ConfigError) as caught:
        loads(text, name="w.yaml")
    return caught.value.slug, str(caught.value)


def test_a_waiver_is_read_with_its_line() -> None:
    one, two, three = loads(ENTRY + PATTERN, name="anywhere/backstop-waivers.yaml")
    assert one == Waiver(
        names=ByFingerprint(fingerprint=PRINT),
        agent="desk",
        reason="the first order was cancelled",
        author="eva@example.org",
        expires=date(2026, 12, 14),
        place="backstop-waivers.yaml:3",
    )
    assert two.names == ByCall(tool="pay", run="2026-*", args={"vendor": "ac*"})
    assert (two.kind, two.count, two.place) == (Kind.DUPLICATE, 3, "backstop-waivers.yaml:8")
    assert three.names == ByKey(key="abcdef*")


@pytest.mark.parametrize("missing", ["reason", "expires", "author", "agent"])
def test_g16_a_waiver_without_reason_expiry_author_or_agent_is_an_error(missing: str) -> None:
    """G16: asked for in prose, nobody writes them; here nothing is read without."""
    lines = [line for line in ENTRY.splitlines() if f" {missing}:" not in line]
    slug, told = refused("\n".join(lines))
    assert slug == "config-value"
    assert told.startswith(f"w.yaml:3: waivers.0.{missing}: ")


@pytest.mark.parametrize(
    ("was", "becomes", "slug", "begins"),
    [
        ("2026-12-14", "soon", "config-value", "w.yaml:7: waivers.0.expires: 'soon' is no date"),
        ("2026-12-14", "2026-02-30", "config-value", "w.yaml:7: waivers.0.expires: "),
        ("2026-12-14", "20261214", "config-value", "w.yaml:7: waivers.0.expires: "),
        ("2026-12-14", "2026-W50-1", "config-value", "w.yaml:7: waivers.0.expires: "),
        ("the first order was cancelled", "' '", "config-value", "w.yaml:5: waivers.0.reason: "),
        ("the first order was cancelled", "", "config-value", "w.yaml:5: waivers.0.reason: "),
        ("reason:", "resaon:", "config-unknown-key", "w.yaml:5: unknown key 'waivers.0.resaon'"),
        (PRINT, "01234567", "config-value", "w.yaml:3: waivers.0.fingerprint: "),
        (f"fingerprint: {PRINT}", "kind: EXTRA", "config-value", "w.yaml:3: waivers.0: names"),
        ("    agent", "    key: abcdef\n    agent", "config-value", "w.yaml:3: waivers.0: names"),
        ("    agent", "    kind: extra\n    agent", "config-value", "w.yaml:4: waivers.0.kind: "),
        ("    agent", "    count: 0\n    agent", "config-value", "w.yaml:4: waivers.0.count: "),
        ("    agent", "    count: yes\n    agent", "config-value", "w.yaml:4: waivers.0.count: "),
        ("version: 1", "version: 2", "config-value", "w.yaml:1: version: "),
        ("  - fing", "\t- fing", "config-tab", "w.yaml:3: "),
        ("agent: desk", "agent: desk\n    agent: b", "config-duplicate-key", "w.yaml:5: "),
        ("agent: desk", "agent: *a", "config-syntax", "w.yaml:4: "),
    ],
)
def test_what_has_no_meaning_is_refused_with_file_and_line(
    was: str, becomes: str, slug: str, begins: str
) -> None:
    text = ENTRY.replace(was, becomes, 1)
    assert text != ENTRY
    told = refused(text)
    assert told[0] == slug
    assert told[1].startswith(begins)


def test_a_file_without_waivers_waives_nothing(tmp_path: Path) -> None:
    for text in (
        "",
        "# none\n",
        "version: 1\n",
        "version: 1\nwaivers:\n",
        "version: 1\nwaivers: []\n",
    ):
        assert loads(text, name="w.yaml") == ()
    assert load(tmp_path / "none.yaml") == ()


def test_a_file_that_cannot_be_read_is_not_one_without_waivers(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").symlink_to(tmp_path / "gone.yaml")
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "w.yaml")
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path)


ONE = Waiver(
    names=ByFingerprint(fingerprint="1" * 32),
    agent="desk",
    reason='it\'s "fine": # really {x} \\ &y *z',
    author="eva@example.org",
    expires=date(2026, 12, 31),
    kind=Kind.DUPLICATE,
    count=2,
)


def added(text: str, waiver: Waiver = ONE) -> str:
    """The text with the waiver, which must read as the old ones and this one."""
    longer = appended(text, waiver, name="w.yaml")
    before = loads(text, name="w.yaml")
    told = [replace(one, place="") for one in loads(longer, name="w.yaml")]
    assert told == [*(replace(one, place="") for one in before), waiver]
    return longer


def test_a_first_waiver_begins_the_file() -> None:
    assert added("") == (
        "version: 1\n"
        "waivers:\n"
        '  - fingerprint: "11111111111111111111111111111111"\n'
        "    kind: DUPLICATE\n"
        "    agent: desk\n"
        '    reason: "it\'s \\"fine\\": # really {x} \\\\ &y *z"\n'
        '    author: "eva@example.org"\n'
        "    expires: 2026-12-31\n"
        "    count: 2\n"
    )


def test_comments_and_order_stay() -> None:
    text = "# ours\n" + ENTRY.replace("agent: desk", "agent: desk  # the old one") + "# end\n"
    assert added(text).startswith(text)


@pytest.mark.parametrize(
    "text",
    [
        ENTRY.rstrip("\n"),
        ENTRY.replace("\n", "\r\n"),
        ENTRY.replace("  - ", "- ").replace("    ", "  "),
        re.sub(r"(?m)^ {4}(?=\w)", " " * 10, ENTRY.replace("  - ", "      -   ")),
        ENTRY.replace("  - fing", "  -\n    fing"),
        "version: 1\nwaivers: []  # none yet\n",
        "version: 1\nwaivers:\n",
        "version: 1\nwaivers:\n  # none yet\n",
        "version: 1\n",
    ],
)
def test_however_the_list_is_written_one_more_stands_at_its_end(text: str) -> None:
    longer = added(text)
    assert (longer.count("\r\n") == longer.count("\n")) is ("\r\n" in text)


def test_a_file_of_nothing_but_comments_is_begun_below_them() -> None:
    longer = appended("# what we let pass\n", ONE, name="w.yaml")
    assert longer.startswith("# what we let pass\nversion: 1\nwaivers:\n")
    assert len(loads(longer, name="w.yaml")) == 1


@pytest.mark.parametrize("agent", ["007", "null", "1e5", "true", "v-1.x", "_a"])
def test_an_agent_stays_a_name_however_it_looks(agent: str) -> None:
    added(ENTRY, replace(ONE, agent=agent))


@pytest.mark.parametrize(
    "text",
    [
        "waivers:\n" + ENTRY.partition("waivers:\n")[2] + "version: 1\n",
        "version: 1\nwaivers: [{fingerprint: " + PRINT + ", agent: a, reason: r, author: b, "
        "expires: 2026-12-24}]\n",
        ENTRY + "...\n",
    ],
)
def test_where_one_more_would_not_belong_to_the_list_nothing_is_written(text: str) -> None:
    assert loads(text, name="w.yaml")
    with pytest.raises(ConfigError) as caught:
        appended(text, ONE, name="w.yaml")
    assert caught.value.slug == "waivers-form"


def test_a_broken_file_is_not_written_to() -> None:
    with pytest.raises(ConfigError) as caught:
        appended(ENTRY.replace("reason", "resaon"), ONE, name="w.yaml")
    assert caught.value.slug == "config-unknown-key"
