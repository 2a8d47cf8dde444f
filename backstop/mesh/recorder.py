# ruff: noqa: ANN401, ARG002 - the framework's values are of any type, its hooks have its signatures
"""The ADK plugin that records what each step of a run was made from.

It never changes what a run does: it only looks, and a record that cannot be written is missing,
which nobody takes for trust. It stands before plugins that answer for the agent, as the guard
does.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Collection, Coroutine, Mapping
from functools import partial
from typing import Any, Final, ParamSpec

from google.adk.plugins.base_plugin import BasePlugin

from backstop.adk.control import is_control
from backstop.adk.requests import RequestDigester
from backstop.core.checkpoint import Dep, DepKind, StepKind
from backstop.errors import BackstopError
from backstop.mesh.activations import activate
from backstop.mesh.books import Books
from backstop.mesh.declare import NOTING, Evidence
from backstop.mesh.definitions import agent_deps, parts_of, path_of, tool_deps
from backstop.mesh.noting import Noter
from backstop.mesh.recording import Recording
from backstop.mesh.services import RecordedArtifacts, RecordedMemory, Shelf
from backstop.mesh.sitting import Sitting, is_persons, user_left
from backstop.mesh.spelling import Digester
from backstop.mesh.spots import SPOT, Frame, Open, reading
from backstop.mesh.state import Keys, RecordedState, Written
from backstop.mesh.trail import Trail
from backstop.mesh.trails import Trails

_log: Final = logging.getLogger("backstop")

_MARK: Final = "__backstop_sitting__"

_REMEMBERED: Final = 256
"""Agents and tools whose digests are remembered."""

P = ParamSpec("P")


def looking(hook: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, Coroutine[Any, Any, None]]:
    """A hook that only looks: whatever goes wrong in it is no reason to end a run.

    The run is not recorded any further. Steps without a record are not trusted.
    """

    @functools.wraps(hook)
    async def looked(*args: P.args, **named: P.kwargs) -> None:
        try:
            await hook(*args, **named)
        except Exception:  # noqa: BLE001 - whatever it is
            _log.exception("backstop records this run no further: a fault in %s", hook.__name__)
            plugin, noting = args[0], NOTING.get()
            if isinstance(plugin, MeshPlugin):
                plugin.faults += 1
            if isinstance(noting, Noter):
                noting.sitting.recording.broken = True

    return looked


class MeshPlugin(BasePlugin):
    """Records the runs of an agent as checkpoints, and what its steps left.

    `evidence` says which keys of a session's state are evidence; `rules` gives the digests of the
    policy rules that judge a tool's or an agent's steps, by rule; `where` gives the run and the
    run's step, ``s0`` and so on, of a runner's context: left out, or where it gives None, a
    session is a run and each message to it a step. `effects` tells of a tool in a runner's
    context whether its calls are effects: left out, those of `@effect`. `kept` names steps of
    earlier attempts that stand, and are said again by `backstop.mesh.reusing`.
    """

    def __init__(
        self,
        books: Books,
        *,
        evidence: Mapping[str, Evidence] | None = None,
        rules: Callable[[str], Mapping[str, str]] | None = None,
        where: Callable[[Any], tuple[str, str] | None] | None = None,
        effects: Callable[[Any, Any], bool] | None = None,
        kept: Collection[str] = (),
        name: str = "backstop_mesh",
    ) -> None:
        super().__init__(name)
        self.faults = 0
        """How many runs it could not record to their end, for a fault of its own."""
        self._books = books
        self._evidence = evidence or {}
        self._rules = rules or (lambda _: {})
        self._where = where or (lambda _: None)
        self._effects = effects or _is_decorated
        self._kept = frozenset(kept)
        self._trails = Trails(books.store, books.payloads)
        self._parts = RequestDigester()
        self._digester = Digester()
        self._behind: dict[tuple[Any, ...], tuple[tuple[Any, ...], list[Dep]]] = {}

    # --- runs ---

    @looking
    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """A run begins, or one inside of a step."""
        context = invocation_context
        outer = _around(context)
        try:
            sitting = await self._begin(context) if outer is None else self._nest(context, outer)
        except BackstopError as error:
            _log.warning("backstop does not record this run: %s", error)
            return
        vars(context)[_MARK] = sitting
        graph = getattr(context.agent, "graph", None)
        if graph is not None:
            sitting.read_graph(graph)
        context.session.state = RecordedState(dict(context.session.state), sitting.keys)
        self._wrap(context, sitting)
        NOTING.set(Noter(sitting))

    async def _begin(self, context: Any) -> Sitting:
        run, trigger = self._where(context) or (context.session.id, "")
        trail = await self._trails.of(run)
        trigger = trigger or f"s{trail.triggers}"
        trail = self._trails.at(trail, trigger, self._kept)
        recording = Recording(
            trail,
            trigger=trigger,
            producer=self._books.producer,
            now=lambda: self._books.clock.now().timestamp(),
            digester=self._digester,
        )

        def observe(key: str, left: Mapping[str, Any]) -> str:
            return recording.input(f"state:{key}", left, self._evidence.get(key))

        keys = Keys(records=recording, observe=observe, written=_written(trail))
        shelf = Shelf(recording, trail.artifacts, remembering=bool(trail.remembering))
        sitting = Sitting(
            recording=recording,
            keys=keys,
            shelf=shelf,
            prefix=f"{trigger}/",
            parts=self._parts,
            session=context.session.id,
            kept=self._kept & trail.outputs.keys(),
        )
        if context.user_content is not None:
            recording.input("user", user_left(context.user_content, self._parts))
        return sitting

    def _nest(self, context: Any, outer: Sitting) -> Sitting:
        spot = reading()
        base = spot.id if isinstance(spot, Open) else spot.path if isinstance(spot, Frame) else ""
        sitting = Sitting(
            recording=outer.recording,
            keys=outer.keys.nested(),
            shelf=outer.shelf,
            prefix=f"{base}/",
            parts=self._parts,
            session=context.session.id,
            outer=outer,
            parent=spot,
        )
        for part in (context.user_content.parts if context.user_content else None) or ():
            said = outer.recording.live.setdefault(self._parts.part(part), [])
            if isinstance(spot, Open):
                said.append(spot)
        return sitting

    def _wrap(self, context: Any, sitting: Sitting) -> None:
        artifacts, memory = context.artifact_service, context.memory_service
        # A tool's agent is lent its caller's artifacts, which are recorded already.
        if artifacts is not None and type(artifacts).__name__ != "ForwardingArtifactService":
            context.artifact_service = RecordedArtifacts(artifacts, sitting.shelf)
        if memory is not None:
            context.memory_service = RecordedMemory(memory, sitting.shelf)

    @looking
    async def after_run_callback(self, *, invocation_context: Any) -> None:
        """The run is over."""
        await self._end(invocation_context)

    @looking
    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """The run failed; the steps that it did stand."""
        await self._end(invocation_context)

    async def _end(self, context: Any) -> None:
        sitting = vars(context).get(_MARK)
        if not isinstance(sitting, Sitting) or sitting.over:
            return
        if sitting.session != context.session.id:
            return
        if not sitting.recording.broken:
            sitting.close()
        sitting.over = True
        await self._books.write(sitting.recording)
        NOTING.set(None if sitting.outer is None else Noter(sitting.outer))
        SPOT.set(sitting.parent)

    # --- agents and models ---

    @looking
    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """An agent begins."""
        context = callback_context._invocation_context  # noqa: SLF001 - no public way to it
        sitting = _sitting(context)
        if sitting is not None:
            SPOT.set(activate(sitting, agent, context))

    @looking
    async def after_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
        """An agent has done all but its own last callbacks."""
        context = callback_context._invocation_context  # noqa: SLF001 - no public way to it
        sitting = _sitting(context)
        frame = None if sitting is None else sitting.frame_of(agent.name, context.branch)
        if sitting is not None and frame is not None:
            sitting.settle_frame(frame)
            frame.ended = True
            SPOT.set(frame)

    @looking
    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """A model is about to be asked: its request is read once it has answered."""
        context = callback_context._invocation_context  # noqa: SLF001 - no public way to it
        sitting = _sitting(context)
        frame = None if sitting is None else sitting.frame_of(context.agent.name, context.branch)
        if sitting is None or frame is None:
            return
        sitting.settle_frame(frame)
        before, tools = frame.turn, frame.tools
        turn = Open(
            id=f"{frame.path}#{frame.turns}",
            kind=StepKind.MODEL,
            agent=frame.agent,
            frame=frame,
            outer=frame,
            deps=frame.deps,
            wild=frame.wild,
            request=llm_request,
        )
        for made in (before, *tools):
            if made is not None and made.settled is not None:
                turn.reads(made.settled)  # it is asked because they are
        for dep in (*self._made_with(context.agent), *self._policy(frame.agent)):
            turn.reads(dep)
        frame.turns += 1
        frame.deps, frame.wild, frame.turn, frame.tools = {}, False, turn, []
        SPOT.set(frame)

    def _made_with(self, agent: Any) -> list[Dep]:
        # The framework runs copies of an agent, which share what it was made with.
        held = (path_of(agent), *parts_of(agent))
        return self._remembered((held[0], *map(id, held[1:])), held, partial(agent_deps, agent))

    def _code_of(self, tool: Any) -> list[Dep]:
        held = (tool.name, getattr(tool, "func", None) or type(tool))
        return self._remembered((tool.name, id(held[1])), held, partial(tool_deps, tool))

    def _remembered(
        self, key: tuple[Any, ...], held: tuple[Any, ...], make: Callable[[], list[Dep]]
    ) -> list[Dep]:
        """Digests that cost something to make; `held` is kept, so that no id is used again."""
        known = self._behind.get(key)
        if known is None:
            if len(self._behind) >= _REMEMBERED:
                self._behind.clear()
            known = self._behind[key] = (held, make())
        return known[1]

    def _policy(self, name: str) -> list[Dep]:
        return [Dep(DepKind.POLICY, rule, digest) for rule, digest in self._rules(name).items()]

    # --- tools ---

    @looking
    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> None:
        """A tool is about to be called; what came before is written first."""
        context = tool_context._invocation_context  # noqa: SLF001 - no public way to it
        sitting = _sitting(context)
        if sitting is None:
            return
        asked = sitting.asked.get(tool_context.function_call_id or "")
        effect = not is_control(tool) and self._effects(tool, context)
        frame = None if asked is None else asked.turn.frame
        base = f"{sitting.prefix}{_node(tool_context)}/{tool.name}"
        step = Open(
            id=sitting.recording.numbered(base) if asked is None else asked.name,
            kind=StepKind.EFFECT if effect else StepKind.TOOL,
            agent="" if frame is None else frame.agent,
            frame=frame,
            outer=frame or sitting.parent,
            forwarding=is_control(tool) and getattr(tool, "include_plugins", False) is True,
            rerunnable=not effect,
        )
        if asked is None:
            for name, value in tool_args.items():
                written = sitting.keys.written.get(name)
                sitting.recording.takes(step, value, [] if written is None else [written])
        else:
            step.reads(sitting.recording.settle(asked.turn))
            sitting.opens[tool_context.function_call_id] = step
            if frame is not None:
                step.like(frame)
                frame.tools.append(step)
        for dep in (*self._code_of(tool), *self._policy(tool.name)):
            step.reads(dep)
        SPOT.set(step)
        await self._books.write(sitting.recording)
        if effect:
            # It is not to be taken back because of a power failure. Its claim waits for the disk as
            # well: at the same time.
            self._books.keep()

    @looking
    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> None:
        """A tool gave its result; what the model is told of it follows in an event."""
        step = SPOT.get()
        sitting = _sitting(tool_context._invocation_context)  # noqa: SLF001 - no public way to it
        if sitting is None or not isinstance(step, Open) or step.settled is not None:
            return
        step.left["result"] = {"digest": self._digester.of(result)}
        if step.kind is StepKind.EFFECT:
            step.left["intent"] = {"tool": tool.name, "args": dict(tool_args)}
        if step.frame is None:
            sitting.recording.settle(step)

    # --- events ---

    @looking
    async def on_event_callback(self, *, invocation_context: Any, event: Any) -> None:
        """What a step said, before the session takes it in."""
        sitting = _sitting(invocation_context)
        if sitting is None or event.partial:
            return
        if event.get_function_responses() and sitting.answered(event):
            await self._books.write(sitting.recording)
            return
        frame = sitting.frame_of(event.author, event.branch)
        turn = None if frame is None or frame.ended else frame.turn
        if frame is not None and turn is not None and _is_answer(event, turn):
            sitting.turn_said(frame, turn, event)
        elif frame is not None and sitting.is_said_again(frame, event):
            return
        elif not sitting.is_steps_own(event, _node(event)):
            base = frame.path if frame is not None else f"{sitting.prefix}{_node(event)}"
            sitting.joined(event, base, [] if frame is None else [*frame.within()])
        await self._books.write(sitting.recording)


def _is_decorated(tool: Any, _: Any) -> bool:
    return getattr(getattr(tool, "func", None), "__backstop_effect__", False) is True


def _sitting(context: Any) -> Sitting | None:
    found = vars(context).get(_MARK)
    if not isinstance(found, Sitting) or found.over or found.recording.broken:
        return None
    return found


def _around(context: Any) -> Sitting | None:
    """The run that this one is inside of: one whose step is at work where it begins."""
    noting = NOTING.get()
    if not isinstance(noting, Noter) or noting.sitting.over:
        return None
    spot = reading()
    inside = isinstance(spot, Open) or (isinstance(spot, Frame) and spot.custom and not spot.ended)
    return noting.sitting if inside and noting.sitting.session != context.session.id else None


def _written(trail: Trail) -> dict[str, Written]:
    return {key: Written(by=[*one.by], digest=one.digest) for key, one in trail.state.items()}


def _is_answer(event: Any, turn: Open) -> bool:
    """Whether the event is a model's answer, or a part of it, and not what follows one."""
    if turn.settled is not None or is_persons(event) or event.get_function_responses():
        return False
    return not turn.said or event.content is not None


def _node(thing: Any) -> str:
    """The names of a workflow's nodes down to this one, without the numbers of their runs."""
    path = getattr(getattr(thing, "node_info", None), "path", None)
    path = path or getattr(thing, "node_path", None) or getattr(thing, "author", "") or ""
    return "/".join(part.partition("@")[0] for part in str(path).split("/"))
