"""The models that candidates may ask, by the base's word, and the cassette of their answers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from backstop.adapters.cassette import Cassette
from backstop.adapters.files import read_bytes
from backstop.adapters.gemini import GeminiBroker, missing_key
from backstop.config import Live
from backstop.core.cassette import CassetteFault, digest_of, read
from backstop.core.ledgerfile import Ledger
from backstop.gate.request import ReplayRequest
from backstop.replay.broker import Broker
from backstop.wiring.checkouts import inside
from backstop.wiring.jobs import Job

_OFFLINE: Final = "the cassette has no answer to this request, and no model was to be asked"


class Models:
    """Brokers by agent, one for all replays of it. `remarks` say what was really asked."""

    def __init__(self, request: ReplayRequest, environ: Mapping[str, str]) -> None:
        self._offline = request.offline
        self._environ = environ
        self._cassette = Cassette.at(request.cassette, is_read_only=request.offline)
        self._path = request.cassette
        self._open: list[GeminiBroker] = []
        self._brokers: dict[str, Broker] = {}

    def of(self, job: Job, ledger: Ledger) -> Broker | None:
        """Who answers the agent's candidate; None where its model may not be asked.

        Raises `CassetteFault` (``cassette-foreign``), and `MissingExtra`.
        """
        live = job.live
        if live is None:
            return None
        name = job.agent.name
        if name not in self._brokers:
            why = _OFFLINE if self._offline else missing_key(self._environ)
            self._brokers[name] = Broker(
                name,
                live.limits,
                None if why else self._asking(live),
                unasked=why,
                kept=self._cassette.of(name, ledger.digest),
                keep=self._cassette.keep,
            )
        return self._brokers[name]

    @property
    def remarks(self) -> list[str]:
        """What was asked now, which the verdict does not tell: it says what all answers cost."""
        found = [
            f"{name}: its model was asked {broker.asked:,} times, {broker.use.calls:,} answered "
            "calls are behind the verdict"
            for name, broker in sorted(self._brokers.items())
            if broker.use.calls
        ]
        if self._path is not None and not self._brokers:
            found.append("--cassette: no agent's model may be asked (`model.live`): not used")
        return found

    def notes(self, job: Job) -> tuple[str, ...]:
        """What a verdict says of answers in the checkout that is judged beside a base (D1).

        It says so as well where they were asked for just now: what is told from a cassette is
        told as it was the first time.
        """
        broker, (top, base) = self._brokers.get(job.agent.name), job.tops
        if broker is None or self._path is None or top is None or job.base_config is None:
            return ()
        place = inside(self._path, top)
        given = [answer for answer in broker.used if not answer.why]
        theirs = _answers_at(None if base is None or place is None else base / place)
        own = sum(digest_of([answer]) not in theirs for answer in given)
        if place is None or not own:
            return ()
        told = (
            f"{own:,} of the {len(given):,} answers of its live model are kept in {place}, in the "
            "checkout that is judged, and not in the base's: whoever wrote the change may have "
            "written them; keep them outside of it"
        )
        return (told,)

    def _asking(self, live: Live) -> GeminiBroker:
        broker = GeminiBroker(
            self._environ,
            base_url=live.base_url,
            timeout_s=live.timeout_s,
            wait=time.sleep,
            now=time.monotonic,
        )
        self._open.append(broker)
        return broker

    def close(self) -> None:
        """Write the cassette, also of what was interrupted, and close all connections."""
        try:
            self._cassette.save()
        finally:
            for broker in self._open:
                broker.close()


def _answers_at(path: Path | None) -> frozenset[str]:
    """Digests of the answers on a cassette, each by itself; none where there is no cassette."""
    if path is None or not path.is_file():
        return frozenset()
    with suppress(CassetteFault):
        recorded = read(read_bytes(path), name=str(path))
        return frozenset(digest_of([answer]) for answer in recorded.answers)
    return frozenset()


@contextmanager
def models_of(request: ReplayRequest) -> Iterator[Models]:
    """The models of a request, by our own environment; closed in the end, however that comes.

    Raises `CassetteFault` and what reading the cassette raises.
    """
    models = Models(request, os.environ if request.environ is None else request.environ)
    try:
        yield models
    finally:
        models.close()
