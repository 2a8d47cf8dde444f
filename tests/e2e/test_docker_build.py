"""A candidate's image, made in a real daemon: what is in it, what never is, and what it costs."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

import docker
import pytest

from backstop.adapters.docker.building import images
from backstop.adapters.docker.building.built import CLOCK, Built
from backstop.adapters.docker.building.images import ImageBuilder
from backstop.adapters.docker.building.kept import KeptLayers
from backstop.adapters.docker.building.recipe import Recipe
from backstop.errors import SandboxError
from tests.e2e.building import AT_WORK, FOR_EVER, Building, at_work, checkout, contents, watched


def test_the_image_holds_the_agent_its_packages_and_our_clock(
    building: Building, tmp_path: Path
) -> None:
    built = building(checkout(tmp_path))
    assert built.agent == PurePosixPath("/candidate/agents/vendor")
    code = (
        f"import sys, os; sys.path.insert(0, {str(CLOCK)!r}); import time_machine, _time_machine;"
        f"from google.adk.version import __version__; print(__version__, os.getuid());"
        f"print(open('{built.agent}/agent.py').read())"
    )
    assert building.run(built, code).split("\n") == ["2.13.0 65534", "root_agent = None", "", ""]


def test_nothing_secret_is_in_the_image(building: Building, tmp_path: Path) -> None:
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
    built = building.builder(root, withheld=(ledger,)).build(agent)
    names, data = contents(building.client, built.image)
    assert {"candidate/agents/vendor/agent.py", "candidate/plain.txt"} <= names
    assert b"n0 secret" in data
    assert b"s3cret" not in data
    ours = {name for name in names if name.startswith("candidate/")}
    assert not [name for name in ours if name.endswith((".git", ".env", ".pem", "vendor.db"))]


def test_a_link_out_of_the_checkout_is_refused_and_one_within_works(
    building: Building, tmp_path: Path
) -> None:
    root = checkout(tmp_path / "in", **{"shared/prices.py": "PRICE = 7\n"})
    (root / "agents" / "vendor" / "prices.py").symlink_to("../../shared/prices.py")
    built = building(root)
    assert (
        building.run(built, f"print(open('{built.agent}/prices.py').read())").strip() == "PRICE = 7"
    )
    (tmp_path / "secret").write_text("s3cret")
    (root / "leak").symlink_to("../secret")
    assert building.refused(root)[0] == "context-refused"


def test_an_agent_that_is_a_link_out_of_the_checkout_is_refused(
    building: Building, tmp_path: Path
) -> None:
    root = checkout(tmp_path / "in")
    elsewhere = checkout(tmp_path / "out")
    (root / "agents" / "other").symlink_to(elsewhere / "agents" / "vendor")
    with pytest.raises(SandboxError, match="outside of the checkout"):
        building.builder(root).build(root / "agents" / "other")
    with pytest.raises(SandboxError, match="outside of the checkout"):
        building.builder(root).build(elsewhere / "agents" / "vendor")


def test_an_agent_that_is_its_whole_checkout_keeps_its_name(
    building: Building, tmp_path: Path
) -> None:
    root = checkout(tmp_path) / "agents" / "vendor"
    (root / "requirements.txt").write_text("google-adk==2.13.0\n")
    built = building.builder(root).build(root)
    assert built.agent == PurePosixPath("/candidate/vendor")
    assert building.run(built, "import os; print(os.listdir('/candidate/vendor'))").count(
        "agent.py"
    )


def test_what_an_editable_install_would_add_can_be_imported(
    building: Building, tmp_path: Path
) -> None:
    built = building(checkout(tmp_path, **{"agents/src/desk.py": "", "agents/flat.py": ""}))
    assert building.run(built, "import desk, flat; print(desk.__file__)").strip() == (
        "/candidate/agents/src/desk.py"
    )


def test_no_change_makes_no_container_and_a_change_of_source_installs_nothing(
    building: Building, tmp_path: Path
) -> None:
    root = checkout(tmp_path)
    first = building(root)
    with watched(building.client) as again:
        assert building(root) == first
    assert again == []
    (root / "agents" / "vendor" / "agent.py").write_text("root_agent = 1\n")
    with watched(building.client) as changed:
        assert building(root).image != first.image
    assert changed == ["create", "archive-path", "archive-path", "commit", "destroy"] or (
        "start" not in changed and changed.count("create") == 1
    )


def test_a_base_and_a_candidate_with_the_same_packages_install_them_once(
    building: Building, tmp_path: Path
) -> None:
    building.index.offer("shared_by_two", "1.0", {"shared_by_two.py": ""})
    lines = "google-adk\nshared-by-two\n"
    base = checkout(tmp_path / "base", lines)
    candidate = checkout(tmp_path / "head", f"# {tmp_path}\n{lines}", new="x")
    client, asked = (
        building.client,
        Recipe(base=building.base, index=building.index.address, compiled=False),
    )
    builder = ImageBuilder(
        client, asked, checkouts=[base, candidate], labels=AT_WORK, newest=FOR_EVER
    )
    with watched(client) as seen, ThreadPoolExecutor() as pool:
        agents = [root / "agents" / "vendor" for root in (base, candidate)]
        one, other = pool.map(builder.build, agents)
    assert one.image != other.image
    assert seen.count("start") == 1


def test_packages_that_were_kept_are_not_installed_on_the_next_machine(
    building: Building, tmp_path: Path
) -> None:
    kept = KeptLayers(folder=tmp_path / "cache", secret=b"k" * 32)
    root = checkout(tmp_path / "in", "google-adk==2.13.0\nkept-for-later==1\n")
    building.index.offer("kept_for_later", "1", {"kept_for_later.py": "SAID = 'again'\n"})
    agent = root / "agents" / "vendor"
    asked = Recipe(base=building.base, index=building.index.address, compiled=False)

    def build(layers: KeptLayers) -> Built:
        builder = ImageBuilder(
            building.client, asked, checkouts=[root], labels=AT_WORK, newest=FOR_EVER, kept=layers
        )
        return builder.build(agent)

    first = build(kept)
    # The next machine's daemon has neither of the two images.
    remove_both(building.client, first)
    with watched(building.client) as seen:
        built = build(kept)
    assert "start" not in seen
    code = "import kept_for_later as k, google.adk.version as v; print(k.SAID, v.__version__)"
    assert building.run(built, code).strip() == "again 2.13.0"
    remove_both(building.client, built)
    with watched(building.client) as seen:
        build(KeptLayers(folder=kept.folder, secret=b"another secret" * 3))
    assert seen.count("start") == 1


def test_a_package_that_does_not_exist_is_told_with_the_words_of_pip(
    building: Building, tmp_path: Path
) -> None:
    slug, message = building.refused(checkout(tmp_path, "google-adk\nno-such-thing==1\n"))
    assert slug == "build-failed"
    assert "'agents/vendor' (agents/requirements.txt)" in message
    assert "no-such-thing" in message


def test_packages_without_an_adk_are_told_so(building: Building, tmp_path: Path) -> None:
    slug, message = building.refused(checkout(tmp_path, "without-adk\n"))
    assert slug == "no-adk"
    assert "google-adk is not among them" in message


def test_an_agent_for_which_no_packages_are_named_is_told_so(
    building: Building, tmp_path: Path
) -> None:
    root = checkout(tmp_path)
    (root / "agents" / "requirements.txt").unlink()
    assert building.refused(root)[0] == "requirements-missing"


def test_nothing_is_built_from_source_unless_that_is_asked_for(
    building: Building, tmp_path: Path
) -> None:
    building.index.offer_source("sourced", "1.0", "raise SystemExit('setup.py of sourced has run')")
    root = checkout(tmp_path, "google-adk\nsourced\n")
    slug, message = building.refused(root)
    assert slug == "build-failed"
    assert "sandbox.build.wheels_only" in message
    assert "setup.py of sourced has run" not in message
    assert "setup.py of sourced has run" in building.refused(root, wheels_only=False)[1]


def test_an_index_that_never_answers_is_given_up_and_nothing_is_left(
    building: Building, tmp_path: Path
) -> None:
    root = checkout(tmp_path, "google-adk\nslow-thing==1\n")
    with building.index.never_answering():
        slug, message = building.refused(root, wall_s=4.0)
    assert slug == "build-hangs"
    assert "not done after 4 s" in message
    assert at_work(building.client) == []


def test_a_password_of_the_index_stays_in_none_of_the_layers(
    building: Building, tmp_path: Path
) -> None:
    building.index.password = "s3cret"  # noqa: S105 - what is looked for
    try:
        root = checkout(tmp_path, "google-adk\n# s\n--pre\n")
        address = building.index.address.replace("http://", "http://me:s3cret@")
        assert building.refused(root)[0] == "build-failed"
        built = building(root, index=address)
    finally:
        building.index.password = None
    names, data = contents(building.client, built.image)
    assert b"s3cret" not in data
    assert "opt/backstop/build/index" not in names
    assert "s3cret" not in repr(Recipe(index=address))


def test_a_package_that_fills_the_disk_is_ended(building: Building, tmp_path: Path) -> None:
    fills = (
        "import setuptools, time\nwith open('/opt/backstop/fill', 'wb') as f:\n"
        "    for n in range(64): f.write(bytes(1 << 20))\n    f.flush(); time.sleep(60)\n"
    )
    building.index.offer_source("filling", "1.0", fills)
    root = checkout(tmp_path, "google-adk\nfilling\n")
    slug, message = building.refused(root, wheels_only=False, disk=32 << 20)
    assert slug == "disk-full"
    assert "were written and it was ended" in message


def test_a_package_that_takes_all_memory_is_ended(building: Building, tmp_path: Path) -> None:
    building.index.offer_source(
        "hungry", "1.0", "x = bytearray(1 << 30)\nfor n in range(0, 1 << 30, 4096): x[n] = 1\n"
    )
    root = checkout(tmp_path, "google-adk\nhungry\n")
    slug, message = building.refused(root, wheels_only=False, memory=256 << 20)
    assert slug == "build-memory"
    assert "sandbox.build.memory" in message


def test_a_base_image_that_cannot_be_had_is_told_so(building: Building, tmp_path: Path) -> None:
    slug, message = building.refused(checkout(tmp_path), base="localhost:1/none:1")
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
    building: Building, tmp_path: Path, lines: str, words: str
) -> None:
    file = f"FROM {building.base}\n{lines}\n".encode()
    base, _ = building.client.images.build(
        fileobj=io.BytesIO(file), rm=True, forcerm=True, tag="d3:x"
    )
    try:
        slug, message = building.refused(checkout(tmp_path), base="d3:x")
    finally:
        building.client.images.remove("d3:x", force=True)
    assert slug == "base-unusable"
    assert words in message
    assert base.id


def test_old_images_are_forgotten_and_the_newest_stay(building: Building) -> None:
    layer = "layer-of-a-test"
    for number in range(3):
        file = f"FROM {building.base}\nLABEL {images.LABEL}={layer} n={number}\n".encode()
        building.client.images.build(fileobj=io.BytesIO(file), rm=True, tag=f"backstop-x:{number}")
    there = {"label": f"{images.LABEL}={layer}"}
    images.forget(building.client, layer=layer, keep=3)
    assert len(building.client.images.list(filters=there)) == 3
    images.forget(building.client, layer=layer, keep=1)
    assert len(building.client.images.list(filters=there)) == 1
    images.forget(building.client, layer=layer)
    assert building.client.images.list(filters=there) == []


def remove_both(client: docker.DockerClient, built: Built) -> None:
    """Remove the layer with the source, and then the one with the packages."""
    packages = client.images.get(built.image).attrs["Parent"]
    for image in (built.image, packages):
        client.images.remove(image, force=True)
