"""``backstop doctor --live URL|DIR``."""

from __future__ import annotations

import secrets
from pathlib import Path

import typer

from backstop.reports.escape import plain
from backstop.wiring.doctor import check_folder, check_server


def doctor(live: str, *, app: str | None, config: Path | None) -> int:
    """Print one line a check; 0 if all is well, else 1. Raises `BackstopError`."""
    nonce = secrets.token_hex(16)
    checks = (
        check_server(live, app=app, nonce=nonce)
        if "://" in live
        else check_folder(Path(live), config=config, nonce=nonce)
    )
    code = 0
    for check in checks:
        word = "note" if check.note else "ok" if check.ok else "FAIL"
        typer.echo(f"{word:<5}{plain(check.what)}")
        code = max(code, 0 if check.ok else 1)
    return code
