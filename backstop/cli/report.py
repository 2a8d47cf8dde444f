"""The commands below ``backstop report`` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backstop.cli.options import (
    CONFIG_FILE,
    AgentName,
    ConfigFile,
    Format,
    ReportFormat,
)

report = typer.Typer(help="What a ledger comes to.", rich_markup_mode=None)


@report.callback()
def _group() -> None:
    """What a ledger comes to."""


@report.command()
def audit(
    where: Annotated[
        str, typer.Argument(metavar="FILE|URL", help="A ledger, a store, or an archive.")
    ],
    high_water: Annotated[
        Path | None,
        typer.Option("--high-water", metavar="FILE", help="Demand what was archived before."),
    ] = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    form: ReportFormat = Format.TEXT,
) -> None:
    """Verify, then count effects, repeats, breaks and tokens by day."""
    from backstop.cli.auditing import audit as run
    from backstop.cli.streams import print_lines

    told = run(where, high_water=high_water, config=config, agent=agent, form=form)
    print_lines([told.removesuffix("\n")])
