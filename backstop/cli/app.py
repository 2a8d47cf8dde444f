"""The commands and their options. Each loads what it needs when it runs, so help is quick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backstop.cli.accepting import baseline, waive
from backstop.cli.ledger import ledger
from backstop.cli.mesh import mesh
from backstop.cli.options import (
    CONFIG_FILE,
    AgentName,
    AllowEmpty,
    Base,
    BasePython,
    CacheDir,
    Candidate,
    CandidatePython,
    CassetteFile,
    ChangedOnly,
    ConfigFile,
    FailOn,
    Format,
    MaybeConfigFile,
    NearConfigFile,
    Offline,
    Output,
    Repeat,
    ReportFormat,
    RuntimeOption,
    SandboxOption,
    StoreUrl,
)
from backstop.cli.report import report

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
effects = typer.Typer(help="Effects that wait for a decision.", rich_markup_mode=None)
canon = typer.Typer(help="Canonical form and idempotency keys.", rich_markup_mode=None)
app.add_typer(ledger, name="ledger")
app.add_typer(effects, name="effects")
app.add_typer(canon, name="canon")
app.add_typer(baseline, name="baseline")
app.add_typer(mesh, name="mesh")
app.add_typer(report, name="report")


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
def init(
    root: Annotated[
        Path, typer.Option("--root", metavar="FOLDER", help="Where to look, and to write.")
    ] = Path(),
    agent: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="AGENT", help="Only this agent, by name or folder."),
    ] = None,
    record: Annotated[
        tuple[str, str] | None,
        typer.Option("--import", metavar="KIND FILE|URL", help="Import a record for a ledger."),
    ] = None,
    diff: Annotated[bool, typer.Option("--diff", help="Show what would change.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over what is there.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing.")] = False,
    with_tests: Annotated[
        bool, typer.Option("--with-tests", help="Look in folders of tests too.")
    ] = False,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="PATH", help="The interpreter with the agents' packages."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="A variable that an import needs."),
    ] = None,
) -> None:
    """Find agents; propose and write their configuration."""
    from backstop.cli.init import init as run

    told = run(
        root=root,
        agents=agent or [],
        record=record,
        diff=diff,
        force=force,
        yes=yes,
        with_tests=with_tests,
        python=python,
        env=env or [],
    )
    for line in told:
        typer.echo(line)


@app.command()
def gate(
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    candidate: Candidate = None,
    base: Base = None,
    sandbox: SandboxOption = None,
    runtime: RuntimeOption = None,
    candidate_python: CandidatePython = None,
    base_python: BasePython = None,
    cassette: CassetteFile = None,
    offline: Offline = False,
    fail_on: FailOn = None,
    allow_empty: AllowEmpty = False,
    changed_only: ChangedOnly = False,
    repeat: Repeat = 1,
    cache_dir: CacheDir = None,
    form: ReportFormat = Format.TEXT,
    output: Output = None,
) -> None:
    """Replay a version and decide: may it ship?"""
    from backstop.cli.gating import Where, asked
    from backstop.cli.gating import gate as run

    request = asked(
        config=config,
        agent=agent,
        candidate=candidate,
        base=base,
        where=Where(sandbox, runtime, candidate_python, base_python),
        cassette=cassette,
        offline=offline,
    )
    raise typer.Exit(
        run(
            request,
            fail_on=fail_on,
            allow_empty=allow_empty,
            changed_only=changed_only,
            repeat=repeat,
            cache_dir=cache_dir,
            form=form,
            output=output,
        )
    )


@app.command()
def replay(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where to write the intents.")],
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
    candidate: Candidate = None,
    base: Base = None,
    sandbox: SandboxOption = None,
    runtime: RuntimeOption = None,
    candidate_python: CandidatePython = None,
    base_python: BasePython = None,
    cassette: CassetteFile = None,
    offline: Offline = False,
) -> None:
    """Replay a version; write down what it asks for."""
    from backstop.cli.gating import Where, asked
    from backstop.cli.gating import replay as run

    request = asked(
        config=config,
        agent=agent,
        candidate=candidate,
        base=base,
        where=Where(sandbox, runtime, candidate_python, base_python),
        cassette=cassette,
        offline=offline,
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
    at_once: Annotated[int, typer.Option("--at-once", metavar="N", help="Messages at a time.")] = 1,
) -> None:
    """Run an agent's steps as Pub/Sub brings them."""
    from backstop.cli.working import worker as run

    run(subscription, config=config, agent=agent, store=store, at_once=at_once)


@app.command()
def doctor(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="An agent's folder, or one above; else the config's."),
    ] = None,
    agent: AgentName = None,
    config: NearConfigFile = None,
    python: Annotated[
        str | None,
        typer.Option("--python", metavar="PATH", help="The interpreter with the agent's packages."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", metavar="NAME=VALUE", help="A variable that an import needs."),
    ] = None,
    form: ReportFormat = Format.TEXT,
    live: Annotated[
        str | None,
        typer.Option("--live", metavar="URL|DIR", help="Ask a server, or a folder, for the guard."),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--app", metavar="NAME", help="Only this app of the server.")
    ] = None,
) -> None:
    """Name what passes interception; prove the guard is loaded."""
    from backstop.cli import doctor as run

    if live is not None:
        run.alone(PATH=path, **{"--agent": agent, "--python": python, "--env": env})
        raise typer.Exit(run.live(live, app=name, config=config))
    raise typer.Exit(
        run.doctor(path, agent=agent, config=config, python=python, env=env or [], form=form)
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
    reason: Annotated[
        str, typer.Option("--reason", metavar="WHY", help="Why; kept in the ledger.")
    ] = "",
    by: Annotated[
        str | None, typer.Option("--by", metavar="WHO", help="Who says so; else your user.")
    ] = None,
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


@effects.command()
def trust(
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="The effect's key; its first 6 will do.")
    ],
    keep: Annotated[bool, typer.Option("--keep", help="It may stay as it is.")] = False,
    taken_back: Annotated[
        bool, typer.Option("--taken-back", help="It was taken back by hand.")
    ] = False,
    by: Annotated[
        str | None, typer.Option("--by", metavar="WHO", help="Who says so; else your user.")
    ] = None,
    store: StoreUrl = None,
    config: ConfigFile = CONFIG_FILE,
    agent: AgentName = None,
) -> None:
    """Say what is to become of an effect in which trust broke."""
    from backstop.cli.effects import trust as run
    from backstop.cli.stores import place

    where = place(store=store, config=config, agent=agent)
    typer.echo(run(where, key, keep=keep, taken_back=taken_back, by=by))


@canon.command()
def key(
    tool: Annotated[str, typer.Option("--tool", metavar="NAME", help="The tool's name.")],
    args: Annotated[str, typer.Option("--args", metavar="JSON", help="Its arguments.")],
    config: MaybeConfigFile = None,
    agent: AgentName = None,
    run: Annotated[
        str, typer.Option("--run", metavar="RUN", help="The run that scopes the key.")
    ] = "",
    step: Annotated[
        str, typer.Option("--step", metavar="STEP", help="The step that scopes the key.")
    ] = "",
) -> None:
    """Print the key of a call, or why it has none."""
    from backstop.cli.keys import key as describe

    typer.echo(describe(tool, args, config=config, agent=agent, run=run, step=step))
