"""What a tool does by ways that name no call: each way is an effect, and each has a read beside it.

A tool that nobody can see through must not be called a read; and were everything an effect, nobody
would be helped. So every kind stands here in pairs.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from backstop.adapters.discovery.evidence import evidence_of
from backstop.adapters.discovery.sources import read
from backstop.core.proposing import Evidence, Seen, propose

HEAD = """
import asyncio, bisect, contextlib, functools, heapq, itertools, json, operator, random, sys
import os, requests, smtplib, threading
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
import sqlalchemy as sa
from sqlalchemy import select, text
from vendor import Base as VendorBase, conn, db, registry, service, session, show
from . import queries
from .queries import CANCEL, FIND, TOUCH, STORE, SHELF

READ = "SELECT a, b FROM orders WHERE id = ?"
WRITE = "UPDATE orders SET status = 'gone' WHERE id = ?"
DROP = "DROP TABLE orders"
QUEUE, IDS, OUT = [], itertools.count(), open

def look(url):
    return url.lower()

def post(url):
    requests.post(url)

class Order:
    def __init__(self, url):
        self.url = url
    @property
    def total(self):
        return len(self.url)
    @property
    def receipt(self):
        return requests.post(self.url)
    @cached_property
    def ticket(self):
        post(self.url)
    def __lt__(self, other):
        return self.url < other.url

class Row:
    pass

@contextlib.contextmanager
def reading():
    yield conn

@registry.wrapped
def wrapped(url):
    return url

@registry.wrapped
class Wrapped:
    def __init__(self, url):
        self.url = url

class Mixed(VendorBase):
    def __init__(self, url):
        self.url = url

class Deeper(Mixed):
    pass

class Sent(metaclass=VendorBase):
    pass
"""
QUERIES = """
import requests
CANCEL = "DELETE FROM orders WHERE id = ?"
FIND = "SELECT * FROM orders WHERE id = ?"
TOUCH = "SELECT close_order(id) FROM orders"

class Store:
    def __getitem__(self, url):
        return requests.put(url)
    def find(self, url):
        return url

class Shelf:
    def __getitem__(self, url):
        return url

STORE, SHELF = Store(), Shelf()
"""

KINDS = {
    "statement in a module's constant": (
        ["session.scalar(WRITE)", "db.execute(WRITE, (url,))", "conn.fetchval(DROP)"],
        ["session.scalar(READ)", "db.execute(READ, (url,)).fetchall()", "conn.fetchval(READ)"],
    ),
    "statement in another module's constant": (
        ["session.scalar(CANCEL)", "session.scalars(queries.CANCEL)", "conn.fetch(CANCEL)"],
        ["session.scalar(FIND)", "session.scalars(queries.FIND)", "conn.fetch(FIND)"],
    ),
    "statement in a local name": (
        ["q = 'DELETE FROM t'\nsession.scalar(q)", "q = READ\nq += WRITE\nsession.scalar(q)"],
        ["q = 'SELECT a FROM t'\nsession.scalar(q)", "q = text(READ)\nsession.execute(q)"],
    ),
    "statement that is put together": (
        [
            "session.scalar(f'SELECT {url}')",
            "session.scalar('SELECT ' + url)",
            "conn.fetch(f'SELECT * FROM {url}')",
            "session.scalar(sql=url)",
        ],
        ["session.scalar('SELECT a ' + 'FROM t')", "session.scalar(text(f'{READ} LIMIT 1'))"],
    ),
    "statement that nobody can see": (
        [
            "session.scalar(url)",
            "session.execute(queries.GONE)",
            "conn.fetch_all(query)",
            "session.execute(**url)",
            "session.execute(*url)",
        ],
        [
            "session.scalars(select(Row).where(Row.id == url)).all()",
            "db.query(Row).filter(url)",
            "stmt = select(Row)\nif url:\n    stmt = stmt.limit(3)\nsession.scalars(stmt).all()",
        ],
    ),
    "statement that is built": (
        ["session.execute(sa.delete(Row))", "stmt = sa.update(Row)\nsession.scalars(stmt)"],
        ["session.execute(sa.select(Row)).scalars().all()", "session.scalar(select(Row.id))"],
    ),
    "function called by a statement": (
        [
            "session.scalar('SELECT close_order(7)')",
            "session.scalar(TOUCH)",
            "db.execute(\"SELECT nextval('ids')\")",
            "return run('SELECT close_order(7)')",
        ],
        [
            "session.scalar('SELECT count(*), max(a) FROM t WHERE b IN (1, 2)')",
            "db.execute('WITH r (a) AS (SELECT 1) SELECT coalesce(a, 0) FROM r')",
            "db.execute(\"SELECT replace(a, 'x', 'y'), row_number() OVER (ORDER BY a) FROM t\")",
            "db.execute(\"SELECT a FROM t WHERE b = 'please update(it)'\")",
        ],
    ),
    "further statement behind the first": (
        [
            "db.execute('SELECT 1; VACUUM')",
            "db.execute('PRAGMA user_version = 7')",
            "db.execute('SELECT a FROM t FOR UPDATE')",
            "db.execute('-- a\\nDELETE FROM t')",
            r"db.execute('SELECT \'a\\\'b\' ; DELETE FROM t WHERE \'c\'')",
        ],
        [
            "db.execute('SELECT 1;')",
            "db.execute('PRAGMA table_info(t)')",
            "db.execute('/* a */ SELECT a FROM t -- update')",
        ],
    ),
    "function handed to what calls it": (
        [
            "ThreadPoolExecutor().submit(post, url)",
            "asyncio.to_thread(post, url)",
            "partial(post, url)",
            "loop.run_in_executor(None, post, url)",
            "threading.Thread(target=post, args=(url,))",
            "service.get(url, callback=post)",
            "asyncio.to_thread(requests.post, url)",
            "partial(requests.delete, url)",
            "pool.submit(requests.post, url)",
            "pool.submit(url)",
            "form.submit('a')",
            "asyncio.to_thread(url)",
            "asyncio.to_thread(show.it, url)",
        ],
        [
            "asyncio.to_thread(look, url)",
            "return partial(look, url)",
            "asyncio.to_thread(requests.get, url)",
            "asyncio.to_thread(open, url)",
            "with ThreadPoolExecutor() as pool:\n    pool.submit(look, url)",
            "asyncio.get_running_loop().run_in_executor(None, look, url)",
            "sorted(url, key=operator.itemgetter('a'))",
            "service.get(url, callback=look)",
        ],
    ),
    "function handed to anything": (
        [
            "service.get([post])",
            "service.get({'then': post})",
            "service.get(post if url else look)",
            "f = post\nreturn service.get(f)",
            "return {'go': post}",
            "service.get(os.remove)",
        ],
        [
            "service.get([look])",
            "service.get({'then': look})",
            "f = look\nreturn service.get(f)",
            "service.get(os.environ)",
            "service.get(os.sep, timeout=requests.codes)",
        ],
    ),
    "property that acts": (
        ["return Order(url).receipt", "order = Order(url)\nreturn order.ticket"],
        ["return Order(url).total", "order = Order(url)\nreturn order.url"],
    ),
    "operator of an object that a module keeps": (
        ["return STORE[url]", "return queries.STORE[url]"],
        ["return SHELF[url]", "return queries.SHELF[url]"],
    ),
    "decorator that nobody knows": (
        ["return wrapped(url)", "@registry.wrapped\ndef inner():\n    pass", "return Wrapped(url)"],
        ["with reading() as it:\n    return it.get(url)", "return Order(url).url"],
    ),
    "class that inherits what nobody can see": (
        ["return Mixed(url)", "return Deeper(url)", "return Sent()"],
        ["return Order(url)", "return sorted([Order(url)])"],
    ),
    "function that fills what it is given": (
        [
            "heapq.heappush(QUEUE, url)",
            "bisect.insort(QUEUE, url)",
            "random.shuffle(QUEUE)",
            "return next(IDS)",
            "json.dump(url, OUT)",
            "print(url, file=OUT)",
        ],
        [
            "rows = []\nheapq.heappush(rows, url)\nreturn rows",
            "return next(iter(url))",
            "print(url, file=sys.stderr)",
            "return next((one for one in url), None)",
        ],
    ),
    "name behind a word": (
        ["with open(url) as QUEUE.file:\n    pass", "with service.get(url) as QUEUE[0]:\n    pass"],
        ["with open(url) as file:\n    return file.read()"],
    ),
}
ACTING = [(kind, body) for kind, (acting, _) in KINDS.items() for body in acting]
READING = [(kind, body) for kind, (_, reading) in KINDS.items() for body in reading]


def seen(body: str, folder: Path) -> Evidence:
    (folder / "agent.py").write_text(
        f"{HEAD}\ndef get_it(url, query):\n{textwrap.indent(body, '    ')}\n"
    )
    (folder / "queries.py").write_text(QUERIES)
    sources = read(folder)
    return evidence_of(sources.at("agent.py:get_it"), sources)


@pytest.mark.parametrize(("kind", "body"), ACTING)
def test_what_acts_without_a_call_of_its_name_is_an_effect_with_its_reason(
    kind: str, body: str, tmp_path: Path
) -> None:
    proposal = propose(Seen(name="get_it", evidence=seen(body, tmp_path)))
    assert proposal.effect, kind
    assert ".py:" in proposal.why


@pytest.mark.parametrize(("kind", "body"), READING)
def test_what_only_reads_in_the_same_way_stays_a_read(kind: str, body: str, tmp_path: Path) -> None:
    proposal = propose(Seen(name="get_it", evidence=seen(body, tmp_path)))
    assert not proposal.effect, f"{kind}: {proposal.why}"


def test_the_reason_for_what_is_long_ends_with_a_whole_word(tmp_path: Path) -> None:
    """A name that is cut in two names something else."""
    asked = "service.get(url, first_parameter_of_many=1, second_parameter_of_many=2)\nurl.fly()"
    (read_one,) = seen("long_name_of_a_client_that_has_many = service\n" + asked, tmp_path).reads
    assert read_one.endswith("calls service.get")
    deep = "service." + "and_then." * 8 + "launch(url)"
    (acts,) = seen(deep, tmp_path).acts
    assert acts.endswith("service.and_then.and_then.and_then.and_then.and_then.…")
