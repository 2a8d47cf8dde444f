"""Reads what the harness says, believing nothing: strict JSON first, then the message."""

from __future__ import annotations

from typing import Final

import msgspec

from backstop.core.canon import NotCanonical, parse
from backstop.errors import WireError
from backstop.replay.wire import FromHarness

_DECODER: Final = msgspec.json.Decoder(FromHarness)
_SHOWN: Final = 80


def read_message(line: bytes) -> FromHarness:
    """The message of one line.

    Raises `WireError` for text that is not strict JSON (NaN, duplicate members, bad UTF-8,
    nesting beyond bounds) or not a message of the protocol.
    """
    try:
        parse(line)
        return _DECODER.decode(line)
    except NotCanonical as fault:
        raise WireError(f"the harness sent {fault}: {_start(line)}") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(f"the harness sent no message ({error}): {_start(line)}") from None


def _start(line: bytes) -> str:
    """The beginning of a line, safe to print."""
    text = ascii(line[:_SHOWN].decode("utf-8", "replace"))
    return text if len(line) <= _SHOWN else f"{text}..."
