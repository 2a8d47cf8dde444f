"""A driver that is ended while its candidate runs: says its name, then waits for the candidate.

python dying.py DOCKER_URL IMAGE PYTHON
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path, PurePosixPath

from backstop.adapters.docker.building.built import Built
from backstop.adapters.docker.client import connect
from backstop.adapters.docker.sandbox import DockerSandbox
from backstop.adapters.docker.sweeping import remove_at_signals
from backstop.adapters.owners import this_process

DEAF = "import time\nprint('{}', flush=True)\ntime.sleep(600)"


def write(folder: Path) -> None:
    """In place of the harness: a program that does not listen."""
    folder.mkdir(parents=True)
    (folder / "talker.py").write_text(DEAF, encoding="utf-8")


def main() -> None:
    """Start a candidate and wait for it to say more than it will."""
    url, image, python = sys.argv[1:]
    reach = partial(connect, url)
    remove_at_signals(reach)
    folder = PurePosixPath("/candidate")
    built = Built(image=image, agent=folder, start=folder, python=python)
    sandbox = DockerSandbox(reach(), lambda _: built, bundle=write, module="talker")
    with sandbox.start(Path("agent")) as conversation:
        conversation.receive()
        sys.stdout.write(f"{this_process()}\n")
        sys.stdout.flush()
        conversation.receive()


if __name__ == "__main__":
    main()
