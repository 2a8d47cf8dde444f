"""Three processes, one inside the other: the warden, the warm candidate, one run at a time.

The warden imports nothing of the candidate's and answers the kernel. The candidate's
process goes behind the barrier, imports the agent, and forks each run off itself, so that
a run's leftovers in memory cannot reach the next.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import logging
import os
import platform
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from . import barrier, syscalls
from .candidate import Candidate, Unusable, clock, framework_version, load, said, warm
from .channel import Channel, Message, encode
from .credentials import lend
from .lookout import Lookout
from .reach import Reach
from .warden import Warden, watch

if TYPE_CHECKING:  # the framework loads in the candidate's process only
    from .runs import Run
    from .survey import Survey

PROTOCOL: Final = 1
_IMPORT_TIME: Final = "2020-01-01T00:00:00+00:00"
_FAULT, _EXITED = 3, 4
_ID_GAP: Final = 1_000_000


class Options(NamedTuple):
    """The command line: the agent's folder, the scratch folder, what to bar and to bound.

    Once the barrier stands, the candidate is in the folder `start`, and `variables` are set: they
    mean nothing to what is before it. `world` says which time, chance and surroundings to show
    (`frozen`).
    """

    agent: Path
    start: Path
    scratch: Path
    barred: bool
    bounds: barrier.Bounds
    world: int
    variables: dict[str, str]


class Ends(NamedTuple):
    """Descriptors between the candidate's process and the warden."""

    notes: int
    control: int
    handover: socket.socket


def options(argv: list[str]) -> Options:
    """Parse the command line; argparse leaves with 2 on a mistake."""
    parser = argparse.ArgumentParser(prog="backstop_harness", description=__doc__)
    parser.add_argument("--agent", type=Path, required=True)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--open", action="store_true", help="install no barrier (tests only)")
    parser.add_argument("--memory", type=int, default=0)
    parser.add_argument("--files", type=int, default=0)
    parser.add_argument("--file-bytes", type=int, default=0)
    parser.add_argument("--world", type=int, default=0)
    parser.add_argument("--variable", action="append", default=[])
    found = parser.parse_args(argv)
    return Options(
        agent=found.agent,
        start=found.start,
        scratch=found.scratch,
        barred=not found.open,
        bounds=barrier.Bounds(found.memory, found.files, found.file_bytes),
        world=found.world,
        variables=dict(one.split("=", 1) for one in found.variable),
    )


def main(*, read: int, write: int) -> NoReturn:
    """Fork the candidate's process and watch it to its end; leaves by `os._exit`."""
    chosen = options(sys.argv[1:])
    notes_out, notes_in = os.pipe2(os.O_CLOEXEC)
    control_out, control_in = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(notes_in, False)
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        here.close()
        for descriptor in (notes_in, control_out):
            os.close(descriptor)
        barrier.die_with_parent()
        _candidate(chosen, read, write, Ends(notes_out, control_in, there))
    there.close()
    for descriptor in (notes_out, control_in, read):
        os.close(descriptor)
    _guard(chosen, child, write, Ends(notes_in, control_out, here))


def _guard(chosen: Options, child: int, write: int, ends: Ends) -> NoReturn:
    """The warden's side: serve the kernel's questions, then say how the candidate ended."""
    listener = _receive_listener(ends.handover)
    machine = syscalls.machine()
    warden = None
    if listener is not None and machine is not None:
        warden = Warden(scratch=chosen.scratch, notes=ends.notes, machine=machine)
    status, said = watch(warden, listener=listener, control=ends.control, process=child)
    if b"Q" in said:
        os._exit(0)
    if b"F" in said:
        os._exit(_FAULT)
    when = "after its import" if b"I" in said else "while it was imported"
    _write_all(write, encode(_exited(os.waitstatus_to_exitcode(status), when, str(chosen.agent))))
    os._exit(_EXITED)


def _receive_listener(handover: socket.socket) -> int | None:
    with handover:
        _, descriptors, _, _ = socket.recv_fds(handover, 1, 1)
    return descriptors[0] if descriptors else None


def _exited(code: int, when: str, where: str) -> Message:
    how = f"was killed by signal {-code}" if code < 0 else f"left with status {code}"
    detail = f"the candidate's process {how} {when}"
    return {"t": "fault", "slug": "agent-exited", "detail": detail, "where": where}


def _write_all(descriptor: int, data: bytes) -> None:
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(descriptor, data) :]


def _candidate(chosen: Options, read: int, write: int, ends: Ends) -> NoReturn:
    """The candidate's side: warm up, go behind the barrier, import, play runs."""
    channel = Channel(read=read, write=write)
    try:
        _serve(chosen, channel, ends)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the driver must hear of it
        slug = error.slug if isinstance(error, Unusable) else "harness"
        where = error.where if isinstance(error, Unusable) else ""
        text = str(error) if isinstance(error, Unusable) else said(error)
        channel.tell({"t": "fault", "slug": slug, "detail": text, "where": where})
        _say(ends, b"F")
        os._exit(_FAULT)
    _say(ends, b"Q")
    os._exit(0)


def _say(ends: Ends, word: bytes) -> None:
    _write_all(ends.control, word)


def _serve(chosen: Options, channel: Channel, ends: Ends) -> None:
    lookout = Lookout(scratch=chosen.scratch, start=chosen.start, notes=ends.notes)
    version = framework_version()
    # What is imported stays, and a session's events live to the end of the run: looking at
    # them often finds no garbage.
    gc.set_threshold(50_000, 20, 50)
    clock()
    # The framework is imported and rehearsed outside the barrier: it leaves compiled files
    # behind, without which every replay would compile it anew.
    logging.disable(logging.WARNING)
    warm()
    from .calls import Calls, ReplayPlugin
    from .frozen import Frozen
    from .levers import nobody_listens, quiet_telemetry
    from .runs import Run, intercept, tune
    from .toolsets import Toolsets
    from .waiting import Waiting

    sys.dont_write_bytecode = True
    held = _go_behind(chosen, lookout, ends)
    frozen = Frozen(chosen.world)
    quiet = quiet_telemetry(version, lambda: frozen.begin(_IMPORT_TIME, 0))
    frozen.begin(_IMPORT_TIME, 0)
    waiting = Waiting(frozen=frozen, channel=channel)
    waiting.install()
    lookout.drop()
    lookout.report_to(_teller(channel, lookout))
    calls = Calls(channel=channel, frozen=frozen, lookout=lookout)
    intercept(ReplayPlugin(calls))
    _take_effects(calls)
    reach = Reach(chosen.agent, project=chosen.start)
    reach.install()
    before = frozenset(sys.modules)
    os.environ.update(chosen.variables)
    lend(chosen.scratch)
    links = chosen.scratch / "agents"
    candidate = load(chosen.agent, start=chosen.start, links=links, adk=version)
    tune()
    seen = _surveyed(candidate)
    toolsets = Toolsets(seen, folder=candidate.folder, lookout=lookout, loop=waiting.loop)
    listed = toolsets.look()
    ready = {**_ready(candidate, seen, held, before), "toolsets": listed}
    ready |= reach.told(lookout.opened)
    if quiet is not None and nobody_listens():
        quiet.on()
    lookout.collect()
    _say(ends, b"I")
    gc.freeze()
    answer = channel.ask_blocking(ready)
    while answer["t"] == "run":
        run = Run(
            candidate=candidate,
            channel=channel,
            calls=calls,
            frozen=frozen,
            lookout=lookout,
            waiting=waiting,
            toolsets=toolsets,
        )
        done = _fork_run(run, answer, channel, lookout, ends, reach)
        answer = channel.ask_blocking(done)


def _teller(channel: Channel, lookout: Lookout) -> Callable[[str, str], None]:
    def tell(what: str, detail: str) -> None:
        channel.tell({"t": "escape", "what": what, "detail": detail, "step": lookout.step})

    return tell


def _go_behind(chosen: Options, lookout: Lookout, ends: Ends) -> list[str]:
    """Install what this kernel offers, from the weakest to the strongest; what holds, by name."""
    held: list[str] = []
    listener: int | None = None
    if chosen.barred:
        lookout.install()
        held.append("audit")
        barrier.bound(chosen.bounds)
        if sys.platform == "linux":
            barrier.give_up_powers()
            if barrier.restrict_writes(chosen.scratch):
                held.append("landlock")
            listener = barrier.ask_before_leaving()
            if listener is not None:
                lookout.leave_to_the_kernel()
    with ends.handover as handover:
        if listener is None:
            handover.send(b"-")
        else:
            socket.send_fds(handover, [b"+"], [listener])
            os.close(listener)
            held.append("seccomp")
    return held


def _take_effects(calls: object) -> None:
    """Answer `@effect` functions too, from before the first of them can be called."""
    try:
        # By name: it is the candidate's Backstop, if its environment has one, and not ours.
        effects = importlib.import_module("backstop.guard.effect")
    except ImportError:
        return
    effects.install(calls)


def _surveyed(candidate: Candidate) -> Survey:
    from .survey import Survey

    return Survey(root=candidate.root, plugins=candidate.plugins, folder=candidate.folder)


def _ready(candidate: Candidate, seen: Survey, held: list[str], before: frozenset[str]) -> Message:
    from .escapes import escapes
    from .history import readers
    from .source import beside

    return {
        "t": "ready",
        "protocol": PROTOCOL,
        "adk": candidate.adk,
        "python": platform.python_version(),
        "app": candidate.name,
        "agents": seen.agents,
        "tools": seen.tools,
        "isolation": held,
        "escapes": escapes(seen, candidate.app, before=before),
        "beside": beside(candidate.folder, before=before),
        "history": readers(candidate.folder, candidate.app, before=before),
    }


def _fork_run(
    run: Run, begin: Message, channel: Channel, lookout: Lookout, ends: Ends, reach: Reach
) -> Message:
    """Play a run in a forked process; its `run_done`, or an empty one and a fault if it died."""
    from .runs import play

    _say(ends, b"R")
    result_out, result_in = os.pipe2(os.O_CLOEXEC)
    with lookout.pause():
        child = os.fork()
    if child == 0:
        os.close(result_out)
        barrier.die_with_parent()
        _run_to_end(lambda: {**play(run, begin), **reach.told(lookout.opened)}, channel, result_in)
    os.close(result_in)
    with os.fdopen(result_out, "rb") as results:
        told = results.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    done: Message = json.loads(told) if told else {}
    if "broke" not in done and done:
        channel.continue_after(done.pop("next_id"))
        return done
    fault = _exited(code, f"in run {begin['run']}", "")
    if done:
        fault["detail"] = f"run {begin['run']} broke: {done['broke']}"
    channel.tell(fault)
    # Answers to what it had asked may still arrive; they must not be taken for ours.
    channel.continue_after(channel.next_id + _ID_GAP)
    return {"t": "run_done", "run": begin["run"], "events": 0, "digest": ""}


def _run_to_end(play: Callable[[], Message], channel: Channel, result: int) -> NoReturn:
    try:
        done = play()
        done["next_id"] = channel.next_id
    except BaseException as error:  # noqa: BLE001 - sys.exit in a callback comes here too
        done = {"broke": said(error)}
    _write_all(result, json.dumps(done).encode())
    os._exit(0)
