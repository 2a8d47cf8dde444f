"""What happened on GitHub that made this run: read once, from what the runner leaves behind.

Branch names come from whoever opened the pull request: they are for showing, escaped, and for
nothing else. Commits are hexadecimal, or the event is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, NoReturn, TypeVar
from urllib.parse import urlsplit

import msgspec

from backstop.errors import BackstopError

_SLUG: Final = "event"
_MOST: Final = 32 * 1024 * 1024  # GitHub cuts its own off at 25 MB
_SHA: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REPO: Final = re.compile(r"[A-Za-z0-9-][A-Za-z0-9_.-]*/[A-Za-z0-9_.-]+")
_NOWHERE: Final = re.compile(r"0+")
_NUMBER: Final = re.compile(r"[0-9]{1,18}")

Payload = TypeVar("Payload")


class Kind(Enum):
    """What a gate can run on, by the runner's own names."""

    PULL_REQUEST = "pull_request"
    MERGE_GROUP = "merge_group"
    WORKFLOW_DISPATCH = "workflow_dispatch"
    PUSH = "push"
    WORKFLOW_RUN = "workflow_run"
    """Another workflow has ended: what it left behind is to be posted, as data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event: which commit is judged, against which, and where the answer goes.

    Refs are names of branches or tags without ``refs/heads/``. What an event does not say is
    None: `number` but on a pull request (and, at times, a workflow run), the base where somebody
    started the run by hand or pushed a new branch.
    """

    kind: Kind
    repo: str
    """``owner/name`` of the repository whose workflow runs."""
    number: int | None
    base_ref: str | None
    base_sha: str | None
    head_ref: str
    head_sha: str
    head_repo: str | None
    """``owner/name`` of where the head lies; None if that repository is gone."""
    fork: bool
    """The head lies in another repository, or in none any more: the token reads only."""
    merged_sha: str
    """The commit that is checked out: on a pull request the merge of its head into its base."""
    default_branch: str | None
    run: int
    """The id of the run. It grows over the whole life of a repository; a run's *number* begins
    anew when somebody renames the workflow."""
    attempt: int
    run_url: str
    server_url: str
    api_url: str
    graphql_url: str


class _Repository(msgspec.Struct, frozen=True):
    id: int
    full_name: str
    default_branch: str | None = None


class _Side(msgspec.Struct, frozen=True):
    ref: str
    sha: str
    repo: _Repository | None = None


class _Pull(msgspec.Struct, frozen=True):
    number: int
    head: _Side
    base: _Side


class _PullRequest(msgspec.Struct, frozen=True):
    pull_request: _Pull
    repository: _Repository | None = None


class _Group(msgspec.Struct, frozen=True):
    head_ref: str
    head_sha: str
    base_ref: str
    base_sha: str


class _MergeGroup(msgspec.Struct, frozen=True):
    merge_group: _Group
    repository: _Repository | None = None


class _Dispatch(msgspec.Struct, frozen=True):
    ref: str
    repository: _Repository | None = None


class _Push(msgspec.Struct, frozen=True):
    ref: str
    before: str
    after: str
    repository: _Repository | None = None


class _Number(msgspec.Struct, frozen=True):
    number: int


class _Run(msgspec.Struct, frozen=True):
    head_sha: str
    head_branch: str | None = None
    head_repository: _Repository | None = None
    pull_requests: list[_Number] = []


class _WorkflowRun(msgspec.Struct, frozen=True):
    workflow_run: _Run
    repository: _Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What only the payload says."""

    head_ref: str
    head_sha: str
    head_repo: str | None
    number: int | None = None
    base_ref: str | None = None
    base_sha: str | None = None
    fork: bool = False
    default_branch: str | None = None


def read_event(env: Mapping[str, str]) -> Event:
    """The event that the environment of the runner names.

    Raises `BackstopError` (``event``) for one that a gate cannot run on, for a payload that is
    missing or says something else, and for a variable that the runner always sets and did not.
    """
    name = _set(env, "GITHUB_EVENT_NAME")
    try:
        kind = Kind(name)
    except ValueError:
        _refuse_kind(name)
    told = _READERS[kind](_payload(env), env)
    repo = _repository(env)
    server = _url(env, "GITHUB_SERVER_URL", "https://github.com")
    run, attempt = _count(env, "GITHUB_RUN_ID"), _count(env, "GITHUB_RUN_ATTEMPT", "1")
    return Event(
        kind=kind,
        repo=repo,
        number=told.number,
        base_ref=told.base_ref,
        base_sha=told.base_sha,
        head_ref=told.head_ref,
        head_sha=told.head_sha,
        head_repo=told.head_repo,
        fork=told.fork,
        merged_sha=_sha(_set(env, "GITHUB_SHA"), "GITHUB_SHA"),
        default_branch=told.default_branch,
        run=run,
        attempt=attempt,
        run_url=f"{server}/{repo}/actions/runs/{run}/attempts/{attempt}",
        server_url=server,
        api_url=_url(env, "GITHUB_API_URL", "https://api.github.com"),
        graphql_url=_url(env, "GITHUB_GRAPHQL_URL", "https://api.github.com/graphql"),
    )


def _pull_request(data: bytes, _env: Mapping[str, str]) -> _Told:
    said = _parsed(data, _PullRequest)
    pull = said.pull_request
    head, base = pull.head, pull.base
    # A head without a repository was a fork that somebody deleted. `repo.fork` says nothing
    # here: the repository with the workflow may be a fork of yet another.
    ours = head.repo is not None and base.repo is not None and head.repo.id == base.repo.id
    return _Told(
        number=pull.number,
        base_ref=base.ref,
        base_sha=_sha(base.sha, "pull_request.base.sha"),
        head_ref=head.ref,
        head_sha=_sha(head.sha, "pull_request.head.sha"),
        head_repo=None if head.repo is None else head.repo.full_name,
        fork=not ours,
        default_branch=_default(said.repository or base.repo),
    )


def _merge_group(data: bytes, env: Mapping[str, str]) -> _Told:
    said = _parsed(data, _MergeGroup)
    group = said.merge_group
    return _Told(
        base_ref=_short(group.base_ref),
        base_sha=_sha(group.base_sha, "merge_group.base_sha"),
        head_ref=_short(group.head_ref),
        head_sha=_sha(group.head_sha, "merge_group.head_sha"),
        head_repo=_repository(env),
        default_branch=_default(said.repository),
    )


def _workflow_dispatch(data: bytes, env: Mapping[str, str]) -> _Told:
    said = _parsed(data, _Dispatch)
    return _Told(
        head_ref=_short(said.ref),
        head_sha=_sha(_set(env, "GITHUB_SHA"), "GITHUB_SHA"),
        head_repo=_repository(env),
        default_branch=_default(said.repository),
    )


def _push(data: bytes, env: Mapping[str, str]) -> _Told:
    said = _parsed(data, _Push)
    if _NOWHERE.fullmatch(said.after):
        raise BackstopError(
            "the push deleted its branch, so there is nothing to judge; let the workflow run on "
            "pushes to branches that live",
            slug=_SLUG,
        )
    new = _NOWHERE.fullmatch(said.before)
    return _Told(
        base_ref=_short(said.ref),
        base_sha=None if new else _sha(said.before, "before"),
        head_ref=_short(said.ref),
        head_sha=_sha(said.after, "after"),
        head_repo=_repository(env),
        default_branch=_default(said.repository),
    )


def _workflow_run(data: bytes, _env: Mapping[str, str]) -> _Told:
    said = _parsed(data, _WorkflowRun)
    run = said.workflow_run
    head = run.head_repository
    # GitHub leaves the list empty for forks, and names several where branches share a commit.
    numbers = {pull.number for pull in run.pull_requests}
    return _Told(
        number=numbers.pop() if len(numbers) == 1 else None,
        head_ref=run.head_branch or "",
        head_sha=_sha(run.head_sha, "workflow_run.head_sha"),
        head_repo=None if head is None else head.full_name,
        fork=head is None or head.id != said.repository.id,
        default_branch=_default(said.repository),
    )


_READERS: Final[Mapping[Kind, Callable[[bytes, Mapping[str, str]], _Told]]] = {
    Kind.PULL_REQUEST: _pull_request,
    Kind.MERGE_GROUP: _merge_group,
    Kind.WORKFLOW_DISPATCH: _workflow_dispatch,
    Kind.PUSH: _push,
    Kind.WORKFLOW_RUN: _workflow_run,
}


def _payload(env: Mapping[str, str]) -> bytes:
    path = Path(_set(env, "GITHUB_EVENT_PATH"))
    try:
        with path.open("rb") as file:
            data = file.read(_MOST + 1)
    except OSError as error:
        raise BackstopError(
            f"the event file {path} cannot be read: {error.strerror}; the runner writes it, so a "
            "run by hand has to bring one in GITHUB_EVENT_PATH",
            slug=_SLUG,
        ) from None
    if len(data) > _MOST:
        raise BackstopError(f"the event file {path} is larger than any event", slug=_SLUG)
    return data


def _parsed(data: bytes, shape: type[Payload]) -> Payload:
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BackstopError(
            f"the event file is not what GitHub sends for this event: {error}; see what wrote "
            "GITHUB_EVENT_PATH",
            slug=_SLUG,
        ) from None


def _set(env: Mapping[str, str], name: str) -> str:
    if not (value := env.get(name, "")):
        raise BackstopError(
            f"{name} is not set; the runner of GitHub Actions sets it, so either this is no such "
            "run, or a step before took it away",
            slug=_SLUG,
        )
    return value


def _repository(env: Mapping[str, str]) -> str:
    repo = _set(env, "GITHUB_REPOSITORY")
    if not _REPO.fullmatch(repo) or repo.endswith(("/.", "/..")):
        raise BackstopError(
            f"GITHUB_REPOSITORY is {repo[:200]!r}; it has to be owner/name", slug=_SLUG
        )
    return repo


def _url(env: Mapping[str, str], name: str, default: str) -> str:
    url = (env.get(name) or default).rstrip("/")
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.username:
        raise BackstopError(f"{name} is {url[:200]!r}; it has to be https://HOST", slug=_SLUG)
    return url


def _count(env: Mapping[str, str], name: str, default: str | None = None) -> int:
    text = env.get(name) or default or _set(env, name)
    if not _NUMBER.fullmatch(text):
        raise BackstopError(f"{name} is {text[:200]!r}; it has to be a number", slug=_SLUG)
    return int(text)


def _sha(text: str, where: str) -> str:
    if not _SHA.fullmatch(text):
        raise BackstopError(f"{where} is {text[:200]!r}; it has to be a full commit", slug=_SLUG)
    return text


def _short(ref: str) -> str:
    return ref.removeprefix("refs/heads/").removeprefix("refs/tags/")


def _default(repository: _Repository | None) -> str | None:
    return None if repository is None else repository.default_branch


def _refuse_kind(name: str) -> NoReturn:
    known = ", ".join(kind.value for kind in Kind)
    advice = (
        "it hands a token that writes to code from outside: use pull_request"
        if name == "pull_request_target"
        else f"let the workflow run on one of {known}"
    )
    raise BackstopError(f"no gate runs on the event {name[:100]!r}; {advice}", slug=_SLUG) from None
