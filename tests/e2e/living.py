"""A clerk whose prompt changes, gated with a live model: a server of our own stands for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from backstop.core.sealing import seal_lines
from backstop.core.verdict import AgentVerdict
from backstop.gate.request import GateRequest, Judgement, ReplayRequest
from backstop.reports.document import digest_of
from backstop.wiring.gating import gate
from tests.e2e.test_replay_clerk import Office
from tests.generating import KEY, calls, of_parts, says

CONFIG: Final = """\
version: 1
agents:
  clerk:
    path: clerk
    ledger: clerk.jsonl
    guarded: true
    tools:
      check: {{effect: false}}
      pay: {{identity: [vendor]}}
      mail: {{identity: [to]}}
    model: {{base_url: "{url}", {more}}}
"""
REWORDED: Final = ("You pay what is due.", "You pay what is due, at once.")
ENVIRON: Final[Mapping[str, str]] = {"GOOGLE_API_KEY": KEY}


def as_recorded(body: Mapping[str, Any]) -> dict[str, Any]:
    """What the recorded model said, by how often it has spoken since the user last did."""
    told = [part for content in body["contents"] for part in content["parts"]]
    text = [part["text"] for part in told if part.get("text", "").startswith("tick")]
    done = [part["functionResponse"]["name"] for part in told if "functionResponse" in part]
    if text[-1] == "tick 0":
        return says("Paid.") if "pay" in done else first("acme-corp")
    if "mail" in done:
        return says("Told.")
    return calls("mail", to="bo") if done.count("check") > 1 else calls("check", po="8")


def first(vendor: str, tokens: tuple[int, int] = (10, 5)) -> dict[str, Any]:
    """The first answer, for this vendor."""
    return of_parts(
        {"functionCall": {"name": "check", "args": {"po": "7"}}},
        {"functionCall": {"name": "pay", "args": {"vendor": vendor, "amount": 12.5}}},
        tokens=tokens,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Two checkouts, of the version that runs and of the one that is to be judged."""

    base: Path
    head: Path
    cassette: Path

    def judged(
        self,
        *,
        cassette: bool = False,
        offline: bool = False,
        environ: Mapping[str, str] = ENVIRON,
        based: bool = False,
    ) -> Judgement:
        """Gate the change; `based` replays the version that runs as well."""
        request = ReplayRequest(
            config=self.head / "backstop.yaml",
            base=self.base if based else None,
            cassette=self.cassette if cassette else None,
            offline=offline,
            environ=environ,
        )
        return gate(GateRequest(replay=request))

    def verdict(self, **options: Any) -> AgentVerdict:
        """The verdict on the clerk."""
        (found,) = self.judged(**options).verdict.agents
        return found


def digest(judgement: Judgement) -> str:
    """The digest of a verdict."""
    return digest_of(judgement.verdict)


def change(
    folder: Path,
    url: str,
    *changes: tuple[str, str],
    more: str = "",
    head: str | None = None,
) -> Change:
    """A change of the clerk, recorded on its base.

    `more` is the base's word on its model, `head` the change's.
    """
    office = Office(folder=folder)
    base, changed = office.version("base"), office.version("head", *(changes or (REWORDED,)))
    ledger = office.ledger(base, closed=True)
    sealed = b"".join(seal_lines(ledger.header, list(ledger.events)))
    usual = f"live: true, models: [gemini-3.5-flash]{more and ', '}{more}"
    for place, said in ((base.parent, usual), (changed.parent, head or usual)):
        (place / "clerk.jsonl").write_bytes(sealed)
        (place / "backstop.yaml").write_text(CONFIG.format(url=url, more=said))
    return Change(base=base.parent, head=changed.parent, cassette=folder / "answers.jsonl")
