"""The commands and their options. Each loads what it needs when it runs, so help is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backstop.cli.accepting import baseline, waive
from backstop.cli.options import (
    CONFIG_FILE,
    AgentName,
    AllowEmpty,
    Base,
    CacheDir,
    Candidate,
    ChangedOnly,
    ConfigFile,
    Epoch,
    FailOn,
    Format,
    HighWater,
    LedgerFile,
    MaybeConfigFile,
    OtherFile,
    Output,
    ReportFormat,
    RightAgent,
    RuntimeOption,
    SandboxOption,
    SignKey,
    StoreUrl,
    TrustedKeys,
)

app = typer.Typer(
    name="backstop",
    help=(
        "If this version of an agent ships: which of the last weeks' work would it redo, drop "
        "or change? Exit codes: 0 PASS, 1 BLOCK, 2 error, 3 INCONCLUSIVE."
    ),
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
ledger = typer.Typer(help="Verify, show, seal, pull, import and erase.", rich_markup_mode=None)
effects = typer.Typer(help="Effects that wait for a decision.", rich_markup_mode=None)
canon = typer.Typer(help="Canonical form and idempotency keys.", rich_markup_mode=None)
app.add_typer(ledger, name="ledger")
app.add_typer(effects, name="effects")
app.add_typer(canon, name="canon")
app.add_typer(baseline, name="baseline")


def _version(wanted: bool) -> None:  # noqa: FBT001  # the shape of a Typer callback
    if wanted:
        from backstop import __version__

        typer.echo(f"backstop {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """What holds for every command: nothing but --version."""


@app.command()
def gate(
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    candidate: Candidate = None,
    base: Base = None,
    sandbox: SandboxOption = None,
    runtime: RuntimeOption = None,
    fail_on: FailOn = None,
    allow_empty: AllowEmpty = False,
    changed_only: ChangedOnly = False,
    cache_dir: CacheDir = None,
    form: ReportFormat = Format.TEXT,
    output: Output = None,
) -> None:
    """Replay a version and decide: may it ship?"""
    from backstop.cli.gating import asked
    from backstop.cli.gating import gate as run

    request = asked(
        config=config,
        agent=agent,
        candidate=candidate,
        base=base,
        sandbox=sandbox,
        runtime=runtime,
    )
    raise typer.Exit(
        run(
            request,
            fail_on=fail_on,
            allow_empty=allow_empty,
            changed_only=changed_only,
            cache_dir=cache_dir,
            form=form,
            output=output,
        )
    )


@app.command()
def replay(
    out: Annotated[Path, typer.Option("--out", help="Where to write the intents.")],
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    candidate: Candidate = None,
    base: Base = None,
    sandbox: SandboxOption = None,
    runtime: RuntimeOption = None,
) -> None:
    """Replay a version; write down what it asks for."""
    from backstop.cli.gating import asked
    from backstop.cli.gating import replay as run

    request = asked(
        config=config,
        agent=agent,
        candidate=candidate,
        base=base,
        sandbox=sandbox,
        runtime=runtime,
    )
    typer.echo(run(request, out=out))


@app.command()
def diff(
    baseline: Annotated[Path, typer.Argument(metavar="BASELINE", help="A ledger.")],
    candidate: Annotated[
        Path,
        typer.Argument(metavar="CANDIDATE", help="Intents of a replay, or another ledger."),
    ],
    config: MaybeConfigFile = None,
    agent: AgentName = None,
    fail_on: FailOn = None,
    allow_empty: AllowEmpty = False,
    form: ReportFormat = Format.TEXT,
    output: Output = None,
) -> None:
    """Compare two files; nothing is replayed."""
    from backstop.cli.diffing import diff as run

    raise typer.Exit(
        run(
            baseline,
            candidate,
            config=config,
            agent=agent,
            fail_on=fail_on,
            allow_empty=allow_empty,
            form=form,
            output=output,
        )
    )


app.command()(waive)


@app.command()
def selftest() -> None:
    """Plant one divergence of each kind and find it."""
    from backstop.cli.selftest import selftest as run

    typer.echo(run())


@app.command()
def worker(
    subscription: Annotated[
        str, typer.Argument(metavar="SUBSCRIPTION", help="projects/PROJECT/subscriptions/NAME")
    ],
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    store: StoreUrl = None,
    at_once: Annotated[int, typer.Option("--at-once", help="Messages at a time.")] = 1,
) -> None:
    """Run an agent's steps as Pub/Sub brings them."""
    from backstop.cli.working import worker as run

    run(subscription, config=config, agent=agent, store=store, at_once=at_once)


@app.command()
def doctor(
    live: Annotated[
        str,
        typer.Option("--live", metavar="URL|DIR", help="A running server, or an agent's folder."),
    ],
    name: Annotated[str | None, typer.Option("--app", help="Only this app of the server.")] = None,
    config: MaybeConfigFile = None,
) -> None:
    """Prove that the guard is loaded; asks no model, runs no tool."""
    from backstop.cli.doctor import doctor as run

    raise typer.Exit(run(live, app=name, config=config))


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
    run: Annotated[str | None, typer.Option("--run", help="Only this run.")] = None,
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
    out: Annotated[Path, typer.Option("--out", help="Where to write the ledger.")],
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
        typer.Option(
            "--from",
            metavar="KIND",
            help="chat, adk-session, evalset, conformance, anthropic or otlp.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Where to write the ledger.")],
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="FIELD=VALUE", help="Take only what has this value."),
    ] = None,
    run_field: Annotated[
        str | None, typer.Option("--run-field", help="The field that names a run.")
    ] = None,
    at: Annotated[
        str, typer.Option("--at", help="When each run begins, if the record does not say.")
    ] = "1970-01-01T00:00:00Z",
) -> None:
    """Make a ledger of a record made elsewhere."""
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


@effects.command(name="list")
def list_(
    in_doubt: Annotated[
        bool, typer.Option("--in-doubt", help="Only what may or may not have happened.")
    ] = False,
    store: StoreUrl = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    form: ReportFormat = Format.TEXT,
) -> None:
    """List what is not decided, and who has it."""
    from backstop.cli.effects import list_effects as run
    from backstop.cli.stores import place
    from backstop.cli.streams import print_lines

    where = place(store=store, config=config, agent=agent)
    print_lines([run(where, in_doubt=in_doubt, form=form).removesuffix("\n")])


@effects.command()
def resolve(
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="The effect's key; its first 6 will do.")
    ],
    committed: Annotated[
        str | None,
        typer.Option("--committed", metavar="RESULT", help="It happened, and gave this JSON."),
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="It did not happen, and shall not.")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="It did not happen, and shall.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the ledger.")] = "",
    by: Annotated[str | None, typer.Option("--by", help="Who says so; else your user.")] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Retry although it may still be going on.")
    ] = False,
    store: StoreUrl = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
) -> None:
    """Say what became of an effect that is in doubt."""
    from backstop.cli.effects import resolve as run
    from backstop.cli.effects import word
    from backstop.cli.stores import place

    said = word(committed=committed, failed=failed, retry=retry, reason=reason, by=by, force=force)
    typer.echo(run(place(store=store, config=config, agent=agent), key, said))


@canon.command()
def key(
    tool: Annotated[str, typer.Option("--tool", help="The tool's name.")],
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="Its arguments.")],
    config: MaybeConfigFile = None,
    agent: AgentName = None,
    run: Annotated[str, typer.Option("--run", help="The run that scopes the key.")] = "",
    step: Annotated[str, typer.Option("--step", help="The step that scopes the key.")] = "",
) -> None:
    """Print the key of a call, or why it has none."""
    from backstop.cli.keys import key as describe

    typer.echo(describe(tool, args, config=config, agent=agent, run=run, step=step))
