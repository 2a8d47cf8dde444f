"""Another process on the same store: claims what it is told to, line by line.

``claim KEY`` answers with the kind of answer, ``commit KEY`` settles what it claimed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from backstop.adapters.sqlite.store import SqliteStore
from backstop.clock import SystemClock
from backstop.ports import Claim
from tests.contract.bench import AGENT, header
from tests.contract.deeds import committed, pay


def main() -> None:
    store = SqliteStore(Path(sys.argv[1]), agent=AGENT, header=header(), clock=SystemClock())
    owner = sys.argv[2]
    claims: dict[str, Claim] = {}
    print("ready", flush=True)  # noqa: T201 - a line to whoever drives it
    for line in sys.stdin:
        what, key = line.split()
        if what == "claim":
            answer = store.claim(pay(owner, key=key))
            if isinstance(answer, Claim):
                claims[key] = answer
            said = type(answer).__name__
        else:
            store.settle(committed(claims[key], msgspec.json.encode(owner)), claim=claims[key])
            said = "done"
        print(said, flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
