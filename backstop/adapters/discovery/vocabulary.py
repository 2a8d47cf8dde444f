"""What well-known calls do to the world, by their names."""

from __future__ import annotations

import ast
import builtins
import re
from enum import Enum, auto
from typing import Final

from backstop.core.proposing import acting_word, reading_word


class Deed(Enum):
    """What a call does: nothing outside, asks, acts, or nobody knows."""

    NOTHING = auto()
    READS = auto()
    ACTS = auto()
    UNKNOWN = auto()


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PURE_MODULES: Final = _set("""
    abc array asyncio.gather asyncio.sleep base64 bisect collections contextlib copy dataclasses
    datetime decimal difflib enum fractions functools google.genai.types hashlib heapq html
    inspect ipaddress itertools json logging math numbers operator os.environ.get os.getenv
    os.path os.urandom pprint pytz random re secrets statistics string textwrap time traceback
    types typing unicodedata urllib.parse uuid warnings zoneinfo
    """)
"""Modules, or single functions of theirs, that change nothing outside."""

_READING_CALLS: Final = _set("""
    csv.DictReader csv.reader glob.glob glob.iglob google.auth.default httpx.get httpx.head
    httpx.options os.listdir os.scandir os.stat os.walk psutil.boot_time psutil.cpu_count
    psutil.cpu_percent psutil.disk_usage psutil.swap_memory psutil.virtual_memory requests.get
    requests.head requests.options shutil.which
    """)
_NEUTRAL_CALLS: Final = _set("""
    aiohttp.ClientSession asyncio.Lock asyncio.Semaphore asyncio.as_completed
    asyncio.get_event_loop asyncio.get_running_loop asyncio.timeout asyncio.wait_for
    concurrent.futures.ThreadPoolExecutor concurrent.futures.as_completed httpx.AsyncClient
    httpx.Client httpx.Timeout io.BytesIO io.StringIO pathlib.Path pathlib.PurePath
    requests.Session sqlite3.connect urllib.request.Request
    """)
_ACTING_MODULES: Final = _set("""
    ftplib imaplib multiprocessing os poplib requests httpx shutil signal smtplib socket
    subprocess telnetlib urllib.request webbrowser xmlrpc
    """)

_ACTING_BUILTINS: Final = _set("exec eval compile __import__ input setattr delattr breakpoint")
_UNSEEN_BUILTINS: Final = _set("getattr globals locals vars")
_PURE_BUILTINS: Final = (
    frozenset(name for name in vars(builtins) if not name.startswith("_"))
    - _ACTING_BUILTINS
    - _UNSEEN_BUILTINS
    - {"open"}
)

_PURE_METHODS: Final = _set("""
    as_posix astimezone capitalize casefold center choice choices count date debug decode
    encode endswith error exception expandtabs find format fromisoformat group groups groupdict
    hexdigest digest index info isalnum isalpha isascii isdecimal isdigit isidentifier islower
    isnumeric isoformat isspace istitle isupper items join keys ljust lower lstrip match
    model_dump model_dump_json model_validate partition quantize removeprefix removesuffix replace
    rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strftime strip
    strptime timestamp title to_dict total_seconds translate union intersection difference upper
    values warning warn weekday zfill raise_for_status
    """)
_FILLING: Final = _set("""
    add append appendleft clear discard extend insert pop popitem popleft remove reverse setdefault
    sort update
    """)
"""Methods that change a container: nothing outside, if the container was made in the call."""

_READING_METHODS: Final = _set("""
    all download_as_bytes download_as_string download_as_text exists fetchall fetchmany fetchone
    first get head is_dir is_file iterdir json one one_or_none options read read_bytes read_text
    readline readlines scalar scalar_one scalar_one_or_none scalars select stat text where filter
    order_by limit fullmatch search findall finditer
    """)
_ACTING_METHODS: Final = _set("""
    begin bulk_insert commit executemany executescript flush patch post put sendall sendmail set
    touch unlink mkdir rmdir write writelines write_bytes write_text writerow writerows
    """)
_CLIENT: Final = re.compile(r"(?:[A-Z][A-Za-z0-9]*)?Client")
"""A class of somebody's service. To make one asks nobody; what is called on it counts."""


def deed_of_named(dotted: str, call: ast.Call) -> Deed:
    """What a function that is known by its whole name does."""
    if dotted in _PURE_BUILTINS:
        return Deed.NOTHING
    if dotted == "open" or dotted.endswith("io.open"):
        return _opening(call)
    if dotted in _ACTING_BUILTINS:
        return Deed.ACTS
    if dotted in {"requests.request", "httpx.request"}:
        return _by_method(call)
    if dotted == "urllib.request.urlopen":
        plain = len(call.args) == 1 and not any(key.arg in {"data", None} for key in call.keywords)
        return Deed.READS if plain else Deed.ACTS
    if dotted in _NEUTRAL_CALLS or _lies_in(dotted, _PURE_MODULES):
        return Deed.NOTHING
    if dotted in _READING_CALLS:
        return Deed.READS
    if _lies_in(dotted, _ACTING_MODULES):
        return Deed.ACTS
    if "." not in dotted:
        return Deed.UNKNOWN
    if _CLIENT.fullmatch(dotted.rpartition(".")[2]):
        return Deed.NOTHING
    deed = deed_of_method(dotted.rpartition(".")[2], call, fresh=False)
    # A text's `replace` changes nothing; a function of somebody's module may.
    return Deed.UNKNOWN if deed is Deed.NOTHING else deed


def deed_of_method(name: str, call: ast.Call, *, fresh: bool) -> Deed:
    """What a method does of which only the name is known; `fresh` objects were made in the call."""
    if name in _FILLING:
        return Deed.NOTHING if fresh else Deed.ACTS
    if name in {"request", "stream"}:
        return _by_method(call)
    if name == "index" and call.keywords:
        return Deed.UNKNOWN  # a text's takes none; a search engine's writes
    if name == "open":
        return _opening(call, mode_at=0)
    if name in _PURE_METHODS:
        return Deed.NOTHING
    if name in _ACTING_METHODS:
        return Deed.ACTS
    return Deed.READS if name in _READING_METHODS else _by_name(name)


def _by_name(name: str) -> Deed:
    """What somebody else's function does, if its name says so."""
    if acting_word(name):
        return Deed.ACTS
    return Deed.READS if reading_word(name) else Deed.UNKNOWN


def _lies_in(dotted: str, modules: frozenset[str]) -> bool:
    here = dotted
    while here:
        if here in modules:
            return True
        here = here.rpartition(".")[0]
    return False


def _by_method(call: ast.Call) -> Deed:
    given = _argument(call, 0, "method")
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return Deed.READS if given.value.upper() in {"GET", "HEAD", "OPTIONS"} else Deed.ACTS
    return Deed.ACTS


def _opening(call: ast.Call, *, mode_at: int = 1) -> Deed:
    mode = _argument(call, mode_at, "mode")
    if mode is None:
        return Deed.UNKNOWN if any(key.arg is None for key in call.keywords) else Deed.READS
    if isinstance(mode, ast.Constant) and isinstance(mode.value, str):
        return Deed.READS if not set(mode.value) & set("wax+") else Deed.ACTS
    return Deed.UNKNOWN


def _argument(call: ast.Call, at: int, name: str) -> ast.expr | None:
    if len(call.args) > at:
        return call.args[at]
    return next((key.value for key in call.keywords if key.arg == name), None)
