"""What well-known calls do: making a client asks nobody, what is called on it counts."""

from __future__ import annotations

import ast

import pytest

from backstop.adapters.discovery.vocabulary import Deed, deed_of_method, deed_of_named


def call(name: str) -> ast.Call:
    parsed = ast.parse(f"{name}()", mode="eval").body
    assert isinstance(parsed, ast.Call)
    return parsed


@pytest.mark.parametrize(
    ("dotted", "deed"),
    [
        ("google.cloud.storage.Client", Deed.NOTHING),
        ("google.cloud.secretmanager.SecretManagerServiceClient", Deed.NOTHING),
        ("google.genai.types.GenerateContentConfig", Deed.NOTHING),
        ("google.auth.default", Deed.READS),
        ("shutil.which", Deed.READS),
        ("os.urandom", Deed.NOTHING),
        ("pytz.timezone", Deed.NOTHING),
        ("psutil.swap_memory", Deed.READS),
        ("psutil.Process.kill", Deed.ACTS),
        # Controls: what a client is told to do, and what only looks like one.
        ("shutil.move", Deed.ACTS),
        ("crm.make_client", Deed.ACTS),
        ("crm.client", Deed.UNKNOWN),
        ("google.genai.client.models.generate_content", Deed.ACTS),
        ("google.cloud.storage.Client.from_file", Deed.UNKNOWN),
        ("Client", Deed.UNKNOWN),
    ],
)
def test_a_function_that_is_known_by_its_whole_name(dotted: str, deed: Deed) -> None:
    assert deed_of_named(dotted, call(dotted)) is deed


@pytest.mark.parametrize(
    ("method", "deed"),
    [
        ("download_as_bytes", Deed.READS),
        ("download_as_text", Deed.READS),
        ("list_buckets", Deed.READS),
        ("download_to_filename", Deed.ACTS),
        ("upload_from_string", Deed.ACTS),
        ("create_bucket", Deed.ACTS),
        ("bucket", Deed.UNKNOWN),
    ],
)
def test_a_method_of_a_service(method: str, deed: Deed) -> None:
    assert deed_of_method(method, call(f"client.{method}"), fresh=False) is deed
