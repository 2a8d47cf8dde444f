"""The published schemas are written by the program that they describe."""

from __future__ import annotations

from pathlib import Path

from backstop.cli.schemas import write


def test_writing_the_schemas_gives_the_published_files(tmp_path: Path) -> None:
    write(tmp_path)
    published = Path(__file__).parents[3] / "docs"
    names = {"config.schema.json", "verdict.schema.json", "waivers.schema.json"}
    assert {file.name for file in tmp_path.iterdir()} == names
    for name in names:
        assert (tmp_path / name).read_bytes() == (published / name).read_bytes()
