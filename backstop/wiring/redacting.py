"""The redaction key of this process: from the environment, or from the file that it names."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from backstop.core.redaction import NoRedactionKey, RedactionKey, key_from

VARIABLE: Final = "BACKSTOP_REDACTION_KEY"
FILE_VARIABLE: Final = "BACKSTOP_REDACTION_KEY_FILE"


def redaction_key(environment: Mapping[str, str] = os.environ) -> RedactionKey | None:
    """The key that `environment` holds or names a file of; None if it does neither.

    Raises `NoRedactionKey` for a key that could be guessed, or a file that cannot be read.
    """
    if text := environment.get(VARIABLE):
        return key_from(text)
    if not (name := environment.get(FILE_VARIABLE)):
        return None
    try:
        text = Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        why = fault.strerror if isinstance(fault, OSError) else "it is not text"
        raise NoRedactionKey(
            f"{FILE_VARIABLE} names {name}, which cannot be read: {why}; correct one of the two"
        ) from None
    return key_from(text)
