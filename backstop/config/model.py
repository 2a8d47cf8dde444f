"""The form of ``backstop.yaml``, as pydantic models: unknown keys and loose types are refused."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from backstop.adk.escapes import Way

_SIZE: Final = re.compile(r"([1-9][0-9]{0,8})([kmg])", re.ASCII)
_UNITS: Final = {"k": 1024, "m": 1024**2, "g": 1024**3, "s": 1, "h": 3600}
_SPAN: Final = re.compile(r"([1-9][0-9]{0,6})([smh])", re.ASCII)
_PERIOD: Final = re.compile(r"([0-9]{1,6})([smhd])", re.ASCII)
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.\[\]:_-]+(/[!-~]*)?", re.ASCII)
_LOOPBACK: Final = re.compile(r"http://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?(/|$)")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_KEPT: Final = re.compile(
    r"(PYTHON|LD_|LC_|BACKSTOP_|OTEL_|HOME$|PATH$|TMPDIR$|TZ$|ADK_DISABLE_LOAD_DOTENV$)"
)
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def memory_bytes(text: str) -> int:
    """Bytes of a size like ``512m`` or ``1g``. Raises `ValueError`."""
    if (match := _SIZE.fullmatch(text)) is None:
        raise ValueError(f"{text!r} is no size: write a whole number and k, m or g, like 512m")
    return int(match[1]) * _UNITS[match[2]]


def wall_seconds(text: str) -> int:
    """Seconds of a span like ``300s``, ``5m`` or ``1h``. Raises `ValueError`."""
    if (match := _SPAN.fullmatch(text)) is None:
        raise ValueError(f"{text!r} is no time span: write a whole number and s, m or h, like 300s")
    return int(match[1]) * (60 if match[2] == "m" else _UNITS[match[2]])


def period_seconds(text: str) -> int:
    """Seconds of a period like ``0s``, ``30s``, ``24h`` or ``30d``. Raises `ValueError`."""
    if (match := _PERIOD.fullmatch(text)) is None:
        raise ValueError(f"{text!r} is no period: write a whole number and s, m, h or d, like 24h")
    return int(match[1]) * _SECONDS[match[2]]


def _checked_size(text: str) -> str:
    memory_bytes(text)
    return text


def _checked_span(text: str) -> str:
    wall_seconds(text)
    return text


def _checked_period(text: str) -> str:
    period_seconds(text)
    return text


def _checked_variable(name: str) -> str:
    if _VARIABLE.fullmatch(name) is None:
        raise ValueError(f"{name!r} is no name of a variable")
    if _KEPT.match(name):
        raise ValueError(f"{name!r} is what the sandbox itself sets or Python reads; leave it out")
    return name


def _checked_address(text: str) -> str:
    if _ADDRESS.fullmatch(text) is None:
        raise ValueError(
            "is no http or https address without a name and a password; those belong into the "
            "environment, as BACKSTOP_INDEX_URL"
        )
    return text


def _checked_model_address(text: str) -> str:
    _checked_address(text)
    if not text.startswith("https://") and _LOOPBACK.match(text) is None:
        raise ValueError("is no https address: the key of the model would go there in clear")
    return text


def _checked_inside(text: str) -> str:
    if not text.isprintable() or not all(part.strip(".") for part in text.split("/")):
        raise ValueError(f"{text!r} is no file below the checkout's top")
    return text


Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,62}$")]
Text = Annotated[str, Field(min_length=1)]
Size = Annotated[str, AfterValidator(_checked_size)]
Span = Annotated[str, AfterValidator(_checked_span)]
Period = Annotated[str, AfterValidator(_checked_period)]
Address = Annotated[str, AfterValidator(_checked_address)]
ModelAddress = Annotated[str, AfterValidator(_checked_model_address)]
Variable = Annotated[str, AfterValidator(_checked_variable)]
Value = Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]
ImageName = Annotated[
    str, Field(pattern=r"^[a-z0-9][A-Za-z0-9._/:-]*(@sha256:[0-9a-f]{64})?$", max_length=300)
]
InCheckout = Annotated[str, AfterValidator(_checked_inside)]
"""A file below the checkout's top: no `..`, no `.`, nothing absolute."""
ClassPath = Annotated[str, Field(pattern=r"^([A-Za-z_]\w*(\.[A-Za-z_]\w*)*:)?[A-Za-z_]\w*$")]
"""A builtin exception's name, or ``package.module:Name``."""
FunctionPath = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")]
FieldKind = Literal[
    "set",
    "json",
    "email",
    "date-time",
    "slug",
    "casefold",
    "trim",
    "volatile",
    "override",
    "money",
    "generated",
    "redact",
]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class KeyedModel(_Model):
    """The tool hands our key to a provider that acts once on it."""

    param: Text = Field(description="The tool's parameter that takes the key.")
    retention: Period = Field(description="How long the provider remembers a key.")


class ProbeModel(_Model):
    """The tool's effect can be looked up."""

    function: FunctionPath = Field(
        description="`package.module:function`, called with the key and the arguments."
    )
    settle: Period = Field(description="How long after the effect the lookup is right.")


class ToolModel(_Model):
    """One tool: whether it changes the world outside, and what names what it does."""

    effect: bool = Field(default=True, description="It changes the outside world.")
    identity: tuple[Text, ...] | None = Field(
        default=None,
        min_length=1,
        description="The arguments that name the target; all of them where this is left out.",
    )
    scope: Literal["run", "step", "agent"] | None = Field(
        default=None, description="Within which a key is unique; `run` where left out."
    )
    fields: dict[Text, FieldKind | tuple[FieldKind, ...]] = Field(
        default_factory=dict, description="Kinds of arguments, by name or JSON Pointer."
    )
    occurrence: Text | None = Field(
        default=None,
        description="The argument that tells deliberate repeats apart, or `step`.",
    )
    aliases: tuple[Text, ...] = Field(default=(), description="Former names of the tool.")
    parameters: dict[str, Any] = Field(
        default_factory=dict, alias="schema", description="JSON Schema of the parameters."
    )

    key: Text | tuple[Text, ...] | None = Field(
        default=None,
        description="The arguments that hold the caller's own idempotency key; those that are "
        "there must agree.",
    )
    keyed: KeyedModel | None = Field(
        default=None, description="A provider acts once on our key: a doubt may be tried again."
    )
    probe: ProbeModel | None = Field(
        default=None, description="A lookup tells whether an effect in doubt has happened."
    )
    no_effect_on: tuple[ClassPath, ...] = Field(
        default=(), description="Exceptions of which the tool vouches that nothing happened."
    )
    lease: Period | None = Field(
        default=None,
        description="How long a claim holds whose owner cannot be seen; `5m` where left out.",
    )

    @model_validator(mode="after")
    def _one_way_out_of_a_doubt(self) -> ToolModel:
        if self.keyed is not None and self.probe is not None:
            raise ValueError("says both `keyed` and `probe`: keep the one that holds")
        if self.keyed is not None and self.keyed.param in (*(self.identity or ()), *self.keys):
            raise ValueError(
                f"{self.keyed.param!r} takes our key, so it cannot name the target: drop it from "
                "`identity` and `key`"
            )
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The arguments that hold the caller's own key."""
        return (self.key,) if isinstance(self.key, str) else self.key or ()

    @model_validator(mode="after")
    def _no_identity_is_left_out(self) -> ToolModel:
        kinds: dict[str, set[str]] = {}
        for name, said in self.fields.items():
            # `/vendor` is the argument `vendor` as well.
            plain = name.removeprefix("/") if name.count("/") == 1 else name
            kinds.setdefault(plain, set()).update({said} if isinstance(said, str) else said)
        for name, of_field in kinds.items():
            if of_field >= {"override", "redact"}:
                raise ValueError(
                    f"{name!r} is override and redact: a `yes, again` is no personal data, and as "
                    "a token it would always say yes; drop one of the two"
                )
        for name in (*(self.identity or ()), *self.keys):
            if out := kinds.get(name, set()) & {"volatile", "override"}:
                raise ValueError(
                    f"{name!r} names the target and is {min(out)}, which leaves it out of the key: "
                    "drop one of the two"
                )
        return self


class LiveModel(_Model):
    """The candidate's own model, asked again where no recorded answer is proven."""

    live: bool = Field(default=False, description="It may be asked; the base's word counts.")
    calls: int = Field(default=100, ge=1, le=100_000, description="Calls for one verdict.")
    tokens: int = Field(
        default=500_000, ge=1, description="Tokens for one verdict, in and out together."
    )
    timeout: Span = Field(default="60s", description="How long one call may take.")
    repeats: int = Field(
        default=1, ge=1, le=25, description="Replays of each run that the model takes part in."
    )
    agreement: int = Field(
        default=1, ge=1, description="How many of the repeats have to show what is to count."
    )
    models: tuple[Text, ...] = Field(
        default=(),
        description="The models that may be asked; those that the base's agents name where this "
        "is left out.",
    )
    base_url: ModelAddress | None = Field(
        default=None, description="Where it is asked; the usual place where left out."
    )

    @model_validator(mode="after")
    def _agreement_is_possible(self) -> LiveModel:
        if self.agreement > self.repeats:
            raise ValueError(
                f"agreement {self.agreement} of {self.repeats} repeats can never be reached: "
                "raise `repeats`"
            )
        return self


class AgentModel(_Model):
    """One agent: where its code and its ledger are, and what its tools do."""

    path: Text | None = Field(default=None, description="The ADK agent folder.")
    ledger: Text | None = Field(default=None, description="A ledger file, or a store's URL.")
    store: Text | None = Field(
        default=None,
        description="Where the guard writes in production: a store's URL; that of `ledger` where "
        "this is left out and it is one.",
    )
    guarded: bool = Field(
        default=False,
        description="The guard ran in production: repeats of a key are absorbed.",
    )
    mode: Literal["guard", "observe"] = Field(
        default="guard",
        description="`observe`: the guard refuses nothing, and records what it would have refused.",
    )
    app: str = Field(default="", description="The app's name, if it is part of the keys.")
    tenant: str = Field(default="", description="The tenant, if it is part of the keys.")
    tools: dict[Text, ToolModel] = Field(
        default_factory=dict, description="Undeclared tools count as effects."
    )
    model: LiveModel = LiveModel()


class FailOn(StrEnum):
    """A kind of divergence that may block."""

    DUPLICATE = "duplicate"
    MUTATED = "mutated"
    MISSING = "missing"
    EXTRA = "extra"


class GateModel(_Model):
    """When a deploy is blocked, and how much of the record must be covered."""

    fail_on: tuple[FailOn, ...] = (FailOn.DUPLICATE,)
    control: Literal["base", "none"] = Field(
        default="base", description="Replay the base version too, to know what it reproduces."
    )
    max_assumed_steps: int = Field(default=0, ge=0)
    allow_empty: bool = Field(
        default=False, description="Nothing to compare is a pass: the pull request that begins."
    )
    accepts: tuple[Way, ...] = Field(
        default=(),
        description="Ways past interception that may stay uncovered; docs/doctor.md names them.",
    )
    waivers: Literal["head", "base"] = Field(
        default="head",
        description="Whose waivers and baseline count; those that a change adds itself are "
        "reported first either way.",
    )
    max_waiver_days: int = Field(
        default=90, ge=1, le=3650, description="How far ahead a waiver may expire."
    )


class BuildModel(_Model):
    """How a candidate's image is made; of a base and a candidate, the base's word counts."""

    python: Annotated[str, Field(pattern=r"^3\.1[1-9]$")] = Field(
        default="3.12", description="The Python of the image `python:X.Y-slim`."
    )
    base: ImageName | None = Field(
        default=None,
        description="Another image to begin with, best with its digest; it needs Python, pip "
        "and venv, and then `python` is not looked at.",
    )
    requirements: InCheckout | None = Field(
        default=None,
        description="The file that names the packages, from the checkout's top; where left out, "
        "the nearest one to the agent: requirements.txt, pylock.toml, uv.lock or pyproject.toml.",
    )
    index: Address | None = Field(
        default=None, description="The package index to install from; PyPI where left out."
    )
    proxy: Address | None = Field(
        default=None, description="The proxy through which packages are fetched."
    )
    wheels_only: bool = Field(
        default=True,
        description="Refuse what has to be built to be installed: building runs its code, with "
        "the network at hand.",
    )
    dockerfile: InCheckout | None = Field(
        default=None,
        description="Build the checkout's own Dockerfile instead: its code then runs as root "
        "and with the network.",
    )
    memory: Size = "2g"
    wall: Span = "600s"


class SandboxModel(_Model):
    """Where a candidate's code runs, and its bounds."""

    kind: Literal["process", "docker", "none"] = "process"
    python: Text | None = Field(
        default=None,
        description="The interpreter with the agents' packages, where it is not Backstop's own. "
        "It starts outside the sandbox; of a base and a candidate, the base's word counts.",
    )
    memory: Size = "1g"
    cpus: float | None = Field(
        default=None,
        gt=0,
        le=64,
        description="Processors to use, rounded up: one process of the candidate on each; all "
        "that there are where left out.",
    )
    wall: Span = "300s"
    env: dict[Variable, Value] = Field(
        default_factory=dict,
        max_length=64,
        description="Variables that the agents' code needs when it is imported, with harmless "
        "values: this file is no place for a secret.",
    )
    build: BuildModel = BuildModel()


class ConfigModel(_Model):
    """Backstop's configuration, ``backstop.yaml``."""

    version: Literal[1]
    agents: dict[Name, AgentModel] = Field(min_length=1)
    gate: GateModel = GateModel()
    sandbox: SandboxModel = SandboxModel()
