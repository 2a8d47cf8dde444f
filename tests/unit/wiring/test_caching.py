"""Replays that were kept: under a key that names all they depend on, believed by a seal alone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest

from backstop.adapters.scripted import ScriptedSandbox, effect, tool
from backstop.core.ledgerfile import Ledger, read
from backstop.core.sealing import seal_lines
from backstop.errors import ConfigError
from backstop.gate.request import GateRequest, ReplayRequest
from backstop.replay.service import Plan, replay
from backstop.wiring.caching import ReplayCache, Replays, cache_of
from backstop.wiring.jobs import configured, job_of
from backstop.wiring.replaying import Told
from tests.dsl import scenario

SECRET = "k" * 32
TODAY = date(2026, 3, 2)
CONFIG = "version: 1\nagents:\n  desk: {path: agents/desk}\nsandbox: {kind: %s}\n"
AGAIN = "desk: replays of an earlier gate, judged anew"
IGNORED = "desk: an entry of the cache is not ours, or was changed: ignored"

STORY = """
agent desk
tool pay identity vendor
run r1
step s1
commit pay{vendor: acme, amount: 1.50} -> {ok: true}
advance
close complete
"""


def paying(amount: float) -> Callable[..., Generator[Any, Any, None]]:
    """A candidate that pays once."""

    def script(step: Mapping[str, Any], state: dict[str, Any]) -> Generator[Any, Any, None]:
        yield effect("pay", vendor="acme", amount=amount)

    return script


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    """One run, one payment."""
    told = scenario(STORY)
    return read(b"".join(seal_lines(told.header, list(told.events))), name="l")


@pytest.fixture(scope="module")
def replays(ledger: Ledger) -> Replays:
    """What the replays of base and candidate told: equal, but for an amount."""

    def told(amount: float) -> Told:
        sandbox = ScriptedSandbox(script=paying(amount), tools=[tool("pay", code="c0de")])
        plan = Plan(header=ledger.header, events=ledger.events, ledger="d", candidate=Path("a"))
        return Told.by(replay(plan, sandbox))

    return told(1.5), told(2)


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A checkout and its base, and a cache."""

    folder: Path
    ledger: Ledger

    @property
    def entry(self) -> Path:
        """The only file of the cache."""
        (found,) = (self.folder / "cache/replays").iterdir()
        return found

    def write(self, path: str, text: str) -> None:
        """Write a file below the folder: ``head/…`` or ``base/…``."""
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text, encoding="utf-8")

    def get(
        self,
        play: Callable[[], Replays],
        *,
        secret: str = SECRET,
        day: date = TODAY,
        world: int = 0,
        **how: Any,
    ) -> tuple[Replays, list[str]]:
        """What a gate gets, and what it says of that."""
        request = ReplayRequest(
            **{
                "config": self.folder / "head/backstop.yaml",
                "base": self.folder / "base",
                "base_is_checkout": True,
                **how,
            }
        )
        config, base = configured(request)
        job = job_of(request, config, base, config.agent(None))
        cache = cache_of(
            GateRequest(replay=request, cache_dir=self.folder / "cache", cache_key=secret), day
        )
        assert isinstance(cache, ReplayCache)
        return cache.get(job, self.ledger, play, world=world), cache.remarks


class PlayedAgain(Exception):
    """The cache was of no use."""


def never() -> Replays:
    """For a gate that must not replay anything."""
    raise PlayedAgain


@pytest.fixture
def bench(tmp_path: Path, ledger: Ledger, replays: Replays) -> Bench:
    """A checkout whose replays are kept."""
    made = Bench(folder=tmp_path, ledger=ledger)
    for side in ("head", "base"):
        made.write(f"{side}/backstop.yaml", CONFIG % "docker")
        made.write(f"{side}/agents/desk/agent.py", f"# {side}\n")
        made.write(f"{side}/shared/tax.py", "RATE = 7\n")
        made.write(f"{side}/README.md", "# Desk\n")
    assert made.get(lambda: replays) == (replays, [])
    return made


def test_what_was_kept_is_given_again_just_as_it_was(bench: Bench, replays: Replays) -> None:
    found, remarks = bench.get(never)
    assert found == replays
    assert remarks == [AGAIN]


CHANGES = {
    "the candidate": ("head/agents/desk/agent.py", "# other\n"),
    "a file beside it": ("head/agents/desk/prompt.md", "Be kind.\n"),
    "shared code": ("head/shared/tax.py", "RATE = 19\n"),
    "a prompt outside of the folder": ("head/prompts/desk.md", "Be kind.\n"),
    "a lock file": ("head/requirements.txt", "google-adk\n"),
    "compiled code": ("head/shared/__pycache__/tax.cpython-312.pyc", "x"),
    "a hidden file": ("head/.settings", "x"),
    "the base": ("base/agents/desk/agent.py", "# other\n"),
    "what the base shares": ("base/shared/tax.py", "RATE = 19\n"),
    "the configuration": ("head/backstop.yaml", CONFIG % "docker" + "# a word\n"),
    "the base's configuration": ("base/backstop.yaml", CONFIG % "docker" + "# a word\n"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_whatever_replays_depend_on_is_part_of_the_key(what: str, bench: Bench) -> None:
    bench.write(*CHANGES[what])
    with pytest.raises(PlayedAgain):
        bench.get(never)


def test_documentation_that_the_candidate_reads_is_part_of_the_key(
    bench: Bench, replays: Replays
) -> None:
    """A prompt may lie anywhere."""
    bench.write("head/agents/desk/agent.py", "PROMPT = open('docs/desk.md').read()\n")
    assert bench.get(lambda: replays) == (replays, [])
    bench.write("head/docs/desk.md", "Pay twice.\n")
    with pytest.raises(PlayedAgain):
        bench.get(never)


def test_what_the_base_leaves_out_is_part_of_the_key_though_it_is_not_replayed(
    bench: Bench, replays: Replays
) -> None:
    for side in ("head", "base"):
        bench.write(f"{side}/backstop.yaml", f"{CONFIG % 'docker'}gate: {{control: none}}\n")
    assert bench.get(lambda: (None, replays[1])) == ((None, replays[1]), [])
    assert bench.get(never)[1] == [AGAIN]
    bench.write("base/.backstopignore", "shared\n")
    with pytest.raises(PlayedAgain):
        bench.get(never)


OTHERS: dict[str, dict[str, Any]] = {
    "the day": {"day": date(2026, 3, 3)},
    "the secret": {"secret": "x" * 32},
    "the runtime": {"runtime": "podman"},
    "no base": {"base": None, "base_is_checkout": False},
}


@pytest.mark.parametrize("what", OTHERS)
def test_so_is_whatever_the_gate_was_asked_otherwise(what: str, bench: Bench) -> None:
    with pytest.raises(PlayedAgain):
        bench.get(never, **OTHERS[what])


@pytest.mark.parametrize(
    "path",
    ["head/README.md", "head/docs/how.md", "head/.git/HEAD", "head/gha-creds-1.json"],
)
def test_what_no_agent_reads_makes_no_difference(path: str, bench: Bench) -> None:
    bench.write(path, "other\n")
    assert bench.get(never)[1] == [AGAIN]


def test_each_world_has_replays_of_its_own(bench: Bench, replays: Replays) -> None:
    """One world's replay in the place of another's would always agree with it."""
    with pytest.raises(PlayedAgain):
        bench.get(never, world=1)
    bench.get(lambda: replays, world=1)
    for world in (0, 1):
        assert bench.get(never, world=world)[1] == [AGAIN]


def test_another_ledger_has_other_replays(bench: Bench) -> None:
    told = scenario(STORY + "run r2\nstep s1\ncommit pay{vendor: bolt}\nadvance\n")
    other = read(b"".join(seal_lines(told.header, list(told.events))), name="l")
    with pytest.raises(PlayedAgain):
        Bench(folder=bench.folder, ledger=other).get(never)


FORGERIES: dict[str, Callable[[bytes], bytes]] = {
    "one bit is another": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "cut off": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "a pickle": lambda _: b"\x80\x04N.",
    "a seal without a body": lambda data: b"\n".join([*data.split(b"\n", 2)[:2], b""]),
    "a body without a seal": lambda data: b"\n".join([b"", *data.split(b"\n", 2)[1:]]),
    "another form": lambda data: data.replace(b"cache/1", b"cache/2", 1),
}


@pytest.mark.parametrize("how", FORGERIES)
def test_a_forged_entry_is_not_believed_said_to_be_one_and_replaced(
    how: str, bench: Bench, replays: Replays
) -> None:
    good = bench.entry.read_bytes()
    bench.entry.write_bytes(FORGERIES[how](good))
    assert bench.get(lambda: replays) == (replays, [IGNORED])
    assert bench.entry.read_bytes() == good


def test_a_good_entry_in_the_place_of_another_is_not_believed(
    bench: Bench, replays: Replays
) -> None:
    """A change that was harmless does not vouch for the next one."""
    good, place = bench.entry.read_bytes(), bench.entry
    place.unlink()
    bench.write("head/agents/desk/agent.py", "# harmful\n")
    bench.get(lambda: replays)
    bench.entry.write_bytes(good)
    assert bench.get(lambda: replays)[1] == [IGNORED]


def test_a_link_in_the_place_of_an_entry_is_not_followed(bench: Bench) -> None:
    entry = bench.entry
    entry.symlink_to(entry.rename(bench.folder / "elsewhere"))
    with pytest.raises(PlayedAgain):
        bench.get(never)


def test_a_replay_that_did_not_come_to_its_end_is_not_kept(bench: Bench, replays: Replays) -> None:
    """Another time, on a quicker machine, it may."""
    control, candidate = replays
    bench.entry.unlink()
    run = msgspec.structs.replace(candidate.runs[0], not_replayable="time was over")
    cut = Told(
        header=candidate.header, intents=candidate.intents, runs=(run,), tools=candidate.tools
    )
    bench.get(lambda: (control, cut))
    with pytest.raises(PlayedAgain):
        bench.get(never)


def test_a_checkout_that_was_written_to_meanwhile_is_not_kept(
    bench: Bench, replays: Replays
) -> None:
    bench.entry.unlink()

    def played() -> Replays:
        bench.write("head/agents/desk/agent.py", "# written while it was replayed\n")
        return replays

    bench.get(played)
    with pytest.raises(PlayedAgain):
        bench.get(never)


def test_an_environment_that_nobody_can_name_is_not_cached(bench: Bench, replays: Replays) -> None:
    """In the process sandbox a candidate imports what is installed: that has to be known."""
    for side in ("head", "base"):
        bench.write(f"{side}/backstop.yaml", CONFIG % "process, python: /usr/bin/none")
    found, remarks = bench.get(lambda: replays)
    assert found == replays
    assert remarks[0].startswith("desk: not cached: nobody can tell")


def test_a_folder_that_cannot_be_written_costs_no_verdict(bench: Bench, replays: Replays) -> None:
    bench.entry.unlink()
    (bench.folder / "cache/replays").rmdir()
    (bench.folder / "cache/replays").write_text("in the way")
    found, remarks = bench.get(lambda: replays)
    assert found == replays
    assert remarks[0].startswith("desk: not cached: ")


def test_a_secret_that_could_be_guessed_is_refused_and_never_shown(bench: Bench) -> None:
    with pytest.raises(ConfigError) as caught:
        bench.get(never, secret="hunter2")  # noqa: S106  # none is meant
    assert caught.value.slug == "cache-key"
    assert "hunter2" not in str(caught.value)
    request = ReplayRequest(config=Path("c"))
    assert SECRET not in repr(GateRequest(replay=request, cache_key=SECRET))


def test_without_a_secret_there_is_no_cache(tmp_path: Path) -> None:
    request = ReplayRequest(config=Path("c"))
    assert cache_of(GateRequest(replay=request, cache_dir=tmp_path), TODAY) is None
    assert cache_of(GateRequest(replay=request, cache_key=SECRET), TODAY) is None
