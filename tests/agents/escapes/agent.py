"""Tries every way out from the place that TRY_FROM names, and keeps what became of it."""

import ctypes
import fcntl
import os
import resource
import signal
import socket
import subprocess

from google.adk.agents import LlmAgent
from google.adk.workflow import START, Workflow, node

SIDE_EFFECTS = []
RESULTS = {}
OUTSIDE = os.environ["TRY_OUTSIDE"]
PORT = int(os.environ["TRY_PORT"])
UNIX = os.environ["TRY_UNIX"]
LIBC = ctypes.CDLL(None, use_errno=True)


def check(value):
    if value < 0:
        raise OSError(ctypes.get_errno(), "from C")
    return value


def by_python_socket():
    socket.create_connection(("127.0.0.1", PORT), timeout=1)


def by_datagram():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", PORT))


def by_ctypes_socket():
    check(LIBC.socket(2, 1, 0))


def by_unix_socket():
    socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect(UNIX)


def by_ctypes_unix_socket():
    check(LIBC.socket(1, 1, 0))


def by_grpc():
    import grpc

    channel = grpc.insecure_channel(f"127.0.0.1:{PORT}")
    channel.unary_unary("/x/y")(b"x", timeout=2)


def by_name_lookup():
    socket.getaddrinfo("example.com", 443)


def by_subprocess():
    subprocess.run(["/bin/true"], check=True)


def by_system():
    if os.system("true") != 0:
        raise OSError("status")


def by_ctypes_system():
    if LIBC.system(b"true") != 0:
        raise OSError("status")


def by_fork():
    if os.fork() == 0:
        os._exit(0)


def by_ctypes_fork():
    child = check(LIBC.fork())
    if child == 0:
        os._exit(0)


def by_write():
    open(OUTSIDE + "/plain", "w").close()


def by_ctypes_write():
    check(LIBC.creat((OUTSIDE + "/c").encode(), 0o600))


def by_dir_fd():
    where = os.open(OUTSIDE, os.O_RDONLY)
    os.open("below", os.O_CREAT | os.O_WRONLY, dir_fd=where)


def by_link():
    os.symlink(OUTSIDE, os.environ["TMPDIR"] + "/link")
    open(os.environ["TMPDIR"] + "/link/through", "w").close()


def by_mknod():
    os.mknod(OUTSIDE + "/node")


def by_fifo():
    os.mkfifo(OUTSIDE + "/fifo")


def by_ctypes_mkdir():
    check(LIBC.mkdir((OUTSIDE + "/made").encode(), 0o700))


def by_chmod():
    check(LIBC.chmod((OUTSIDE + "/there").encode(), 0o777))


def by_removal():
    os.remove(OUTSIDE + "/there")


def by_signal():
    os.kill(os.getppid(), signal.SIGTERM)


def by_memory():
    with open(f"/proc/{os.getppid()}/mem", "r+b"):
        pass


def by_affinity():
    os.sched_setaffinity(os.getppid(), {0})


def by_limit():
    resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0))


def by_lock():
    fcntl.flock(os.open(OUTSIDE + "/there", os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)


def by_priority():
    os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)


def by_ptrace():
    check(LIBC.ptrace(16, os.getppid(), 0, 0))


WAYS = [value for name, value in sorted(globals().items()) if name.startswith("by_")]


def try_all():
    for way in WAYS:
        try:
            way()
        except BaseException as error:
            RESULTS[way.__name__] = type(error).__name__
        else:
            RESULTS[way.__name__] = "THROUGH"
    with open(os.environ["TMPDIR"] + "/allowed", "w") as mine:
        mine.write("scratch is mine")
    RESULTS["scratch"] = "kept"
    RESULTS["secrets"] = sum(map(tells, ancestors()))


def ancestors():
    """The processes that this one comes from: the candidate's, the warden, the driver."""
    process = int(os.readlink("/proc/self"))
    while process > 1:
        yield process
        with open(f"/proc/{process}/status") as status:
            process = next(int(line.split()[1]) for line in status if line.startswith("PPid"))


def tells(process):
    """Does a process show its environment, and is that another one than the candidate's?"""
    try:
        with open(f"/proc/{process}/environ", "rb") as environment:
            return b"TRY_FROM=" not in environment.read()
    except OSError:
        return False


def pay(amount: int) -> dict:
    """Pays."""
    SIDE_EFFECTS.append(amount)
    return {}


def before_tool(tool, args, tool_context):
    if os.environ["TRY_FROM"] == "tool callback":
        try_all()


def before_agent(callback_context):
    if os.environ["TRY_FROM"] == "agent callback":
        try_all()


def after_agent(callback_context):
    callback_context.state["results"] = dict(RESULTS)
    callback_context.state["bodies"] = list(SIDE_EFFECTS)


if os.environ["TRY_FROM"] == "import":
    try_all()

pays = LlmAgent(
    name="escapes",
    model="gemini-2.5-flash",
    tools=[pay],
    before_tool_callback=before_tool,
    before_agent_callback=before_agent,
    after_agent_callback=after_agent,
)


@node
def work(node_input):
    try_all()
    return "Pay."


root_agent = (
    Workflow(name="flow", edges=[(START, work, pays)])
    if os.environ["TRY_FROM"] == "workflow node"
    else pays
)
