"""Credentials that are none, for agents that look Google's up while they are imported."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
_NONE: Final = {
    "type": "authorized_user",
    "client_id": "none",
    "client_secret": "none",
    "refresh_token": "none",
}


def lend(scratch: Path) -> None:
    """Have Google's library find credentials that nobody ever accepts, unless some are named.

    Where it runs an agent has some, and many an agent looks for them before anything else.
    Without, the library would ask the machine's own service for them, which a replay bars, and
    the import would end there. Their project is not known either: a variable says that.
    """
    if VARIABLE in os.environ:
        return
    place = scratch / "no-credentials.json"
    place.write_text(json.dumps(_NONE))
    os.environ[VARIABLE] = str(place)
