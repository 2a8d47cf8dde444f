"""What a comment says besides the verdict: whose it is, where things came from, what may be shown.

All of it is a value that the caller knows; nothing here is read or asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from backstop.core.divergence import Kind
from backstop.reports.carried import Carried


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file of the checkout, and a line of it (from 1) where that is known."""

    file: str
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentContext:
    """Everything that is shown and is not in the verdict. Empty means: not known, not shown.

    `config_id` tells the comments of several gates of one pull request apart. `run` and
    `attempt` order comments: they are the runner's numbers. `head` and `base` are commits.
    `report` is where the whole report lies: a URL, or the name of an artifact. `docs` is the
    URL of the folder that holds divergences.md. `fail_on` are the kinds that block.

    `show_values` lets arguments be seen; without it field names and short keys stand for
    them, and what looks like a secret is masked (G24, G25). `ledgers` says for each agent
    where its ledger was taken from, `paths` its folder, `base_paths` that in the base.
    `notes` come first: a fork, an edited policy. `untouched` agents were not judged, whether
    or not the verdict names them, nor were those that something is `carried` of from an
    earlier comment: that is shown, and never counted.
    `sandbox` is the runtime to see it again with. `places` are files for annotations,
    by agent.
    """

    config_id: str = "default"
    run: int = 0
    attempt: int = 1
    head: str = ""
    base: str = ""
    run_url: str = ""
    report: str = ""
    docs: str = ""
    config: str = "backstop.yaml"
    sandbox: str = ""
    fail_on: frozenset[Kind] = frozenset({Kind.DUPLICATE})
    show_values: bool = False
    ledgers: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    base_paths: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    carried: tuple[Carried, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)

    @property
    def spared(self) -> tuple[str, ...]:
        """The agents that were not judged, since the change does not touch them."""
        return tuple(sorted({*self.untouched, *(one.agent for one in self.carried)}))
