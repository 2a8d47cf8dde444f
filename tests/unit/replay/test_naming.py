"""Texts of modules that may name a file."""

from __future__ import annotations

from backstop.replay.naming import names_in


def test_paths_parts_of_paths_and_fixed_beginnings_are_names() -> None:
    source = (
        b"A = open('data/a.txt')\nB = Path('data') / 'b.csv'\nC = open(f'prompts/{name}.md')\n"
        b"D = os.getenv('SCENARIO', 'eval/x.json')\n"
    )
    found = names_in([("agent.py", source)])
    assert {"data/a.txt", "data", "b.csv", "prompts/", "eval/x.json"} <= found


def test_absolute_paths_prose_and_other_files_name_nothing() -> None:
    source = b'"""Does this.\n\nAnd that."""\nA = "/etc/passwd"\nB = "<p>"\nC = "x" * 3\n'
    assert names_in([("agent.py", source), ("a.txt", b"A = 'y'"), ("b.py", b"A = '")]) == {"x"}


def test_an_endless_text_is_no_path() -> None:
    assert names_in([("agent.py", b"A = '" + b"x" * 201 + b"'")]) == frozenset()
