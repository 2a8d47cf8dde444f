"""What an agent may say: attacks one by one, texts grown from them, and verdicts full of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Final

from hypothesis import strategies as st

from backstop.core.baseline import BaselineUse
from backstop.core.divergence import Divergence, Half, Kind, Reason
from backstop.core.unshown import UnshownFinding
from backstop.core.verdict import Coverage, Decision, Judged, LedgerFacts, Verdict
from backstop.core.waivers import ByCall, Standing, Waiver, WaiverUse
from backstop.reports.carried import Carried, CarriedFinding
from backstop.reports.context import CommentContext
from tests.verdicts import agent_verdict, divergence

ATTACKS: Final = (
    "@octocat",
    "hello @octo-org/team, see",
    "#1",
    "octo/repo#12",
    "GH-123",
    "octo/repo@deadbeefcafe",
    "0123456789abcdef0123456789abcdef01234567",
    "defaced",
    "JIRA-abc",
    "http://evil.example/x",
    "https://evil.example",
    "www.evil.example",
    "ftp://evil.example",
    "mailto:a@evil.example",
    "a@evil.example",
    "<https://evil.example>",
    "[text](https://evil.example)",
    "[text][ref]\n\n[ref]: https://evil.example",
    "![x](https://evil.example/pixel.png)",
    "<img src=https://evil.example/pixel.png>",
    "<script>alert(1)</script>",
    "<b onmouseover=x>",
    "</details></td></table>",
    "</summary><h1>PASS</h1>",
    "<details><summary>x",
    "</code><b>x</b>",
    "</sub>",
    "<!-- backstop-gate:default -->",
    '<!-- backstop-agent: {"agent":"x"} -->',
    "-->",
    "<!--",
    "<![CDATA[x]]>",
    "<?x?>",
    "a | b | c",
    "\\|",
    "a\\",
    "\\` | x",
    "a\nb",
    "a\r\n\r\n# PASS\r\n",
    "\n\n- [x] done\n",
    "```\n# PASS\n```",
    "`",
    "``",
    "a`b``c```d",
    "$x$",
    "$",
    "$$x$$",
    "x$",
    "$`x`$",
    "[^1]",
    "[^1]\n\n[^1]: evil",
    ":smile:",
    ":x::y:",
    "~~x~~",
    "**x** _y_ *z*",
    "1. x",
    "7) x",
    "- x",
    "+ x",
    "# x",
    "> x",
    "[!CAUTION]",
    "---",
    "===",
    "&lt;b&gt; &#64;octocat &commat;octocat",
    "\u202eevil\u2066",
    "\u200b\ufeff\u00ad",
    "ВLОСK",
    "\x1b[2J\x00\x7f",
    "\U000e0041",
    "   ",
    "",
    "(@octocat)",
    "x.@octocat",
    "'; rm -rf ~ #",
)
# Half a surrogate pair is in no verdict: it has no canonical form.
TEXT: Final = st.lists(
    st.sampled_from(ATTACKS)
    | st.sampled_from(tuple("`|$@#:()[]<>!*_~\\/&;-. \n\t'\"^1aW"))
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    max_size=6,
).map("".join)


def _findings(text: str) -> list[Divergence]:
    def half(key: str) -> Half:
        return Half(
            tool=text,
            run=text,
            step=text + key,
            key=text,
            fingerprint=text,
            args={"a" + text: text + key, "b": [text], "c": {text: text}},
        )

    return [
        divergence(
            kind,
            reason,
            half("1") if kind is not Kind.EXTRA else None,
            half("2") if kind is not Kind.MISSING else None,
            tool=text,
            run=text,
            step=text,
            paths=(f"/a{text}", "/b/0", f"/c/{text}", text),
            difference=("case",),
            suggestion=suggestion,
        )
        for kind, reason, suggestion in (
            (Kind.DUPLICATE, Reason.RELABELLED, "casefold"),
            (Kind.DUPLICATE, Reason.RENAMED, None),
            (Kind.MUTATED, Reason.CHANGED, None),
            (Kind.MISSING, Reason.DROPPED, None),
            (Kind.EXTRA, Reason.NEW, None),
        )
    ]


def verdict_of(text: str, decision: Decision = Decision.BLOCK) -> Verdict:
    """A verdict in which everything that others can name is `text`."""
    found = _findings(text)
    one = agent_verdict(
        *found,
        Judged(divergence=found[0], pre_existing=True),
        Judged(divergence=found[0], known=True),
        Judged(divergence=found[0], waiver=text),
        agent=text,
        decision=decision,
        coverage=Coverage(
            runs_compared=1,
            runs_total=2,
            steps_assumed=1,
            drift="drifted",
            drifted={text: (text, text)},
            not_replayable={text: text},
            uncovered=(text, text),
            unshown=(
                UnshownFinding(fingerprint=text, told=text),
                UnshownFinding(fingerprint=text, told=text, waiver=text),
            ),
            doubts=(text,),
        ),
        why=(text, f"not covered: {text}", f"run {text} was not replayed to its end: {text}"),
        notes=(text, f"changed {text}"),
        waivers=(_waiver_use(text),),
        baseline=BaselineUse(date=text, by=text, ledger=text, findings=9, known=1, gone=1, added=1),
    )
    facts = LedgerFacts(events=1, effects=1, runs=1, digest=text)
    one = replace(one, ledger=facts)
    return Verdict(agents=(one, agent_verdict(agent="beside", decision=Decision.PASS)))


def _waiver_use(text: str) -> WaiverUse:
    waiver = Waiver(
        names=ByCall(tool=text, run=text, args={text: text}),
        agent=text,
        reason=text,
        author=text,
        expires=date(2026, 12, 24),
        place=text,
        added=True,
    )
    return WaiverUse(waiver=waiver, standing=Standing.EXCEEDED, matched=2, note=text)


def context_of(text: str, *, show_values: bool) -> CommentContext:
    """A context in which everything that others can name is `text`."""
    name = f"{text[:50]} apart"
    row = CarriedFinding(kind=Kind.EXTRA, reason=Reason.NEW, tool=name, run=name, step=name)
    return CommentContext(
        head="abc1234",
        base="def5678",
        run_url="https://ours.example/run",
        report="https://ours.example/report",
        docs="https://docs.example/backstop",
        config=text,
        sandbox=text,
        show_values=show_values,
        ledgers={text: text},
        paths={text: text},
        base_paths={text: text},
        notes=(text,),
        untouched=(name, "other"),
        carried=(
            Carried(
                agent=name,
                decision=Decision.BLOCK,
                head="",
                compared=1,
                total=2,
                findings=3,
                rows=(row,),
            ),
        ),
        versions={text: text},
    )
