"""Time is an argument: only backstop/clock.py reads the real one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.source import ROOT, python_files, uses

CLOCK = ROOT / "backstop" / "clock.py"
PLACES = ("backstop", "examples", "tests", "benchmarks", "entrypoint.py")

NEVER = {
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
    "time.time",
    "time.time_ns",
    "time.clock_gettime",
    "time.clock_gettime_ns",
    "datetime.*",
    "time.*",
}
# Each converts the instant it is given, and reads the clock when it is given none: how many
# arguments it needs. A mention that is no call may be called without one later.
NEEDS_ARGUMENTS = {
    "time.localtime": 1,
    "time.gmtime": 1,
    "time.ctime": 1,
    "time.asctime": 1,
    "time.strftime": 2,
}


def readings(text: str | bytes) -> list[str]:
    """Where a module reads the real time, as `line: name`."""
    found: list[str] = []
    for use in uses(text):
        needed = NEEDS_ARGUMENTS.get(use.name)
        idle = needed is not None and use.call is not None and len(use.call.args) < needed
        if use.name in NEVER or idle:
            found.append(f"{use.line}: {use.name}")
    return found


def stands_for_user_code(path: Path) -> bool:
    """Fixture agents do what users' agents do, and replay has to freeze it."""
    parts = path.relative_to(ROOT).parts
    return parts[0] == "tests" and "agents" in parts


def test_nothing_but_the_clock_reads_the_real_time() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{reading}"
        for path in python_files(*PLACES)
        if path != CLOCK and not stands_for_user_code(path)
        for reading in readings(path.read_bytes())
    ]
    assert found == []


def test_the_clock_itself_is_seen_to_read_it() -> None:
    assert readings(CLOCK.read_bytes())


@pytest.mark.parametrize(
    "text",
    [
        "import datetime\ndatetime.datetime.now()",
        "import datetime as dt\ndt.datetime.utcnow()",
        "from datetime import datetime\ndatetime.now(None)",
        "from datetime import datetime as D\nD.today()",
        "from datetime import date\nstamp = date.today",
        "import datetime\nD = datetime.datetime\nE = D\nE.now()",
        "from datetime import datetime\nfield(default_factory=datetime.now)",
        "from datetime import datetime\ngetattr(datetime, 'now')()",
        "import time\ntime.time()",
        "import time as t\nread = t.time_ns",
        "from time import time",
        "from time import time as now",
        "from time import *",
        "import time\ntime.localtime()",
        "from time import gmtime as g\ng()",
        "import time\ntime.strftime('%Y')",
        "def f():\n    import time\n    return time.time()",
    ],
)
def test_every_spelling_of_a_reading_is_caught(text: str) -> None:
    assert readings(text)


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.perf_counter()",
        "import time\ntime.monotonic(); time.process_time()",
        "import time\ntime.gmtime(0)",
        "import time\ntime.strftime('%Y', stamp)",
        "from backstop import clock\nclock.now()",
        "from datetime import datetime\ndatetime.fromisoformat(text)",
        "def f(clock, datetime):\n    return clock.time(), datetime.now()",
    ],
)
def test_what_reads_no_calendar_is_let_through(text: str) -> None:
    assert readings(text) == []
