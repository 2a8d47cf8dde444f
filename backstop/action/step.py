"""One step of a workflow, from its variables to its exit code.

Whatever happens, every place is told before the step ends: a required check always reports.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TextIO

from backstop.action.context import Known, context_of, id_of
from backstop.action.inputs import PREFIX, InputError, Inputs, folder, parse, within
from backstop.action.outcome import Failed, Judged, NotApplicable, Outcome, outcome_of
from backstop.action.posting import REPORTED, pull_request_of, reported
from backstop.action.telling import Places, tell
from backstop.adapters.github.client import GitHub
from backstop.adapters.github.comments import Comments
from backstop.adapters.github.event import Event, Kind, read_event
from backstop.adapters.github.retrying import Pacing
from backstop.adapters.github.runner import Runner
from backstop.errors import BackstopError
from backstop.gate.request import GateRequest, ReplayRequest
from backstop.reports.carried import carry_forward
from backstop.reports.comment import marker
from backstop.wiring.action import DEPLOYS, Ground, ground_of, judged, rules_of, sides_of
from backstop.wiring.faults import as_ours

_SECRET_INPUTS: Final = ("github-token", "cache-secret")


class Interrupted(BackstopError):
    """The workflow was cancelled."""

    slug = "interrupted"


def run(
    environment: Mapping[str, str],
    out: TextIO,
    *,
    chance: Callable[[], str],
    pacing: Pacing | None = None,
) -> int:
    """Run the step that `environment` describes, and tell what came of it; the exit code.

    `out` is what the runner reads; `chance` gives an unguessable word at each call; `pacing` is
    how long GitHub is waited for.
    """
    runner = Runner(environment, out, chance=chance)
    for name in _SECRET_INPUTS:
        runner.mask(environment.get(PREFIX + name.upper(), ""))
    known = Known(pacing=pacing or Pacing())
    with ExitStack() as stack:
        outcome = _outcome(environment, known, runner, stack)
        places = _places(environment, known, runner)
        with contextlib.suppress(BackstopError):  # what cannot be read is not carried, no more
            _remember(known, places.comments)
        is_posted = tell(outcome, context_of(environment, known), places)
    if known.is_reported:
        # Whoever posts another run's report has done its work: that run's own check decides.
        return 0 if is_posted else 2
    return outcome.exit_code


def _outcome(
    environment: Mapping[str, str], known: Known, runner: Runner, stack: ExitStack
) -> Outcome:
    try:
        known.event = event = read_event(environment)
        token = environment.get(f"{PREFIX}GITHUB-TOKEN", "").strip() or None
        known.github = github = stack.enter_context(
            GitHub(api=event.api_url, graphql=event.graphql_url, token=token, pacing=known.pacing)
        )
        known.inputs = inputs = parse(environment)
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="backstop-")))
        workspace = _workspace(environment)
        if inputs.post_from is not None:
            return _reported(known, event, github, within(workspace, inputs.post_from))
        # Whatever prints while the candidate is built and replayed, the runner must not obey.
        with runner.untrusted():
            return _gated(known, event, inputs, github, workspace=workspace, scratch=scratch)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is told as one line, never green
        return Failed.by(as_ours(error))
    except KeyboardInterrupt:
        known.github = None  # whoever cancels waits no longer than need be
        return Failed.by(Interrupted("the run was cancelled; nothing was decided: run it again"))


def _reported(known: Known, event: Event, github: GitHub, folder: Path) -> Outcome:
    known.number = pull_request_of(event, github)
    known.ground = Ground(notes=(REPORTED,))
    outcome = reported(folder)
    known.is_reported = True
    return outcome


def _gated(
    known: Known,
    event: Event,
    inputs: Inputs,
    github: GitHub,
    *,
    workspace: Path,
    scratch: Path,
) -> Judged | NotApplicable:
    if event.kind is Kind.WORKFLOW_RUN:
        raise InputError(
            "on workflow_run another run's report is posted: name its folder by post-from"
        )
    config = within(workspace, inputs.config)
    named = None if inputs.base is None else folder(workspace, inputs.base)
    known.ground = ground = ground_of(
        event, named=named, ref=inputs.base_ref, github=github, into=scratch
    )
    base = top = None
    if ground.base is not None:
        sides = sides_of(ground.base, config, workspace=workspace, named=named is not None)
        base, top = sides.base, sides.top
    if config.is_file():
        known.rules = rules_of(config, root=workspace, base=base, base_root=ground.base)
    request = GateRequest(
        replay=ReplayRequest(
            config=config,
            agent=inputs.agent,
            base=base,
            base_is_checkout=base is not None,
            top=top,
            base_top=ground.base,
            ancestors=ground.ancestors,
            runtime=inputs.runtime.value,
        ),
        fail_on=inputs.fail_on,
        allow_empty=inputs.allow_empty,
        subtract=event.kind not in DEPLOYS,
        changed_only=_changed_only(inputs, event) and base is not None,
        repeat=inputs.repeat,
        cache_dir=None if inputs.cache_dir is None else folder(workspace, inputs.cache_dir),
        cache_key=inputs.cache_secret or None,
    )
    known.judgement = judged(request, root=workspace)
    return outcome_of(known.judgement)


def _changed_only(inputs: Inputs, event: Event) -> bool:
    """Unless the workflow says otherwise, a change is asked about what it touches (G09)."""
    return event.kind not in DEPLOYS if inputs.changed_only is None else inputs.changed_only


def _remember(known: Known, comments: Comments | None) -> None:
    """Look up what the comment said of the agents that were carried forward."""
    names = () if known.judgement is None else known.judgement.carried
    if not names or comments is None:
        return
    said = comments.previous(marker(id_of(known.inputs)))
    if isinstance(said, str):
        found = (carry_forward(said, name) for name in names)
        known.carried = tuple(one for one in found if one is not None)


def _workspace(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("GITHUB_WORKSPACE") or ".")


def _places(environment: Mapping[str, str], known: Known, runner: Runner) -> Places:
    event, github, inputs = known.event, known.github, known.inputs
    comments = None
    if event is not None and github is not None:
        # What only happens to have a number, as a run that has ended, is no place to comment.
        number = event.number if event.kind is Kind.PULL_REQUEST else known.number
        comments = None if number is None else Comments(github, repo=event.repo, number=number)
    return Places(
        runner=runner,
        workspace=_workspace(environment),
        inputs=inputs,
        comments=comments,
        writes_report=inputs is not None and inputs.post_from is None,
        fork=event is not None and event.fork and event.kind is Kind.PULL_REQUEST,
    )
