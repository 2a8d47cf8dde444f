"""The commands by which a person accepts findings: ``waive`` and ``baseline write``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from backstop.cli.options import (
    CONFIG_FILE,
    AgentName,
    Candidate,
    ConfigFile,
    RuntimeOption,
    SandboxOption,
)

baseline = typer.Typer(help="What was known before; only more blocks.", rich_markup_mode=None)


def waive(  # noqa: PLR0913, PLR0917  # a command's options are its contract
    fingerprint: Annotated[
        str, typer.Argument(metavar="FINGERPRINT", help="The finding, as the report names it.")
    ],
    reason: Annotated[
        str, typer.Option("--reason", metavar="WHY", help="Why it may go out all the same.")
    ],
    days: Annotated[int, typer.Option("--days", metavar="N", help="How long it counts.")] = 14,
    count: Annotated[
        int,
        typer.Option("--count", metavar="N", help="How many there may be; else none is waived."),
    ] = 1,
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="The kind of finding, or UNCOVERED."),
    ] = None,
    agent: AgentName = None,
    author: Annotated[
        str | None,
        typer.Option("--author", metavar="WHO", help="Who answers for it; else git's user.email."),
    ] = None,
    verdict: Annotated[
        Path | None,
        typer.Option("--verdict", metavar="FILE", help="The JSON report that has the finding."),
    ] = None,
    config: ConfigFile = CONFIG_FILE,
) -> None:
    """Accept one finding for a while, in backstop-waivers.yaml."""
    from backstop import clock
    from backstop.cli.author import author as named
    from backstop.cli.waiving import Asked
    from backstop.cli.waiving import waive as run

    asked = Asked(
        fingerprint=fingerprint,
        reason=reason,
        author=named(author, option="--author", folder=config.parent, environ=os.environ),
        days=days,
        count=count,
        kind=kind,
        agent=agent,
        verdict=verdict,
    )
    typer.echo(run(asked, config=config, now=clock.now()))


@baseline.command(name="write")
def write_(
    verdict: Annotated[
        Path | None,
        typer.Option("--verdict", metavar="FILE", help="A JSON report; else the gate is run."),
    ] = None,
    add: Annotated[  # noqa: FBT002  # a flag is a boolean
        bool,
        typer.Option("--add", help="Take new findings in too, not only what is gone out."),
    ] = False,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="WHO", help="Who answers for it; else git's user.email."),
    ] = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    candidate: Candidate = None,
    sandbox: SandboxOption = None,
    runtime: RuntimeOption = None,
) -> None:
    """Write down what is found as known, and what is gone out."""
    from backstop import clock
    from backstop.cli.author import author
    from backstop.cli.baselining import write as run
    from backstop.cli.gating import Where, asked

    request = asked(
        config=config,
        agent=agent,
        candidate=candidate,
        base=None,
        where=Where(sandbox=sandbox, runtime=runtime),
    )
    who = author(by, option="--by", folder=config.parent, environ=os.environ)
    typer.echo(run(request, verdict=verdict, add=add, by=who, now=clock.now()))
