"""Two checkouts of one small repository, base and head, and a gate on the step between them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from backstop.core.declaration import Declaration
from backstop.core.sealing import seal_lines
from backstop.gate.request import GateRequest, Judgement, ReplayRequest
from backstop.replay.service import Progress
from backstop.wiring.gating import gate
from tests.e2e.studio import Studio, called, said

AGENT = '''
from google.adk.agents import LlmAgent


def pay(vendor: str) -> dict:
    """Pays."""
    return {"ok": True}


def before(tool, args, tool_context):
    pass


root_agent = LlmAgent(
    name="desk", model="gemini-3.5-flash", tools=[pay], before_tool_callback=before
)
'''
RELABELS = ("    pass\n", '    args["vendor"] = args["vendor"].upper()\n')
LINE = "{path: agents/%s, ledger: ledgers/%s.jsonl, tools: {pay: {identity: [vendor]}}}"


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository with one commit, `base`, and a change to it, `head`."""

    folder: Path
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def base(self) -> Path:
        return self.folder / "base"

    @property
    def head(self) -> Path:
        return self.folder / "head"

    def write(self, path: str, text: str) -> None:
        """Write a file of the head."""
        file = self.head / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def change(self, path: str, old: str, new: str) -> None:
        """Change a file of the head."""
        text = (self.head / path).read_text(encoding="utf-8")
        assert old in text
        self.write(path, text.replace(old, new))

    def gate(self, *, progress: Progress | None = None, **options: Any) -> Judgement:
        """The judgement on the head, with the base as its base."""
        return gate(self.request(**options), progress=progress)

    def request(self, **options: Any) -> GateRequest:
        """What is asked of the gate; options of the replay go there."""
        given = {"base": self.base, "base_is_checkout": True, **self.options, **options}
        replay = {name: given.pop(name) for name in list(given) if name in _REPLAY}
        return GateRequest(
            replay=ReplayRequest(config=self.head / "backstop.yaml", **replay), **given
        )


_REPLAY = set(ReplayRequest.__dataclass_fields__)


def repository(folder: Path, *agents: str) -> Repository:
    """A repository with these agents, all of which paid x once; its head changes nothing."""
    made = Repository(folder=folder)
    studio = Studio(folder=folder / "studio")
    agent = studio.version("v1", AGENT)
    stated = ["version: 1", "agents:"]
    (made.base / "ledgers").mkdir(parents=True)
    for name in agents or ("desk",):
        shutil.copytree(
            agent, made.base / "agents" / name, ignore=shutil.ignore_patterns("__pycache__")
        )
        ledger = replace(studio, name=name).ledger(
            agent,
            steps=["go"],
            models={"desk": [called(("pay", {"vendor": "x"})), said("paid")]},
            declared={"pay": Declaration(tool="pay", identity=("vendor",))},
        )
        lines = seal_lines(ledger.header, list(ledger.events))
        (made.base / f"ledgers/{name}.jsonl").write_bytes(b"".join(lines))
        stated.append(f"  {name}: {LINE % (name, name)}")
    (made.base / "backstop.yaml").write_text("\n".join([*stated, ""]), encoding="utf-8")
    (made.base / "README.md").write_text("# Agents\n", encoding="utf-8")
    shutil.copytree(made.base, made.head)
    return made
