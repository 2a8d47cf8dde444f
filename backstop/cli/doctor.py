"""``backstop doctor``: what passes interception, and with ``--live`` whether the guard is there."""

from __future__ import annotations

import secrets
from pathlib import Path

import typer

from backstop.cli.options import CONFIG_FILE, Format, pairs
from backstop.errors import UsageError
from backstop.reports.escape import plain
from backstop.reports.escapes import document, table


def doctor(
    path: Path | None,
    *,
    agent: str | None,
    config: Path | None,
    python: str | None,
    env: list[str],
    form: Format,
) -> int:
    """Print what was found; 0 if nothing counts, 1 if something does, 2 if one does not load.

    Raises `BackstopError`.
    """
    from backstop.wiring.examining import Asked, examine, settled

    asked = settled(
        Asked(
            path=path,
            config=config or CONFIG_FILE,
            is_configured=config is not None,
            agent=agent,
            python=python,
            env=pairs(env, option="--env"),
        )
    )
    told = list(examine(asked))
    code = max(one.exit_code for one in told)
    used = shown(asked.config) if asked.is_configured else None
    if form is Format.JSON:
        typer.echo(document(told, config=used, exit_code=code), nl=False)
        return code
    if used is not None and path is not None and config is None:
        # Nobody named it, and it decides what the import finds.
        typer.echo(f"configuration: {plain(used)}")  # whole, however long: it is there to be copied
    typer.echo(table(told), nl=False)
    return code


def shown(file: Path) -> str:
    """A file by its name from here, if it lies below, else by its whole name."""
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)


def live(where: str, *, app: str | None, config: Path | None) -> int:
    """Print one line a check; 0 if all is well, else 1. Raises `BackstopError`."""
    from backstop.wiring.doctor import check_folder, check_server

    nonce = secrets.token_hex(16)
    checks = (
        check_server(where, app=app, nonce=nonce)
        if "://" in where
        else check_folder(Path(where), config=config, nonce=nonce)
    )
    code = 0
    for check in checks:
        word = "note" if check.note else "ok" if check.ok else "FAIL"
        typer.echo(f"{word:<5}{plain(check.what)}")
        code = max(code, 0 if check.ok else 1)
    return code


def alone(**options: object) -> None:
    """Refuse what means nothing beside ``--live``. Raises `UsageError`."""
    for name, value in options.items():
        if value:
            raise UsageError(f"--live does not go with {name}; leave one of the two out")
