"""What a report says besides the verdict, as far as the step knows it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

from backstop import __version__
from backstop.action.inputs import Inputs
from backstop.adapters.github.client import GitHub
from backstop.adapters.github.event import Event
from backstop.adapters.github.retrying import Pacing
from backstop.core.verdict import Verdict
from backstop.gate.request import Judgement
from backstop.reports.carried import Carried
from backstop.reports.context import CommentContext, Place
from backstop.wiring.action import Ground, Rules

CONFIG: Final = PurePosixPath("backstop.yaml")
_MAX_ID: Final = 64
_DIGITS: Final = 8


@dataclass(slots=True)
class Known:
    """What the step knows so far; it fails with as much as it has."""

    pacing: Pacing = field(default_factory=Pacing)
    event: Event | None = None
    inputs: Inputs | None = None
    github: GitHub | None = None
    ground: Ground = field(default_factory=Ground)
    rules: Rules = field(default_factory=Rules)
    judgement: Judgement | None = None
    carried: tuple[Carried, ...] = ()
    number: int | None = None
    """The pull request that another run's report is for."""
    is_reported: bool = False
    """The outcome is another run's."""


def config_id(config: PurePosixPath, agent: str | None) -> str:
    """What tells the comments of several gates of one pull request apart (G13).

    It follows from what is gated alone, so that the next run finds the comment of this one.
    """
    text = str(config) if agent is None else f"{config}.{agent}"
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")
    # Only where dots alone were replaced can nothing else come to the same.
    is_plain = agent is None and "-" not in text and plain == text.replace(".", "-")
    if is_plain and len(plain) <= _MAX_ID:
        return plain
    digest = hashlib.sha256(f"{config}\0{agent or ''}".encode()).hexdigest()[:_DIGITS]
    return f"{plain[: _MAX_ID - _DIGITS - 1].strip('-')}-{digest}"


def id_of(inputs: Inputs | None) -> str:
    """The `config_id` of a step; that of the defaults where its inputs could not be read."""
    return config_id(CONFIG, None) if inputs is None else config_id(inputs.config, inputs.agent)


def context_of(environment: Mapping[str, str], known: Known) -> CommentContext:
    """Everything that is known; a step that fails early knows little."""
    event, inputs, rules = known.event, known.inputs, known.rules
    judgement = known.judgement or Judgement(verdict=Verdict(agents=()))
    told = {one.agent for one in known.carried}
    return CommentContext(
        config_id=id_of(inputs),
        run=0 if event is None else event.run,
        attempt=1 if event is None else event.attempt,
        head="" if event is None else event.head_sha,
        base=known.ground.base_sha or "",
        run_url="" if event is None else event.run_url,
        report="" if event is None else event.run_url,
        docs=_docs(environment),
        config=str(CONFIG if inputs is None else inputs.config),
        sandbox="" if inputs is None else inputs.runtime.value,
        fail_on=rules.fail_on if inputs is None or inputs.fail_on is None else inputs.fail_on,
        show_values=inputs is not None and inputs.show_values,
        ledgers=judgement.ledgers,
        paths=rules.paths,
        base_paths=rules.base_paths,
        notes=(*rules.edits, *known.ground.notes),
        untouched=tuple(name for name in judgement.carried if name not in told),
        carried=known.carried,
        versions={"backstop": __version__},
        places={name: Place(file=f"{path}/agent.py") for name, path in rules.paths.items()},
    )


def _docs(environment: Mapping[str, str]) -> str:
    """The documentation of the action's own version; empty where the runner does not name it."""
    server = environment.get("GITHUB_SERVER_URL", "")
    repository = environment.get("GITHUB_ACTION_REPOSITORY", "")
    ref = environment.get("GITHUB_ACTION_REF", "")
    if not (server and repository and ref):
        return ""
    return f"{server}/{repository}/blob/{ref}/docs"
