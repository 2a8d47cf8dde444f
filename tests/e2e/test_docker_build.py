"""A candidate's image, made in a real daemon: what is in it, what never is, and what it costs."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import docker
import pytest
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from backstop.adapters.docker.building import images
from backstop.adapters.docker.building.built import CLOCK, Built
from backstop.adapters.docker.building.images import ImageBuilder
from backstop.adapters.docker.building.kept import KeptLayers
from backstop.adapters.docker.building.recipe import Recipe
from backstop.errors import SandboxError
from tests.docker.package_index import PackageIndex, package_index

AT_WORK = {"dev.backstop.test": "build"}
MINE = "dev.backstop.small"
SMALL = "backstop-test-small:1"
FOR_EVER = {images.PACKAGES: 1000, images.CANDIDATE: 1000}
"""Other tests have images of their own in this daemon."""
AT_WORK_IS = "dev.backstop.test=build"
BACKEND = {
    "setuptools/__init__.py": "",
    "setuptools/build_meta.py": "class Old:\n    def __getattr__(self, name):\n"
    "        exec(open('setup.py').read(), {})\n__legacy__ = Old()\n",
}
"""Stands for setuptools: runs setup.py, as the real one does."""
ADK = {"google/adk/version.py": "__version__ = '2.13.0'\n"}


@pytest.fixture(scope="module")
def index(docker_client: docker.DockerClient, base_image: str) -> Iterator[PackageIndex]:
    with package_index(docker_client, base_image) as offering:
        offering.offer("google_adk", "2.13.0", ADK)
        offering.offer("without_adk", "1.0", {"without_adk.py": ""})
        offering.offer("setuptools", "99.0", BACKEND)
        offering.offer("wheel", "99.0", {"wheel.py": ""})
        yield offering


@pytest.fixture(scope="module")
def base(docker_client: docker.DockerClient, base_image: str) -> Iterator[str]:
    """The base of these tests: whatever is made of it bears its label, and goes at the end."""
    file = io.BytesIO(f"FROM {base_image}\nLABEL {MINE}=1\n".encode())
    docker_client.images.build(fileobj=file, rm=True, forcerm=True, tag=SMALL)
    yield SMALL
    for _ in range(2):  # what lies on another one has to go first
        for image in docker_client.images.list(filters={"label": MINE}):
            with contextlib.suppress(APIError):
                docker_client.images.remove(str(image.id), force=True)


@pytest.fixture
def make(docker_client: docker.DockerClient, base: str, index: PackageIndex) -> Iterator[Make]:
    yield Make(docker_client, base, index)
    assert at_work(docker_client) == []


class Make:
    """Builds checkouts with the small index."""

    def __init__(self, client: docker.DockerClient, base: str, index: PackageIndex) -> None:
        self.client = client
        self.base = base
        self.index = index
        self.said: list[str] = []

    def builder(
        self, root: Path, *, withheld: tuple[Path, ...] = (), **recipe: object
    ) -> ImageBuilder:
        chosen = {"base": self.base, "index": self.index.address, "wall_s": 240.0, **recipe}
        return ImageBuilder(
            self.client,
            Recipe(**chosen),  # type: ignore[arg-type]  # handed on
            checkouts=[root],
            withheld=withheld,
            labels=AT_WORK,
            newest=FOR_EVER,
            say=self.said.append,
        )

    def __call__(self, root: Path, **recipe: object) -> Built:
        return self.builder(root, **recipe).build(root / "agents" / "vendor")  # type: ignore[arg-type]

    def refused(self, root: Path, **recipe: object) -> tuple[str, str]:
        with pytest.raises(SandboxError) as caught:
            self(root, **recipe)
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code == 2
        return caught.value.slug, str(caught.value)

    def run(self, built: Built, code: str) -> str:
        """What a program says that runs in the image as a candidate does, without a network."""
        said = self.client.containers.run(
            built.image,
            [built.python, "-P", "-c", code],
            entrypoint=[],
            network_mode="none",
            read_only=True,
            remove=True,
            labels=AT_WORK,
        )
        return bytes(said).decode()


def at_work(client: docker.DockerClient) -> list[Container]:
    return client.containers.list(all=True, filters={"label": AT_WORK_IS})


def checkout(root: Path, requirements: str = "google-adk==2.13.0\n", **files: str) -> Path:
    written = {
        "agents/vendor/agent.py": "root_agent = None\n",
        "agents/requirements.txt": requirements,
        **files,
    }
    for name, text in written.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def contents(client: docker.DockerClient, image: str) -> tuple[set[str], bytes]:
    """The names in an image, and all its bytes with what the daemon says of it."""
    held = client.containers.create(image, ["true"], labels=AT_WORK)
    try:
        packed = b"".join(map(bytes, held.export()))  # type: ignore[arg-type]  # chunks of bytes
    finally:
        held.remove()
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        names = set(tar.getnames())
    told = json.dumps([client.api.inspect_image(image), client.api.history(image)])  # type: ignore[no-untyped-call]
    return names, packed + told.encode()


@contextmanager
def watched(client: docker.DockerClient) -> Iterator[list[str]]:
    """What becomes of containers of these tests meanwhile: created, started, ended."""
    stream = client.api.events(decode=True, filters={"type": "container", "label": AT_WORK_IS})
    seen: list[str] = []
    last = threading.Event()

    def listen() -> None:
        for event in stream:
            if event["Actor"]["Attributes"].get("last"):
                last.set()
                return
            seen.append(event["Action"])

    listener = threading.Thread(target=listen)
    listener.start()
    try:
        yield seen
    finally:
        # Events come late, but in order: after this one all are told.
        image = client.images.list()[0]
        client.containers.create(image, ["true"], labels={**AT_WORK, "last": "1"}).remove()
        assert last.wait(30)
        stream.close()
        listener.join()


def test_the_image_holds_the_agent_its_packages_and_our_clock(make: Make, tmp_path: Path) -> None:
    built = make(checkout(tmp_path))
    assert built.agent == PurePosixPath("/candidate/agents/vendor")
    code = (
        f"import sys, os; sys.path.insert(0, {str(CLOCK)!r}); import time_machine, _time_machine;"
        f"from google.adk.version import __version__; print(__version__, os.getuid());"
        f"print(open('{built.agent}/agent.py').read())"
    )
    assert make.run(built, code).split("\n") == ["2.13.0 65534", "root_agent = None", "", ""]


def test_nothing_secret_is_in_the_image(make: Make, tmp_path: Path) -> None:
    ledger = tmp_path / "ledgers" / "vendor.db"
    root = checkout(
        tmp_path,
        **{
            ".git/config": "s3cret",
            "agents/vendor/.env": "s3cret",
            "key.pem": "s3cret",
            "ledgers/vendor.db": "s3cret",
            "ledgers/vendor.jsonl": '{"t":"ledger","agent":"s3cret"}\n',
            "plain.txt": "n0 secret",
        },
    )
    agent = root / "agents" / "vendor"
    built = make.builder(root, withheld=(ledger,)).build(agent)
    names, data = contents(make.client, built.image)
    assert {"candidate/agents/vendor/agent.py", "candidate/plain.txt"} <= names
    assert b"n0 secret" in data
    assert b"s3cret" not in data
    ours = {name for name in names if name.startswith("candidate/")}
    assert not [name for name in ours if name.endswith((".git", ".env", ".pem", "vendor.db"))]


def test_a_link_out_of_the_checkout_is_refused_and_one_within_works(
    make: Make, tmp_path: Path
) -> None:
    root = checkout(tmp_path / "in", **{"shared/prices.py": "PRICE = 7\n"})
    (root / "agents" / "vendor" / "prices.py").symlink_to("../../shared/prices.py")
    built = make(root)
    assert make.run(built, f"print(open('{built.agent}/prices.py').read())").strip() == "PRICE = 7"
    (tmp_path / "secret").write_text("s3cret")
    (root / "leak").symlink_to("../secret")
    assert make.refused(root)[0] == "context-refused"


def test_an_agent_that_is_a_link_out_of_the_checkout_is_refused(make: Make, tmp_path: Path) -> None:
    root = checkout(tmp_path / "in")
    elsewhere = checkout(tmp_path / "out")
    (root / "agents" / "other").symlink_to(elsewhere / "agents" / "vendor")
    with pytest.raises(SandboxError, match="outside of the checkout"):
        make.builder(root).build(root / "agents" / "other")
    with pytest.raises(SandboxError, match="outside of the checkout"):
        make.builder(root).build(elsewhere / "agents" / "vendor")


def test_an_agent_that_is_its_whole_checkout_keeps_its_name(make: Make, tmp_path: Path) -> None:
    root = checkout(tmp_path) / "agents" / "vendor"
    (root / "requirements.txt").write_text("google-adk==2.13.0\n")
    built = make.builder(root).build(root)
    assert built.agent == PurePosixPath("/candidate/vendor")
    assert make.run(built, "import os; print(os.listdir('/candidate/vendor'))").count("agent.py")


def test_what_an_editable_install_would_add_can_be_imported(make: Make, tmp_path: Path) -> None:
    built = make(checkout(tmp_path, **{"agents/src/desk.py": "", "agents/flat.py": ""}))
    assert make.run(built, "import desk, flat; print(desk.__file__)").strip() == (
        "/candidate/agents/src/desk.py"
    )


def test_no_change_makes_no_container_and_a_change_of_source_installs_nothing(
    make: Make, tmp_path: Path
) -> None:
    root = checkout(tmp_path)
    first = make(root)
    with watched(make.client) as again:
        assert make(root) == first
    assert again == []
    (root / "agents" / "vendor" / "agent.py").write_text("root_agent = 1\n")
    with watched(make.client) as changed:
        assert make(root).image != first.image
    assert changed == ["create", "archive-path", "archive-path", "commit", "destroy"] or (
        "start" not in changed and changed.count("create") == 1
    )


def test_a_base_and_a_candidate_with_the_same_packages_install_them_once(
    make: Make, tmp_path: Path
) -> None:
    make.index.offer("shared_by_two", "1.0", {"shared_by_two.py": ""})
    lines = "google-adk\nshared-by-two\n"
    base = checkout(tmp_path / "base", lines)
    candidate = checkout(tmp_path / "head", f"# {tmp_path}\n{lines}", new="x")
    client, asked = make.client, Recipe(base=make.base, index=make.index.address)
    builder = ImageBuilder(
        client, asked, checkouts=[base, candidate], labels=AT_WORK, newest=FOR_EVER
    )
    with watched(client) as seen, ThreadPoolExecutor() as pool:
        agents = [root / "agents" / "vendor" for root in (base, candidate)]
        one, other = pool.map(builder.build, agents)
    assert one.image != other.image
    assert seen.count("start") == 1


def test_packages_that_were_kept_are_not_installed_on_the_next_machine(
    make: Make, tmp_path: Path
) -> None:
    kept = KeptLayers(folder=tmp_path / "cache", secret=b"k" * 32)
    root = checkout(tmp_path / "in", "google-adk==2.13.0\nkept-for-later==1\n")
    make.index.offer("kept_for_later", "1", {"kept_for_later.py": "SAID = 'again'\n"})
    agent = root / "agents" / "vendor"
    asked = Recipe(base=make.base, index=make.index.address)

    def build(layers: KeptLayers) -> Built:
        builder = ImageBuilder(
            make.client, asked, checkouts=[root], labels=AT_WORK, newest=FOR_EVER, kept=layers
        )
        return builder.build(agent)

    first = build(kept)
    # The next machine's daemon has neither of the two images.
    for image in {first.image, parent_of(make.client, first.image)}:
        make.client.images.remove(image, force=True)
    with watched(make.client) as seen:
        built = build(kept)
    assert "start" not in seen
    code = "import kept_for_later as k, google.adk.version as v; print(k.SAID, v.__version__)"
    assert make.run(built, code).strip() == "again 2.13.0"
    for image in {built.image, parent_of(make.client, built.image)}:
        make.client.images.remove(image, force=True)
    with watched(make.client) as seen:
        build(KeptLayers(folder=kept.folder, secret=b"another secret" * 3))
    assert seen.count("start") == 1


def parent_of(client: docker.DockerClient, image: str) -> str:
    return str(client.images.get(image).attrs["Parent"])


def test_a_package_that_does_not_exist_is_told_with_the_words_of_pip(
    make: Make, tmp_path: Path
) -> None:
    slug, message = make.refused(checkout(tmp_path, "google-adk\nno-such-thing==1\n"))
    assert slug == "build-failed"
    assert "'agents/vendor' (agents/requirements.txt)" in message
    assert "no-such-thing" in message


def test_packages_without_an_adk_are_told_so(make: Make, tmp_path: Path) -> None:
    slug, message = make.refused(checkout(tmp_path, "without-adk\n"))
    assert slug == "no-adk"
    assert "google-adk is not among them" in message


def test_an_agent_for_which_no_packages_are_named_is_told_so(make: Make, tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / "agents" / "requirements.txt").unlink()
    assert make.refused(root)[0] == "requirements-missing"


def test_nothing_is_built_from_source_unless_that_is_asked_for(make: Make, tmp_path: Path) -> None:
    make.index.offer_source("sourced", "1.0", "raise SystemExit('setup.py of sourced has run')")
    root = checkout(tmp_path, "google-adk\nsourced\n")
    slug, message = make.refused(root)
    assert slug == "build-failed"
    assert "sandbox.build.wheels_only" in message
    assert "setup.py of sourced has run" not in message
    assert "setup.py of sourced has run" in make.refused(root, wheels_only=False)[1]


def test_an_index_that_never_answers_is_given_up_and_nothing_is_left(
    make: Make, tmp_path: Path
) -> None:
    root = checkout(tmp_path, "google-adk\nslow-thing==1\n")
    with make.index.never_answering():
        slug, message = make.refused(root, wall_s=4.0)
    assert slug == "build-hangs"
    assert "not done after 4 s" in message
    assert at_work(make.client) == []


def test_a_password_of_the_index_stays_in_none_of_the_layers(make: Make, tmp_path: Path) -> None:
    make.index.password = "s3cret"  # noqa: S105 - what is looked for
    try:
        root = checkout(tmp_path, "google-adk\n# s\n--pre\n")
        address = make.index.address.replace("http://", "http://me:s3cret@")
        assert make.refused(root)[0] == "build-failed"
        built = make(root, index=address)
    finally:
        make.index.password = None
    names, data = contents(make.client, built.image)
    assert b"s3cret" not in data
    assert "opt/backstop/build/index" not in names
    assert "s3cret" not in repr(Recipe(index=address))


def test_a_package_that_fills_the_disk_is_ended(make: Make, tmp_path: Path) -> None:
    fills = (
        "import setuptools, time\nwith open('/opt/backstop/fill', 'wb') as f:\n"
        "    for n in range(64): f.write(bytes(1 << 20))\n    f.flush(); time.sleep(60)\n"
    )
    make.index.offer_source("filling", "1.0", fills)
    root = checkout(tmp_path, "google-adk\nfilling\n")
    slug, message = make.refused(root, wheels_only=False, disk=32 << 20)
    assert slug == "disk-full"
    assert "were written and it was ended" in message


def test_a_package_that_takes_all_memory_is_ended(make: Make, tmp_path: Path) -> None:
    make.index.offer_source(
        "hungry", "1.0", "x = bytearray(1 << 30)\nfor n in range(0, 1 << 30, 4096): x[n] = 1\n"
    )
    root = checkout(tmp_path, "google-adk\nhungry\n")
    slug, message = make.refused(root, wheels_only=False, memory=256 << 20)
    assert slug == "build-memory"
    assert "sandbox.build.memory" in message


OWN = """FROM {base}
RUN python3 -c "open('/pwned', 'w')"
"""


def test_a_checkouts_own_dockerfile_is_not_looked_at_unless_asked_for(
    make: Make, tmp_path: Path
) -> None:
    root = checkout(tmp_path, Dockerfile=OWN.format(base=make.base))
    names, _ = contents(make.client, make(root).image)
    assert "pwned" not in names
    assert "candidate/Dockerfile" in names


def test_a_checkouts_own_dockerfile_is_built_where_asked_for(make: Make, tmp_path: Path) -> None:
    file = OWN.format(base=make.base) + (
        "COPY requirements.txt /\nENV PIP_INDEX_URL={i}\n"
        "RUN python3 -m pip install --trusted-host {h} -r /requirements.txt\n"
    ).format(i=make.index.address, h=make.index.address.split("/")[2])
    root = checkout(
        tmp_path,
        **{
            "deploy/Dockerfile": file,
            "requirements.txt": "google-adk\n",
            ".dockerignore": "*\n!requirements.txt\n",
            ".env": "s3cret",
        },
    )
    root.joinpath(".dockerignore").write_text("*\n!requirements.txt\n!deploy\n")
    built = make(root, dockerfile="deploy/Dockerfile")
    names, data = contents(make.client, built.image)
    assert {"pwned", "candidate/agents/vendor/agent.py"} <= names
    assert b"s3cret" not in data
    code = (
        f"import sys; sys.path.insert(0, {str(CLOCK)!r}); import time_machine, google.adk.version"
    )
    assert make.run(built, code) == ""
    with watched(make.client) as seen:
        assert make(root, dockerfile="deploy/Dockerfile") == built
    assert seen == []


@pytest.mark.parametrize(
    ("step", "slug", "words"),
    [
        ("RUN echo of its own words && false", "build-failed", "of its own words"),
        ("RUN sleep 600", "build-hangs", "not built after 4 s"),
        ("RUN true", "no-adk", "google-adk"),
    ],
)
def test_a_dockerfile_that_does_not_build_leaves_nothing(
    make: Make, tmp_path: Path, step: str, slug: str, words: str
) -> None:
    root = checkout(tmp_path, Dockerfile=f"FROM {make.base}\n{step}\n")
    before = {held.id for held in make.client.containers.list(all=True)}
    wall = 4.0 if slug == "build-hangs" else 240.0
    found, message = make.refused(root, dockerfile="Dockerfile", wall_s=wall)
    assert (found, words in message) == (slug, True), message
    # The daemon ends what nobody waits for any more, and takes its time.
    for _ in range(200):
        left = {held.id for held in make.client.containers.list(all=True)} - before
        if not {held for held in left if step[4:] in command_of(make.client, held)}:
            return
        threading.Event().wait(0.2)
    pytest.fail("what the step started still runs")


def command_of(client: docker.DockerClient, container: str | None) -> str:
    try:
        return str(client.containers.get(container or "").attrs["Config"]["Cmd"])
    except NotFound:
        return ""


def test_a_dockerfile_that_is_not_there_is_told_so(make: Make, tmp_path: Path) -> None:
    assert make.refused(checkout(tmp_path), dockerfile="none")[0] == "requirements-missing"


def test_a_base_image_that_cannot_be_had_is_told_so(make: Make, tmp_path: Path) -> None:
    slug, message = make.refused(checkout(tmp_path), base="localhost:1/none:1")
    assert slug == "base-image"
    assert "sandbox.build.base" in message


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("VOLUME /candidate/data", "volume at /candidate/data"),
        ("VOLUME /opt", "volume at /opt"),
        ("RUN mv /usr/local/bin/python3 /gone", "no python3"),
        ('RUN python3 -c "import pip, shutil; shutil.rmtree(pip.__path__[0])"', "no pip"),
    ],
)
def test_a_base_image_that_does_not_serve_is_told_so(
    make: Make, tmp_path: Path, lines: str, words: str
) -> None:
    file = f"FROM {make.base}\n{lines}\n".encode()
    base, _ = make.client.images.build(fileobj=io.BytesIO(file), rm=True, forcerm=True, tag="d3:x")
    try:
        slug, message = make.refused(checkout(tmp_path), base="d3:x")
    finally:
        make.client.images.remove("d3:x", force=True)
    assert slug == "base-unusable"
    assert words in message
    assert base.id


def test_old_images_are_forgotten_and_the_newest_stay(make: Make) -> None:
    layer = "layer-of-a-test"
    for number in range(3):
        file = f"FROM {make.base}\nLABEL {images.LABEL}={layer} n={number}\n".encode()
        make.client.images.build(fileobj=io.BytesIO(file), rm=True, tag=f"backstop-x:{number}")
    there = {"label": f"{images.LABEL}={layer}"}
    images.forget(make.client, layer=layer, keep=3)
    assert len(make.client.images.list(filters=there)) == 3
    images.forget(make.client, layer=layer, keep=1)
    assert len(make.client.images.list(filters=there)) == 1
    images.forget(make.client, layer=layer)
    assert make.client.images.list(filters=there) == []
