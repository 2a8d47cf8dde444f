"""``backstop.yaml`` is read strictly, and every refusal names file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backstop import config
from backstop.config.strictyaml import parse
from backstop.core.declaration import Declaration, Namespace, Scope
from backstop.errors import ConfigError

ROOT = Path("/project")

WHOLE = """\
version: 1
agents:
  vendor-onboarding:
    path: agents/v3
    ledger: ledgers/vendor.jsonl
    guarded: true
    app: procurement
    tenant: acme
    tools:
      order:
        identity: [vendor_id, po_ref]
        scope: run
        fields: {vendor_id: slug, to: [trim, casefold]}
        occurrence: step
        aliases: [create_po]
        schema: {type: object, properties: {note: {type: string, default: ""}}}
      pay:
        key: request_id
        keyed: {param: idempotency_key, retention: 24h}
        no_effect_on: [ConnectionRefusedError, "bank.errors:Declined"]
        lease: 0s
      mail:
        key: [request, meta]
        probe: {function: "desk.lookups:was_sent", settle: 30s}
      lookup: {effect: false}
gate: {fail_on: [duplicate, missing], control: none, max_assumed_steps: 2, allow_empty: true}
sandbox: {kind: docker, python: env/bin/python, memory: 512m, cpus: 0.5, wall: 5m}
"""

MINIMAL = "version: 1\nagents:\n  a: {path: x}\n"


def read(text: str) -> config.Config:
    return config.loads(text, name="backstop.yaml", root=ROOT)


def refusal(text: str) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        read(text)
    message = str(caught.value)
    assert "\n" not in message
    return caught.value.slug, message


def test_everything_that_can_be_said_is_read() -> None:
    found = read(WHOLE)
    agent = found.agent(None)
    assert agent.path == ROOT / "agents/v3"
    assert agent.ledger == "/project/ledgers/vendor.jsonl"
    assert agent.guarded
    assert agent.namespace == Namespace(agent="vendor-onboarding", app="procurement", tenant="acme")
    assert agent.declarations["lookup"] == Declaration(tool="lookup", effect=False)
    assert agent.declarations["order"] == Declaration(
        tool="order",
        identity=("vendor_id", "po_ref"),
        scope=Scope.RUN,
        fields={"vendor_id": ("slug",), "to": ("trim", "casefold")},
        occurrence="step",
        aliases=("create_po",),
        schema={"type": "object", "properties": {"note": {"type": "string", "default": ""}}},
    )
    assert [kind.value for kind in found.gate.fail_on] == ["duplicate", "missing"]
    assert (found.gate.control, found.gate.max_assumed_steps) == ("none", 2)
    assert found.gate.allow_empty
    assert found.sandbox == config.Sandbox(
        kind="docker",
        python="/project/env/bin/python",
        memory=512 << 20,
        cpus=0.5,
        wall=300,
        build=found.sandbox.build,
    )


def test_what_a_tool_vouches_for_is_read_and_its_names_are_left_for_later() -> None:
    agent = config.loads(WHOLE, name="backstop.yaml", root=ROOT).agent(None)
    assert agent.vouched["pay"] == config.Vouched(
        keyed=("idempotency_key", 86400.0),
        no_effect_on=("ConnectionRefusedError", "bank.errors:Declined"),
        lease_s=0,
    )
    assert agent.vouched["mail"] == config.Vouched(probe=("desk.lookups:was_sent", 30.0))
    assert agent.vouched["lookup"] == config.Vouched()
    assert agent.declarations["pay"].key == ("request_id",)
    assert agent.declarations["pay"].fields == {"idempotency_key": ("volatile",)}
    assert agent.declarations["mail"].key == ("request", "meta")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "keyed: {param: k, retention: 1h}, probe: {function: 'a:b', settle: 1s}",
            "says both `keyed` and `probe`",
        ),
        ("identity: [k], keyed: {param: k, retention: 1h}", "'k' takes our key"),
        ("key: [a, k], keyed: {param: k, retention: 1h}", "'k' takes our key"),
        ("key: k, fields: {k: volatile}", "'k' names the target and is volatile"),
        ("keyed: {param: k, retention: soon}", "'soon' is no period"),
        ("probe: {function: was_sent, settle: 1s}", "function"),
        ("no_effect_on: [a.b]", "no_effect_on"),
        ("lease: -1s", "'-1s' is no period"),
    ],
)
def test_what_a_tool_cannot_vouch_for_is_refused_with_its_place(said: str, words: str) -> None:
    text = MINIMAL.replace("{path: x}", f"{{path: x, tools: {{pay: {{{said}}}}}}}")
    with pytest.raises(ConfigError, match=words) as refused:
        config.loads(text, name="backstop.yaml", root=ROOT)
    assert str(refused.value).startswith("backstop.yaml:3: agents.a.tools.pay")


def test_what_is_left_out_takes_the_cautious_default() -> None:
    found = read(MINIMAL)
    agent = found.agent("a")
    assert not agent.guarded
    assert agent.declarations == {}
    assert [kind.value for kind in found.gate.fail_on] == ["duplicate"]
    assert found.gate.control == "base"
    assert found.sandbox == config.Sandbox(
        kind="process",
        python=None,
        memory=1 << 30,
        cpus=None,
        wall=300,
        build=found.sandbox.build,
    )


def test_an_interpreter_without_a_folder_is_looked_for_where_programs_are() -> None:
    assert read(f"{MINIMAL}sandbox: {{python: python3.12}}\n").sandbox.python == "python3.12"


def test_a_tool_of_which_nothing_is_said_is_an_effect() -> None:
    found = read("version: 1\nagents:\n  a:\n    tools:\n      pay: {}\n")
    assert found.agent(None).declarations["pay"].effect


def test_a_store_url_is_no_path() -> None:
    text = "version: 1\nagents: {a: {ledger: 'sqlite:///x.db'}}\n"
    assert read(text).agent(None).ledger == "sqlite:///x.db"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("sqlite:///x.db", "sqlite:////a%20b/x.db"),
        ("sqlite:///data/x.db?durability=process", "sqlite:////a%20b/data/x.db?durability=process"),
        ("sqlite:////var/x.db", "sqlite:////var/x.db"),
        ("sqlite:///", "sqlite:///"),
        ("firestore://p/d/c", "firestore://p/d/c"),
        ("memory:", "memory:"),
    ],
)
def test_a_stores_file_is_found_from_the_folder_of_the_configuration(said: str, meant: str) -> None:
    """Two processes that were started in two folders would keep two stores otherwise."""
    for key in ("store", "ledger"):
        text = f"version: 1\nagents: {{a: {{{key}: '{said}'}}}}\n"
        found = config.loads(text, name="backstop.yaml", root=Path("/a b")).agent(None)
        if key == "store" or "://" in said:
            assert found.store == meant


def test_words_of_yaml_one_one_keep_their_letters() -> None:
    """``no``, ``on`` and dates are names here, not booleans and days."""
    text = (
        "version: 1\nagents:\n  a:\n    tools:\n      t: {identity: [no, on, 1:30, 2024-05-20]}\n"
    )
    declared = read(text).agent(None).declarations["t"]
    assert declared.identity == ("no", "on", "1:30", "2024-05-20")


@pytest.mark.parametrize(
    ("line", "slug", "words"),
    [
        ("gate: {fail_onn: []}", "config-unknown-key", "'gate.fail_onn'"),
        ("gates: {}", "config-unknown-key", "'gates'"),
        ("gate: {fail_on: [duplicates]}", "config-value", "gate.fail_on.0"),
        ("gate: {max_assumed_steps: '3'}", "config-value", "gate.max_assumed_steps"),
        ("gate: {max_assumed_steps: -1}", "config-value", "gate.max_assumed_steps"),
        ("gate: {allow_empty: yes}", "config-value", "gate.allow_empty"),
        ("gate: {allow_empty: 1}", "config-value", "gate.allow_empty"),
        ("sandbox: {kind: podman}", "config-value", "sandbox.kind"),
        ("sandbox: {memory: 1gb}", "config-value", "like 512m"),
        ("sandbox: {memory: 0m}", "config-value", "like 512m"),
        ("sandbox: {wall: 300}", "config-value", "sandbox.wall"),
        ("sandbox: {wall: soon}", "config-value", "like 300s"),
        ("sandbox: {cpus: 0}", "config-value", "sandbox.cpus"),
        ("sandbox: [docker]", "config-value", "sandbox"),
        ("version: 1", "config-duplicate-key", "line 1"),
        ("gate: {control: base, control: none}", "config-duplicate-key", "'control'"),
        ("gate: &g {control: base}\nsandbox: *g", "config-syntax", "alias"),
        ("gate: !!python/object/new:os.system [x]", "config-syntax", "tag"),
        ("gate: !thing {}", "config-syntax", "tag"),
        ("? [a]\n: b", "config-syntax", "plain text"),
        ("gate: {control: base", "config-syntax", "YAML"),
        ("gate:\n\tcontrol: base", "config-tab", "tab"),
        ("gate: 'open", "config-syntax", "YAML"),
        ("--- \nversion: 1", "config-syntax", "YAML"),
        ("gate: " + "[" * 60 + "]" * 60, "config-syntax", "levels"),
    ],
)
def test_a_fault_is_one_line_with_its_place(line: str, slug: str, words: str) -> None:
    found, message = refusal(MINIMAL + line + "\n")
    assert found == slug
    assert words in message
    place = message.split(": ", 1)[0]
    assert place.startswith("backstop.yaml:")
    assert int(place.split(":")[1]) >= 4


def test_nesting_without_end_is_refused() -> None:
    slug, message = refusal(MINIMAL + "gate: " + "[" * 5000)
    assert slug == "config-syntax"
    assert message.startswith("backstop.yaml: nested too deeply")


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("{effects: true}", "'agents.a.tools.t.effects'"),
        ("{identity: []}", "agents.a.tools.t.identity"),
        ("{identity: id}", "agents.a.tools.t.identity"),
        ("{identity: [1]}", "agents.a.tools.t.identity.0"),
        ("{identity: [true]}", "agents.a.tools.t.identity.0"),
        ("{identity: ['']}", "agents.a.tools.t.identity.0"),
        ("{scope: week}", "agents.a.tools.t.scope"),
        ("{fields: {x: upper}}", "agents.a.tools.t.fields.x"),
        ("{fields: {x: [trim, upper]}}", "agents.a.tools.t.fields.x"),
        ("{schema: []}", "agents.a.tools.t.schema"),
        ("{identity: [x], fields: {x: volatile}}", "drop one of the two"),
        ("{identity: [x], fields: {x: [trim, override]}}", "drop one of the two"),
        ("{fields: {x: override, /x: redact}}", "as a token it would always say yes"),
        ("{identity: [x], fields: {/x: volatile}}", "drop one of the two"),
        ("{identity: [x], fields: {x: trim, /x: volatile}}", "drop one of the two"),
        ("true", "agents.a.tools.t"),
    ],
)
def test_a_fault_in_a_tool_names_the_tool(tool: str, words: str) -> None:
    text = f"version: 1\nagents:\n  a:\n    tools:\n      t: {tool}\n"
    _, message = refusal(text)
    assert message.startswith("backstop.yaml:5: ")
    assert words in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("# nothing\n", "is empty"),
        ("agents: {a: {}}\n", "version"),
        ("version: 2\nagents: {a: {}}\n", "version"),
        ("version: '1'\nagents: {a: {}}\n", "version"),
        ("version: 1\n", "agents"),
        ("version: 1\nagents: {}\n", "agents"),
        ("version: 1\nagents: {'a b': {}}\n", "agents"),
        ("version: 1\nagents:\n  - a\n", "agents"),
        ("just text\n", "the file"),
        ("- 1\n", "the file"),
    ],
)
def test_a_file_without_version_and_agents_is_refused(text: str, words: str) -> None:
    _, message = refusal(text)
    assert words in message


def test_further_faults_are_counted() -> None:
    _, message = refusal(MINIMAL + "gate: {a: 1, b: 2, max_assumed_steps: x}\n")
    assert "unknown key 'gate.a'" in message
    assert "(and 2 more)" in message


def test_an_agent_must_be_chosen_where_there_are_several() -> None:
    found = read("version: 1\nagents: {a: {}, b: {}}\n")
    assert found.agent("b").name == "b"
    for name, words in ((None, "--agent: a, b"), ("c", "no agent 'c'; it has: a, b")):
        with pytest.raises(ConfigError, match=words) as caught:
            found.agent(name)
        assert caught.value.slug == "config-agent"


def test_numbers_keep_their_exact_value() -> None:
    text = f"a: {2**70}\nb: 1.5\nc: 1e3\nd: 007\ne: 0x10\nf: -2\ng: ~\nh: 'true'\ni: .5\nj:\n"
    assert parse(text, name="x").value == {
        "a": 2**70,
        "b": 1.5,
        "c": 1000.0,
        "d": "007",
        "e": "0x10",
        "f": -2,
        "g": None,
        "h": "true",
        "i": ".5",
        "j": None,
    }


def test_a_merge_key_is_no_magic() -> None:
    assert refusal(MINIMAL + "<<: {gate: {}}\n")[0] == "config-unknown-key"


def test_paths_begin_at_the_file_not_at_the_caller(tmp_path: Path) -> None:
    file = tmp_path / "backstop.yaml"
    file.write_text(MINIMAL, encoding="utf-8-sig")
    assert config.load(file).agent(None).path == tmp_path / "x"


@pytest.mark.parametrize(
    ("data", "slug", "words"),
    [
        (None, "config-missing", "no such file"),
        (b"version: 1\n# \xff\n", "config-unreadable", ":2: not UTF-8"),
        (b"version: 1\n# \x00\n", "config-syntax", "YAML"),
        (b" " * (1024 * 1024 + 1), "config-unreadable", "larger than"),
    ],
)
def test_a_file_that_is_no_text_is_refused(
    tmp_path: Path, data: bytes | None, slug: str, words: str
) -> None:
    file = tmp_path / "backstop.yaml"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(ConfigError, match=words) as caught:
        config.load(file)
    assert caught.value.slug == slug


def test_a_folder_is_no_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        config.load(tmp_path)
    assert caught.value.slug == "config-unreadable"


def test_the_projects_own_configuration_holds() -> None:
    root = Path(__file__).parents[2]
    airline = config.load(root / "backstop.yaml").agent("airline")
    assert sum(tool.effect for tool in airline.declarations.values()) == 7


def test_the_published_schema_is_the_models() -> None:
    published = Path(__file__).parents[2] / "docs" / "config.schema.json"
    assert json.loads(published.read_text(encoding="utf-8")) == config.json_schema()
