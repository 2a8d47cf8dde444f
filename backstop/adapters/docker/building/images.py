"""Makes the image of a candidate, layer by layer, and makes none twice.

A base; on it the packages, by a container that has a network and no source; on that the source,
by a container that is never started. Each layer is an image named by the digest of what it was
made of, so a change of source installs nothing, and no change makes no container at all.
"""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from hashlib import sha256
from pathlib import Path, PurePosixPath
from time import monotonic
from typing import Final

import docker
from docker.errors import DockerException, NotFound

from backstop.adapters.docker.building.built import IS_COMPILED, SOURCE, Built
from backstop.adapters.docker.building.context import Context, read_context
from backstop.adapters.docker.building.daemon import (
    container,
    image_id,
    labels_of,
    pulled,
    told,
    unhurried,
    volumes_of,
)
from backstop.adapters.docker.building.ignoring import DOCKERS
from backstop.adapters.docker.building.installing import Say, installed
from backstop.adapters.docker.building.kept import KeptLayers
from backstop.adapters.docker.building.locks import find_packages
from backstop.adapters.docker.building.ownfile import build_own
from backstop.adapters.docker.building.recipe import Recipe
from backstop.adapters.docker.building.requirements import Packages
from backstop.adapters.docker.building.template import HOME, Template, template
from backstop.adapters.project import project_of
from backstop.errors import SandboxError

LABEL: Final = "dev.backstop.image"
"""On every image that is kept: which layer it is."""
PACKAGES: Final = "packages"
CANDIDATE: Final = "candidate"

_PYTHON: Final = "dev.backstop.python"
_SITE: Final = "dev.backstop.packages"
_NEWEST: Final = {PACKAGES: 4, CANDIDATE: 8}
_FORM: Final = "1"
_LARGEST_LOCK: Final = 16 << 20
_RUNS_AS: Final = "65534:65534"


def _nothing(_: str) -> None:
    pass


class ImageBuilder:
    """Makes images of candidates, from any thread.

    `checkouts` are the folders that agents lie in, each the whole of what goes into an image;
    an agent outside of all of them is refused. `withheld` never go in: ledgers, above all.
    `labels` are put on containers while they are at work. `kept` are layers with packages from
    other machines, where only wheels were installed. Of each layer the `newest` images stay, so
    many of each, for the next build. `say` is told what takes long.
    """

    def __init__(
        self,
        client: docker.DockerClient,
        recipe: Recipe,
        *,
        checkouts: Sequence[Path],
        withheld: Collection[Path] = (),
        labels: Mapping[str, str] | None = None,
        kept: KeptLayers | None = None,
        newest: Mapping[str, int] | None = None,
        say: Say = _nothing,
    ) -> None:
        self._client = client
        self._recipe = recipe
        self._checkouts = tuple(checkouts)
        self._withheld = tuple(withheld)
        self._labels = dict(labels or {})
        # What a package or a Dockerfile ran while it was built, ran there as it liked.
        self._kept = kept if recipe.wheels_only and recipe.dockerfile is None else None
        self._newest = newest or _NEWEST
        self._say = say
        # Base and candidate have the same packages as a rule: the second waits for the first.
        self._one_at_a_time = threading.Lock()

    def build(self, agent: Path) -> Built:
        """The image of the checkout that holds the agent in folder `agent`.

        Raises `SandboxError`, its slug one of: ``context-refused``, ``context-too-large``,
        ``context-unreadable``, ``requirements-missing``, ``requirements-refused``,
        ``base-image``, ``base-unusable``, ``build-failed``, ``build-hangs``, ``build-memory``,
        ``disk-full``, ``no-adk``, ``docker``.
        """
        deadline = monotonic() + self._recipe.wall_s
        root, inside = self._place(agent)
        # An agent that is its whole checkout keeps the name of its folder.
        named = PurePosixPath(root.name) if not inside.parts else PurePosixPath()
        top = PurePosixPath(*SOURCE.parts[1:]) / named
        with read_context(
            root,
            prefix=top,
            withheld=self._names(root),
            ruling=self._recipe.ruling,
            caps=self._recipe.caps,
        ) as context:
            _check_agent(inside, context)
            packages = None if self._recipe.dockerfile else self._packages(context, inside)
            base = self._base(root, deadline=deadline)
            ready = self._with_packages(base, packages, agent=inside, deadline=deadline)
            image = self._with_source(ready, context, _import_path(packages, SOURCE / named))
        start = project_of(root / inside, [root])
        # What lies above a checkout is in no image.
        within = start.relative_to(root) if start.is_relative_to(root) else None
        return Built(
            image=image,
            agent=SOURCE / named / inside,
            start=SOURCE if within is None else SOURCE / named / within,
            python=labels_of(self._client, ready)[_PYTHON],
        )

    def _place(self, agent: Path) -> tuple[Path, PurePosixPath]:
        """The checkout that an agent lies in, and where in it."""
        real = agent.resolve()
        roots = [root.resolve() for root in self._checkouts]
        holding = [root for root in roots if real.is_relative_to(root)]
        if not holding:
            raise SandboxError(
                f"{agent}: lies outside of the checkout, or is a link out of it; only what is in "
                "the checkout is built",
                slug="context-refused",
            )
        root = max(holding, key=lambda one: len(one.parts))
        return root, PurePosixPath(*real.relative_to(root).parts)

    def _names(self, root: Path) -> list[PurePosixPath]:
        # Neither a link to a file, nor the file itself, may be there.
        forms = (form for path in self._withheld for form in (path.absolute(), path.resolve()))
        return [
            PurePosixPath(*form.relative_to(root).parts)
            for form in forms
            if form.is_relative_to(root)
        ]

    def _packages(self, context: Context, inside: PurePosixPath) -> Packages:
        return find_packages(
            inside,
            partial(context.read, most=_LARGEST_LOCK),
            named=self._recipe.requirements,
            index=self._recipe.index,
        )

    def _base(self, root: Path, *, deadline: float) -> str:
        with told(f"the base image {self._recipe.base_name}"):
            if self._recipe.dockerfile is None:
                self._say(f"looking for {self._recipe.base_name}")
                base = pulled(self._client, self._recipe.base_name, deadline=deadline)
            else:
                with read_context(
                    root,
                    withheld=self._names(root),
                    ignore_file=DOCKERS,
                    caps=self._recipe.caps,
                ) as context:
                    base = build_own(
                        self._client,
                        context,
                        self._recipe,
                        deadline=deadline,
                        labels={LABEL: PACKAGES},
                        say=self._say,
                    )
            for volume in map(PurePosixPath, volumes_of(self._client, base)):
                if any(
                    ours.is_relative_to(volume) or volume.is_relative_to(ours)
                    for ours in (SOURCE, HOME)
                ):
                    raise SandboxError(
                        f"the base image has a volume at {volume}, where the candidate has to lie; "
                        "name another one in sandbox.build.base",
                        slug="base-unusable",
                    )
        return base

    def _with_packages(
        self, base: str, packages: Packages | None, *, agent: PurePosixPath, deadline: float
    ) -> str:
        """The image with the packages, and our clock, on the base."""
        what = template(packages, self._recipe, base=base)
        name = f"backstop-{PACKAGES}:{what.digest[:32]}"
        subject = f"the packages of {str(agent)!r}"
        if packages is not None:
            subject += f" ({packages.file})"
        with told(subject), self._one_at_a_time:
            if (found := image_id(self._client, name)) is not None:
                return found
            if (again := self._restored(base, what, name)) is not None:
                return again
            return self._install(base, what, name, subject=subject, deadline=deadline)

    def _restored(self, base: str, what: Template, name: str) -> str | None:
        """The image with the packages, from an archive that was kept."""
        if self._kept is None:
            return None
        with self._kept.opened(what.digest) as found:
            if found is None:
                return None
            self._say("unpacking packages that were kept")
            facts, archive = found
            with contextlib.suppress(NotFound), self._idle(base) as made:
                self._client.api.put_archive(made, str(HOME.parent), archive)
                return self._committed(made, name, PACKAGES, facts)
        return None  # the base has no folder to unpack it into

    def _idle(self, image: str) -> AbstractContextManager[str]:
        """A container that is never started."""
        bounds = {"network_mode": "none"}
        return container(self._client, image, ["true"], bounds=bounds, labels=self._labels)

    def _install(
        self, base: str, what: Template, name: str, *, subject: str, deadline: float
    ) -> str:
        self._say("installing packages")
        with installed(
            self._client,
            base,
            what,
            self._recipe,
            subject=subject,
            deadline=deadline,
            labels=self._labels,
            say=self._say,
        ) as done:
            facts = {_PYTHON: done.python, _SITE: done.packages}
            if done.packages and self._recipe.compiled:
                facts[IS_COMPILED] = "yes"
            made = self._committed(done.container, name, PACKAGES, facts)
            if self._kept is not None:
                self._say("keeping packages for the next machine")
                archive, _ = self._client.api.get_archive(done.container, str(HOME))
                self._kept.keep(what.digest, facts, archive)
        self._forget_old(PACKAGES)
        return made

    def _with_source(self, ready: str, context: Context, path: Sequence[PurePosixPath]) -> str:
        """The image with the source on that: put there by the daemon, nothing of it was run."""
        site = labels_of(self._client, ready).get(_SITE, "")
        line = "".join(f"{folder}\n" for folder in path).encode() if site else b""
        digest = sha256(f"{_FORM}\0{ready}\0{context.digest}\0".encode() + line).hexdigest()
        name = f"backstop-{CANDIDATE}:{digest[:32]}"
        with told("the candidate's image"):
            if (found := image_id(self._client, name)) is not None:
                return found
            self._say("putting the candidate into its image")
            with self._idle(ready) as made:
                self._client.api.put_archive(made, "/", context.archive)
                if line:
                    self._client.api.put_archive(made, site, _one_file("candidate.pth", line))
                image = self._committed(made, name, CANDIDATE, {})
        self._forget_old(CANDIDATE)
        return image

    def _committed(self, made: str, name: str, layer: str, labels: Mapping[str, str]) -> str:
        """The image of a container, which keeps none of the labels of a container at work."""
        repository, _, tag = name.partition(":")
        written = {**dict.fromkeys(self._labels, ""), LABEL: layer, **labels}
        conf = {"Cmd": ["true"], "Entrypoint": [""], "Healthcheck": {"Test": ["NONE"]}}
        # In this form, since Podman overlooks them in the other.
        changes = [f"USER {_RUNS_AS}", "WORKDIR /"]
        changes += [
            f"LABEL {json.dumps(name)}={json.dumps(text)}" for name, text in written.items()
        ]
        with unhurried(self._client, self._recipe.wall_s):
            self._client.api.commit(
                made, repository=repository, tag=tag, conf=conf, changes=changes
            )
        # Not the id that the answer names: Podman writes it in another way there.
        return image_id(self._client, name) or name

    def _forget_old(self, layer: str) -> None:
        forget(self._client, layer=layer, keep=self._newest[layer])


def forget(client: docker.DockerClient, *, layer: str, keep: int = 0) -> None:
    """Remove the images of a layer but for the newest `keep`; what is in use stays."""
    with contextlib.suppress(DockerException):
        found = client.api.images(filters={"label": f"{LABEL}={layer}"})
        for old in sorted(found, key=lambda image: image["Created"], reverse=True)[keep:]:
            for tag in old["RepoTags"] or [old["Id"]]:
                # Podman writes its registry before the name.
                if tag.rpartition("/")[2].startswith(("backstop-", "sha256:")):
                    with contextlib.suppress(DockerException):
                        client.api.remove_image(tag)


def _check_agent(inside: PurePosixPath, context: Context) -> None:
    if inside.parts and str(inside) not in context.entries:
        raise SandboxError(
            f"the agent {str(inside)!r} is not in what goes into the image; see .backstopignore "
            "at the checkout's top",
            slug="context-refused",
        )


def _import_path(packages: Packages | None, top: PurePosixPath) -> list[PurePosixPath]:
    """Where the project that names the packages lies: what an editable install would add."""
    if packages is None:
        return []
    folder = top / PurePosixPath(packages.file).parent
    return [folder, folder / "src"]


def _one_file(name: str, data: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(data), 0o644
        tar.addfile(member, io.BytesIO(data))
    return packed.getvalue()
