"""A repository on a GitHub on loopback, and a change to it that the action runs on."""

from __future__ import annotations

import io
import shutil
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from backstop.action.context import Known, context_of
from backstop.action.inputs import parse
from backstop.action.outcome import Outcome
from backstop.action.step import run
from backstop.action.telling import Places, tell
from backstop.adapters.github.client import GitHub
from backstop.adapters.github.comments import Comments
from backstop.adapters.github.event import read_event
from backstop.adapters.github.retrying import Pacing
from backstop.adapters.github.runner import Runner
from tests.action_runner import events
from tests.action_runner.runner import Desk, Ended, Step
from tests.action_runner.specimen import LEDGER, lay_out
from tests.github.fake import TOKEN, FakeGitHub

_WORDS: Final = count()


def run_here(step: Step, folder: Path, *, pacing: Pacing | None = None) -> Ended:
    """The step in this process, with the paths of this machine."""
    desk = Desk.at(folder, step)
    out = io.StringIO()
    code = run(desk.here(step), out, chance=_word, pacing=pacing)
    return desk.ended(code, out.getvalue())


def tell_here(outcome: Outcome, step: Step, folder: Path) -> Ended:
    """What the step would tell of an outcome."""
    desk = Desk.at(folder, step)
    environment, out = desk.here(step), io.StringIO()
    event, inputs = read_event(environment), parse(environment)
    known = Known(event=event, inputs=inputs)
    pacing = Pacing()
    with GitHub(api=event.api_url, graphql=event.graphql_url, token=TOKEN, pacing=pacing) as github:
        places = Places(
            runner=Runner(environment, out, chance=_word),
            workspace=desk.workspace,
            inputs=inputs,
            comments=Comments(github, repo=event.repo, number=event.number or 0),
        )
        tell(outcome, context_of(environment, known), places)
    return desk.ended(outcome.exit_code, out.getvalue())


def _word() -> str:
    return f"an-unguessable-word-{next(_WORDS)}"


@dataclass(slots=True)
class Town:
    """A repository on the fake, and a checkout of a change to it."""

    github: FakeGitHub
    root: Path
    base: str = ""
    head: Path = Path()
    runs: int = 0
    api: str = ""
    """What the action takes for GitHub; the fake itself where this is left out."""

    def set_up(self, *, base: str = "v1", head: str = "v3") -> None:
        """Commit `base` to the fake, and check `head` out."""
        self.base = self.github.commit_folder(lay_out(self.root / "base", base))
        self.head = lay_out(self.root / "head", head)

    def forget(self) -> None:
        """The change deletes the ledger: no pass, and found so without a replay."""
        (self.head / LEDGER).unlink()

    def touch(self) -> None:
        """The change moves packages about, which concerns every agent, and changes none."""
        with (self.head / "requirements.txt").open("a") as file:
            file.write("# reviewed\n")

    def move_on(self, head: str) -> None:
        """The same pull request with another head."""
        shutil.rmtree(self.head)
        lay_out(self.head, head)

    def step(self, event_name: str = "pull_request", **more: Any) -> Step:
        """A run of the action on the change."""
        head = self.github.commit_folder(self.head, self.base)
        told = {
            "pull_request": events.pull_request(base=self.base, head=head),
            "merge_group": events.merge_group(base=self.base, head=head),
            "push": events.push(before=self.base, after=head),
            "workflow_dispatch": events.workflow_dispatch(),
            "workflow_run": events.workflow_run(head=head),
        }
        inputs = {"runtime": "none", "github-token": TOKEN, **more.pop("inputs", {})}
        return replace(
            Step(
                workspace=self.head,
                event_name=event_name,
                event=told[event_name],
                api_url=self.api or self.github.url,
                graphql_url=f"{self.github.url}/graphql",
                sha=head,
                inputs=inputs,
                run_id=100 + self.runs,
            ),
            **more,
        )

    def run(self, event_name: str = "pull_request", **more: Any) -> Ended:
        """Run the action on the change."""
        self.runs += 1
        return run_here(self.step(event_name, **more), self.root / f"run-{self.runs}")

    def open(self, head: str, *, number: int = events.NUMBER, repo: str = "stranger/repo") -> None:
        """Open a pull request from a fork, at the commit `head`."""
        owner = repo.partition("/")[0]
        told = {"label": f"{owner}:feature", "sha": head, "repo": {"full_name": repo}}
        self.github.pulls.append({"id": number, "number": number, "head": told})

    @property
    def comments(self) -> list[str]:
        return [comment.body for comment in self.github.under(events.NUMBER)]


def rows(text: str, kind: str) -> int:
    """How many rows of the table of findings are of a kind, linked or not."""
    table = [line for line in text.splitlines() if line.startswith("|")]
    return sum(f"**[{kind}]" in line or f"**{kind}**" in line for line in table)
