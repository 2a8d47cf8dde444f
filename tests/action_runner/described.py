"""A fake GitHub behind GitHub's own description of its API.

A proxy answers 422 to a request that the description does not know, and 500 where the fake's
answer is another than described. Archives go past it: it would follow their redirect itself.
"""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from tests.contract.github.installed import validating
from tests.github.fake import FakeGitHub
from tests.github.serving import Answer, Asked, serving

_OF_A_CONNECTION: Final = frozenset({"connection", "content-length", "transfer-encoding", "host"})
_WAIT_S: Final = 60.0


@contextmanager
def described(fake: FakeGitHub, description: str = "api.github.com") -> Iterator[str]:
    """The address of `fake` behind the description of that name."""
    with validating(fake.url, description) as proxy:

        def answer(asked: Asked) -> Answer:
            return fake.answer(asked) if "/tarball/" in asked.path else _passed_on(asked, proxy)

        with serving(answer, "127.0.0.1") as url:
            yield url


def _passed_on(asked: Asked, proxy: str) -> Answer:
    there = urlsplit(proxy)
    connection = http.client.HTTPConnection(there.hostname or "", there.port, timeout=_WAIT_S)
    try:
        query = f"?{asked.raw_query}" if asked.raw_query else ""
        headers = {name: v for name, v in asked.headers.items() if name not in _OF_A_CONNECTION}
        connection.request(asked.method, f"{asked.path}{query}", asked.body or None, headers)
        told = connection.getresponse()
        kept = {n.lower(): v for n, v in told.getheaders() if n.lower() not in _OF_A_CONNECTION}
        return Answer(told.status, kept, told.read())
    finally:
        connection.close()
