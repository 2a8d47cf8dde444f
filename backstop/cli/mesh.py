"""The commands below ``backstop mesh`` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from backstop.cli.options import (
    CONFIG_FILE,
    AgentName,
    ConfigFile,
    Format,
    HighWater,
    ReportFormat,
    StoreUrl,
    TrustedKeys,
)

if TYPE_CHECKING:
    from backstop.cli.meshing import Where

mesh = typer.Typer(
    help=(
        "What each step was made from: what holds, why not, and recovery. "
        "Exit codes: 0 all holds, 1 something is to be done, 2 error."
    ),
    rich_markup_mode=None,
)

ANCHORS: Final = Path("backstop-mesh.yaml")
AnchorsFile: TypeAlias = Annotated[
    Path, typer.Option("--anchors", metavar="FILE", help="Whom it trusts.")
]
MaybeLedger: TypeAlias = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="A ledger, which is only read.")
]
RunName: TypeAlias = Annotated[
    str | None, typer.Option("--run", metavar="RUN", help="Only this run.")
]


def _where(
    file: Path | None,
    anchors: Path,
    run: str | None,
    store: str | None,
    config: Path,
    agent: str | None,
    *,
    trusted: Path | None = None,
    mark: Path | None = None,
) -> Where:
    from backstop.cli.meshing import Where
    from backstop.cli.stores import place
    from backstop.errors import UsageError

    if file is not None and store is not None:
        raise UsageError("name a ledger FILE or a --store, not both")
    return Where(
        anchors=anchors,
        place=lambda: place(store=store, config=config, agent=agent),
        file=file,
        agent=agent,
        run=run,
        trusted=trusted,
        high_water=mark,
    )


def _end(told: tuple[str, int]) -> None:
    from backstop.cli.streams import print_lines

    print_lines([told[0]])
    if told[1]:
        raise typer.Exit(told[1])


def _shows(name: str, about: str) -> None:
    """A command that tells all of a ledger's mesh, in one way or another."""

    @mesh.command(name, help=about)
    def command(  # noqa: PLR0913, PLR0917 - a command's options are its contract
        file: MaybeLedger = None,
        anchors: AnchorsFile = ANCHORS,
        run: RunName = None,
        store: StoreUrl = None,
        config: ConfigFile = CONFIG_FILE,
        agent: AgentName = None,
        trusted: TrustedKeys = None,
        mark: HighWater = None,
        form: ReportFormat = Format.TEXT,
    ) -> None:
        from backstop.cli import meshing

        told = meshing.plan if name == "plan" else meshing.status
        where = _where(file, anchors, run, store, config, agent, trusted=trusted, mark=mark)
        _end(told(where, form))


_shows("status", "Tell what holds for each step.")


@mesh.command()
def why(  # noqa: PLR0913, PLR0917 - a command's options are its contract
    step: Annotated[str, typer.Argument(metavar="STEP", help="The step, as status names it.")],
    file: MaybeLedger = None,
    anchors: AnchorsFile = ANCHORS,
    run: RunName = None,
    store: StoreUrl = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    trusted: TrustedKeys = None,
    mark: HighWater = None,
    form: ReportFormat = Format.TEXT,
) -> None:
    """Tell the chain from a step to the culprit."""
    from backstop.cli.meshing import why as told

    where = _where(file, anchors, run, store, config, agent, trusted=trusted, mark=mark)
    _end(told(where, step, form))


@mesh.command("break")
def break_trust(  # noqa: PLR0913, PLR0917 - a command's options are its contract
    reason: Annotated[
        str, typer.Option("--reason", metavar="WHY", help="What was found; stays on record.")
    ],
    step: Annotated[
        list[str] | None,
        typer.Option("--step", metavar="STEP", help="This step, and what was made from it."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--input", metavar="KIND/REF[/DIGEST]", help="All that read this input."),
    ] = None,
    producer: Annotated[
        str | None,
        typer.Option("--producer", metavar="NAME", help="All that this recorder vouched for."),
    ] = None,
    seq: Annotated[
        str | None,
        typer.Option("--seq", metavar="FIRST..LAST", help="Of that, only at these places."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="NAME", help="All that this rule judged.")
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="WHO", help="Who says so; else your user.")
    ] = None,
    anchors: AnchorsFile = ANCHORS,
    run: RunName = None,
    store: StoreUrl = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    form: ReportFormat = Format.TEXT,
) -> None:
    """Break trust in what turned out to be bad, and freeze its reach."""
    from backstop.cli.meshing import Named
    from backstop.cli.meshing import break_trust as told

    named = Named(steps=step or (), source=source, producer=producer, seq=seq, policy=policy)
    where = _where(None, anchors, run, store, config, agent)
    _end(told(where, named, reason=reason, by=by, form=form))


_shows("plan", "Tell what a recovery would do; a dry run.")


@mesh.command()
def apply(
    named: Annotated[
        str | None,
        typer.Option("--with", metavar="MODULE:NAME", help="Who runs steps again (docs/mesh.md)."),
    ] = None,
    reruns: Annotated[
        int, typer.Option("--reruns", metavar="N", min=1, help="Most tries on the same inputs.")
    ] = 3,
    anchors: AnchorsFile = ANCHORS,
    run: RunName = None,
    store: StoreUrl = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    form: ReportFormat = Format.TEXT,
) -> None:
    """Recover what does not hold, and nothing else."""
    from backstop.cli.meshing import apply as told

    def tell(line: str) -> None:
        typer.echo(line, err=True)

    where = _where(None, anchors, run, store, config, agent)
    _end(told(where, named=named, bound=reruns, form=form, tell=tell))
