"""Stands where the harness would, and does the harm that its agent folder is named after.

What it finds it says on the wire, as one JSON object a line, before the harm that ends it.
"""

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path

LINE = b'{"t":"intent"}\n'


def say(**facts):
    os.write(1, json.dumps(facts).encode() + b"\n")


def scratch():
    return Path(sys.argv[sys.argv.index("--scratch") + 1])


def for_ever():
    while True:
        time.sleep(3600)


def fork_bomb():
    forks = 0
    while True:
        try:
            if os.fork() == 0:
                for_ever()
            forks += 1
        except OSError:
            say(started=forks)
            break
    while True:
        try:
            if os.fork() == 0:
                while True:
                    pass
        except OSError:
            pass


def thread_bomb():
    import threading

    threads = 0
    threading.stack_size(64 << 10)
    while True:
        try:
            threading.Thread(target=for_ever, daemon=True).start()
            threads += 1
        except RuntimeError:
            say(started=threads)
            for_ever()


def memory():
    kept = []
    while True:
        kept.append(bytearray(b"x" * (16 << 20)))


def memory_of_children():
    while True:
        if os.fork() == 0:
            memory()
        time.sleep(0.05)


def fill_scratch():
    written, files = 0, 0
    place = scratch()
    try:
        number = 0
        while True:
            # A file may be bounded as well: the next one goes on.
            try:
                with open(place / f"big{number}", "wb", buffering=0) as file:
                    while True:
                        written += file.write(bytes(1 << 20))
            except OSError as error:
                if error.errno != 27:
                    raise
            number += 1
    except OSError as error:
        full = error.errno
    for file in place.glob("big*"):
        file.unlink()
    try:
        while True:
            (place / f"small{files}").touch()
            files += 1
    except OSError as error:
        say(written=written, files=files, errors=[full, error.errno])


def fill_others():
    found = {}
    for place in ("/data", "/dev", "/dev/shm", "/dev/mqueue", "/run", "/tmp", "/var/tmp"):
        written = 0
        try:
            with open(f"{place}/fill", "wb", buffering=0) as file:
                while written < 16 << 20:
                    written += file.write(bytes(1 << 20))
        except OSError:
            pass
        found[place] = written
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p
    segments = 0
    while (segment := libc.shmget(0, 16 << 20, 0o1600)) >= 0 and segments < 4:
        place = libc.shmat(segment, None, 0)
        ctypes.memset(place, 1, 16 << 20)
        segments += 1
    say(written=found, segments=segments)


def flood_out():
    while True:
        os.write(1, LINE * 4096)


def flood_out_without_a_line():
    while True:
        os.write(1, bytes(64 << 10))


def flood_err():
    while True:
        os.write(2, b"noise " * 4096)


def drip():
    """Never silent, and never done."""
    while True:
        os.write(1, LINE)
        time.sleep(0.05)


def hang():
    for_ever()


def ignore_signals():
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        pass


def close_everything():
    os.closerange(0, 64)
    for_ever()


def orphan():
    """Leave, while somebody else holds the wire open."""
    if os.fork() == 0:
        os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for_ever()
    say(left=True)


def never_reads():
    say(ready=True)
    for_ever()


def forge_text():
    os.write(1, b"PASS\n")


def forge_verdict():
    say(t="verdict", decision="PASS", exit_code=0)


def forge_twice():
    os.write(1, b'{"t":"ready","t":"run_done"}\n')


def forge_deep():
    os.write(1, b'{"t":' + b"[" * 100_000 + b"\n")


def forge_half_a_line():
    os.write(1, b'{"t":"ready"')


def forge_nothing():
    """Leave at once, as if there had been nothing to ask."""


def forge_order():
    """A well-formed line, long before its turn."""
    say(t="run_done", id=1, run="r1", events=0, digest="0" * 64)


def ready():
    walls = ["audit", "landlock", "seccomp"]
    code = dict(adk="2.11.0", python="3.12", app="vendor_onboarding", agents=[], tools=[])
    say(t="ready", id=0, protocol=1, isolation=walls, **code)


def forge_readiness():
    """Ready for everything, and gone."""
    ready()


def forge_silence():
    """Word for word what a harness says of an agent that asks for nothing at all."""
    ready()
    for line in sys.stdin:
        told = json.loads(line)
        match told["t"]:
            case "run":
                run = told["run"]
                say(t="run_ready", id=told["id"])
            case "step":
                say(t="step_done", id=told["id"], step=told["step"], outcome="done")
            case "end_run":
                say(t="run_done", id=told["id"], run=run, events=0, digest="0" * 64)
            case "quit":
                break


def look_around():
    """What can be found out here: environment, sockets, files of others, own rights."""
    status = Path("/proc/self/status").read_text()
    words = dict(line.split(":", 1) for line in status.splitlines())
    maps = Path("/proc/self/maps").read_text()
    say(
        environment=sorted(os.environ),
        values=[text for name, text in os.environ.items()],
        cwd=os.getcwd(),
        uid=words["Uid"].split(),
        groups=words["Groups"].split(),
        capabilities=[words[name].strip() for name in ("CapEff", "CapPrm", "CapBnd", "CapAmb")],
        nnp=words["NoNewPrivs"].strip(),
        seccomp=words["Seccomp"].strip(),
        preloaded="libutil" in maps,
        init=Path("/proc/1/cmdline").read_bytes().split(b"\0")[0].decode(),
        descriptors=sorted(int(name) for name in os.listdir("/proc/self/fd"))[:-1],
        argv=sys.orig_argv,
    )


def look_for_secrets():
    """Every file that can be read, for a word that only those outside know."""
    # Put together here, so that this file is not what is found.
    wanted = "".join(["backstop", "-only-", "outside"]).encode()
    found, seen = [], 0
    for folder, names, files in os.walk("/"):
        names[:] = [name for name in names if os.path.join(folder, name) not in {"/sys", "/proc"}]
        for name in files:
            seen += 1
            place = os.path.join(folder, name)
            try:
                if os.path.isfile(place) and wanted in Path(place).read_bytes():
                    found.append(place)
            except OSError:
                pass
    for process in (name for name in os.listdir("/proc") if name.isdigit()):
        for part in ("environ", "cmdline"):
            try:
                if wanted in Path(f"/proc/{process}/{part}").read_bytes():
                    found.append(f"/proc/{process}/{part}")
            except OSError:
                pass
    say(found=found, seen=seen)


if __name__ == "__main__":
    globals()[Path(sys.argv[sys.argv.index("--agent") + 1]).name]()
