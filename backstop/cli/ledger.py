"""The commands below ``backstop ledger`` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backstop.cli.options import (
    CONFIG_FILE,
    AgentName,
    ConfigFile,
    Epoch,
    Format,
    HighWater,
    LedgerFile,
    OtherFile,
    ReportFormat,
    RightAgent,
    SignKey,
    TrustedKeys,
)

ledger = typer.Typer(help="Verify, show, seal, pull, archive, erase.", rich_markup_mode=None)


@ledger.command()
def verify(
    file: LedgerFile,
    agent: RightAgent = None,
    trusted: TrustedKeys = None,
    mark: HighWater = None,
) -> None:
    """Check each line, and refuse silent skips."""
    from backstop.cli.ledgers import verify as run

    typer.echo(run(file, agent=agent, trusted=trusted, high_water=mark))


@ledger.command()
def show(
    file: LedgerFile,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="Only this run.")] = None,
    effects: Annotated[bool, typer.Option("--effects", help="Only side effects.")] = False,
) -> None:
    """Print a ledger's events, one a line."""
    from backstop.cli.ledgers import show as lines
    from backstop.cli.streams import print_lines

    print_lines(lines(file, run=run, effects=effects))


@ledger.command()
def stats(file: LedgerFile, form: ReportFormat = Format.TEXT) -> None:
    """Count a ledger's events and effects."""
    from backstop.cli.ledgers import stats as run
    from backstop.cli.streams import print_lines

    print_lines([run(file, form=form)])


@ledger.command()
def seal(
    file: LedgerFile,
    out: OtherFile = None,
    key: SignKey = None,
    epoch: Epoch = 0,
) -> None:
    """Seal a ledger that has no seal yet; sign it."""
    from backstop.cli.ledgers import seal as run

    typer.echo(run(file, out=out, key=key, epoch=epoch))


@ledger.command()
def pull(
    url: Annotated[str, typer.Argument(metavar="URL", help="The store.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the ledger.")],
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="As it was then; else as it is.")
    ] = None,
    key: SignKey = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
) -> None:
    """Copy a store's ledger, as of one instant, to a file."""
    from backstop.cli.pulling import pull as run
    from backstop.cli.stores import place

    typer.echo(run(place(store=url, config=config, agent=agent), out=out, at=at, key=key))


@ledger.command()
def archive(
    source: Annotated[str, typer.Argument(metavar="FILE|URL", help="A ledger, or a store.")],
    to: Annotated[
        str,
        typer.Option("--to", metavar="URL", help="The archive."),
    ],
    high_water: Annotated[
        Path | None,
        typer.Option("--high-water", metavar="FILE", help="Demand how far it reached; kept here."),
    ] = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
) -> None:
    """Keep what is new of a ledger for good.

    URL is parquet:FOLDER, sqlite:///..., firestore://... or bigquery://...
    """
    from backstop.cli.archiving import archive as run

    typer.echo(run(source, to=to, high_water=high_water, config=config, agent=agent))


@ledger.command()
def erase(
    ledger: Annotated[str, typer.Argument(metavar="FILE|URL", help="A ledger, or a store.")],
    subject: Annotated[
        str, typer.Option("--subject", metavar="VALUE", help="Whom to take out; - reads stdin.")
    ],
    field: Annotated[
        list[str] | None,
        typer.Option("--field", metavar="NAME", help="Only where a member of this name has it."),
    ] = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
) -> None:
    """Take a person out; keys stay."""
    from backstop.cli.erasing import erase as run

    typer.echo(run(ledger, subject=subject, fields=field or [], config=config, agent=agent))


@ledger.command(name="import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE|URL", help="The record made elsewhere.")],
    kind: Annotated[
        str,
        typer.Option("--from", metavar="KIND", help="What kind of record it is."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the ledger.")],
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="FIELD=VALUE", help="Take only what has this value."),
    ] = None,
    run_field: Annotated[
        str | None, typer.Option("--run-field", metavar="FIELD", help="The field that names a run.")
    ] = None,
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="TIME",
            show_default=False,
            help="When runs begin that do not say it; else in 1970.",
        ),
    ] = "1970-01-01T00:00:00Z",
) -> None:
    """Make a ledger of a record made elsewhere.

    KIND is chat, adk-session, evalset, conformance, anthropic or otlp.
    """
    from backstop.cli.importing import import_ledger as run

    typer.echo(
        run(
            file,
            kind=kind,
            out=out,
            config=config,
            agent=agent,
            where=where or [],
            run_field=run_field,
            at=at,
        )
    )
