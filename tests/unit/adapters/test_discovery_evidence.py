"""What a tool's code does, read from its tree: what acts is found, what cannot be seen is said."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from backstop.adapters.discovery.evidence import evidence_of
from backstop.adapters.discovery.sources import read
from backstop.core.proposing import Evidence


def evidence(folder: Path, source: str, **others: str) -> Evidence:
    (folder / "agent.py").write_text(textwrap.dedent(source))
    for name, text in others.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    sources = read(folder)
    return evidence_of(sources.at("agent.py:tool"), sources)


READS = (
    "return requests.get(url, timeout=3).json()",
    "return {'at': datetime.now().isoformat(), 'n': len(url.split('/'))}",
    "rows = []\n    rows.append(url)\n    return rows",
    "found = {'items': []}\n    found['items'].append(url)\n    return found",
    "ctx.state['seen'] = url\n    return ctx.state.get('seen')",
    "ctx.state['all'].append(url)",
    "with open('prices.csv') as file:\n        return file.read()",
    "return db.execute('SELECT * FROM t WHERE id = ?', (url,)).fetchall()",
    "return client.get_customer(url)",
    "log.info('asked %s', url)\n    print(url)",
    "return [helper(one) for one in url.split(',')]",
    "return sorted(map(helper, url), key=helper)",
    "return requests.request('GET', url)",
    "return Point(url).shown()",
    "if not url:\n        raise ValueError('none')\n    return json.loads(url)",
    "answer = json.loads(url)\n    answer['a']['b'] = 1\n    return answer",
    "return sorted(url, key=lambda one: one.lower())",
    "return urllib.request.urlopen(url).read()",
    "state = ctx.state\n    state['seen'] = url\n    state.setdefault('all', []).append(url)",
    "held = ctx.state.get('held', []) or []\n    held.append(url)",
    "for one in url:\n        ctx.state['seen'] = one",
    "dice = random.Random(7)\n    dice.shuffle(url)\n    return dice.randint(1, 6)",
    "hashed = hashlib.sha256()\n    hashed.update(url)\n    return hashed.hexdigest()",
    "try:\n        return Point(url)\n    except ValueError as e:\n        return e.errors()",
    "conn = sqlite3.connect('a.db')\n    conn.close()",
    "log.info('x')\n    resp = requests.get(url)\n    resp.close()",
)
ACTS = (
    "requests.post(url)",
    "return requests.request(method, url)",
    "http.delete(url)",
    "smtplib.SMTP('host').sendmail('a', 'b', 'c')",
    "subprocess.run([url])",
    "os.remove(url)",
    "open(url, 'w').write('x')",
    "Path(url).write_text('x')",
    "with open(url, mode='a') as file:\n        return file",
    "db.execute('UPDATE t SET a = 1')",
    "db.execute('WITH gone AS (DELETE FROM t RETURNING 1) SELECT 1')",
    "TABLE[url] = 1",
    "TABLE[url]['a'] = 1",
    "TABLE.pop(url)",
    "order = TABLE.get(url)\n    order['status'] = 'x'",
    "rows = list(TABLE.values())\n    rows[0]['status'] = 'x'",
    "global COUNT\n    COUNT = 1",
    "url.status = 'gone'",
    "del TABLE[url]",
    "for TABLE[url] in range(2):\n        pass",
    "eval(url)",
    "urllib.request.urlopen(url, data=b'x')",
    "client.send_message(url)",
    "return acting(url)",
    "return list(map(acting, [url]))",
    "Point(url).persist()",
    "a, TABLE[url] = 1, 2",
    "TABLE[url] += 1",
    "send(url)",
    "return client.stream('POST', url)",
    "return handlers.scalar('DELETE FROM t RETURNING a')",
    "return list(itertools.starmap(requests.post, [url]))",
    "return Heir(url)",
    "with Heir(url):\n        pass",
    "state = TABLE\n    state['seen'] = url",
    "state = ctx.state\n    state = TABLE\n    state['seen'] = url",
    "held = ctx.state.get('held', TABLE)\n    held[url] = 1",
    "held = ctx.state.get('held') or TABLE\n    held[url] = 1",
    "account.close()",
    "conn.close(force=True)",
)
UNKNOWN = (
    "handlers.index(index='orders', document=url)",
    "handlers.resolve()",
    "return url(1)",
    "return handlers[url]()",
    "return getattr(client, url)()",
    "return unseen_thing(url)",
    "return db.execute(f'SELECT {url}')",
    "return open(url, mode)",
    "return open(**url)",
    "return crm.whatever(url)",
    "return vendor.charts.paint(url)",
    "return Odd(url)",
    "fetch = url\n    return fetch()",
    "dice = random.Random(7)\n    dice = url\n    dice.shuffle(TABLE)",
    "try:\n        return 1\n    except ValueError as e:\n        return e.resolve()",
    "try:\n        return 1\n    except OSError as e:\n        pass\n    e = url\n    e.errors()",
)
HEAD = """\
    import hashlib, itertools, random, sqlite3
    import json, logging, os, requests, smtplib, subprocess, urllib.request, vendor.charts
    from datetime import datetime
    from pathlib import Path
    from crm import account, conn, db, client, http, crm, unseen_thing, send

    TABLE, COUNT, method, mode, handlers = {}, 0, "GET", "r", {}
    log = logging.getLogger(__name__)

    class Point:
        def __init__(self, at):
            self.at = at
        def shown(self):
            return {"at": self.at}
        def persist(self):
            requests.put(self.at)

    class Parent:
        def __enter__(self):
            requests.put("x")

    class Heir(Parent):
        pass

    class Odd(vendor.Thing):
        pass

    def helper(one):
        return one.strip()

    def acting(one):
        return deeper(one)

    def deeper(one):
        requests.put(one)

"""


def tool(body: str) -> str:
    return textwrap.dedent(HEAD) + f"def tool(url, ctx):\n    '''Reads.'''\n    {body}\n"


@pytest.mark.parametrize("body", READS)
def test_what_only_asks_is_seen_whole(body: str, tmp_path: Path) -> None:
    found = evidence(tmp_path, tool(body))
    assert (found.is_whole, found.acts, found.unknown) == (True, (), ())


@pytest.mark.parametrize("body", ACTS)
def test_what_acts_is_told_with_its_place(body: str, tmp_path: Path) -> None:
    found = evidence(tmp_path, tool(body))
    assert found.acts
    assert found.acts[0].startswith("agent.py:")


@pytest.mark.parametrize("body", UNKNOWN)
def test_what_cannot_be_seen_is_told_as_unknown(body: str, tmp_path: Path) -> None:
    found = evidence(tmp_path, tool(body))
    assert found.acts or found.unknown


def test_a_helper_in_another_file_is_read_too(tmp_path: Path) -> None:
    source = "from .mailing import look\ndef tool(url):\n    return look(url)\n"
    clean = evidence(tmp_path, source, mailing="def look(url):\n    return url.lower()\n")
    assert (clean.acts, clean.unknown) == ((), ())
    acts = evidence(tmp_path, source, mailing="import os\ndef look(url):\n    os.system(url)\n")
    assert acts.acts == ("mailing.py:3 calls os.system",)


def test_a_method_of_an_object_is_judged_by_its_name_and_by_code_of_that_name(
    tmp_path: Path,
) -> None:
    source = """\
        class Desk:
            def look(self, url):
                url.send(url)
            def send(self, url):
                return url
        def tool(url, desk):
            return desk.look(url)
        """
    assert evidence(tmp_path, source).acts == ("agent.py:3 calls url.send",)


def test_a_method_of_its_own_class_is_judged_by_its_code_whatever_it_is_called(
    tmp_path: Path,
) -> None:
    source = """\
        import requests
        class Base:
            def _make_key(self, url):
                return url.lower()
        class Other:
            def _make_key(self, url):
                requests.post(url)
        class Desk(Base):
            def look(self, url):
                return self._make_key(url)
        def tool(url, desk):
            return desk.look(url)
        """
    clean = evidence(tmp_path, source)
    assert (clean.acts, clean.unknown) == ((), ())
    inherited = source.replace("class Other:", "class Heir(Desk):")
    assert evidence(tmp_path, inherited).acts == ("agent.py:7 calls requests.post",)
    foreign = source.replace("class Desk(Base):", "class Desk(vendor.Thing):")
    assert evidence(tmp_path, foreign).acts


@pytest.mark.parametrize(
    ("annotation", "acts"),
    [
        ("ToolContext", False),
        ("'adk.ToolContext'", False),
        ("ToolContext | None", False),
        ("Optional[tools.ToolContext]", False),
        ("Database", True),
    ],
)
def test_the_sessions_state_is_known_by_the_type_of_the_argument_that_holds_it(
    annotation: str, acts: bool, tmp_path: Path
) -> None:
    source = f"def tool(url, tc: {annotation}):\n    tc.state['seen'] = url\n"
    assert bool(evidence(tmp_path, source).acts) is acts
    source = source.replace("tc", "ctx")
    assert bool(evidence(tmp_path, source).acts) is acts


def test_a_decorator_that_is_not_known_may_do_anything(tmp_path: Path) -> None:
    assert evidence(tmp_path, "@metered('x')\ndef tool(url):\n    return url\n").unknown
    known = "@functools.lru_cache(3)\ndef tool(url):\n    return url\n"
    assert not evidence(tmp_path, known).unknown


def test_code_that_calls_itself_comes_to_an_end(tmp_path: Path) -> None:
    found = evidence(tmp_path, "def tool(url):\n    return tool(url[1:])\n")
    assert (found.acts, found.unknown) == ((), ())


def test_calls_without_end_are_unknown(tmp_path: Path) -> None:
    chain = "".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(20))
    found = evidence(tmp_path, f"def tool(url):\n    return f0(url)\n{chain}")
    assert found.unknown


def test_a_tool_whose_code_is_not_there_proves_nothing(tmp_path: Path) -> None:
    sources = read(tmp_path)
    assert sources.at("agent.py:tool") is None
    assert not evidence_of(None, sources).is_whole
