"""Which files of a checkout stay out of an image: secrets, histories, caches, and what is ignored.

What is withheld cannot be had back by an ignore file: a pull request writes that one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Final

WITHHELD: Final = (
    # Version control holds tokens (a checkout of GitHub's leaves one in .git/config), and history.
    ".git",
    ".hg",
    ".svn",
    # Settings with secrets in them, by the names that they usually have.
    ".env",
    ".env.*",
    "*.env",
    ".envrc",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".npmrc",
    "pip.conf",
    ".git-credentials",
    ".htpasswd",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".terraformrc",
    "*.tfstate",
    "*.tfvars",
    "secrets.toml",
    "secrets.yaml",
    "secrets.yml",
    "secrets.json",
    "credentials.json",
    "client_secret*.json",
    "service_account*.json",
    "service-account*.json",
    "application_default_credentials.json",
    "gha-creds-*.json",
    # Keys.
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.asc",
    "*.gpg",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    # Folders that programs keep secrets in.
    ".aws",
    ".azure",
    ".config",
    ".docker",
    ".gcloud",
    ".gnupg",
    ".kube",
    ".ssh",
    ".terraform",
)
"""Names of files and folders that may hold a secret, wherever they lie."""

USELESS: Final = (
    "__pycache__",
    "*.pyc",
    "node_modules",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".hypothesis",
    ".tox",
    ".nox",
    ".venv",
    ".cache",
    ".coverage",
    ".DS_Store",
)
"""Names of what is made anew, or made for another machine."""

OURS: Final = ".backstopignore"
DOCKERS: Final = ".dockerignore"
"""It speaks of another image than ours, and often leaves out all but a service: it counts only
where the checkout's own Dockerfile does."""

_NEVER: Final = tuple(re.compile(translate(name)) for name in (*WITHHELD, *USELESS))
_THROUGH: Final = "**"
_MOST_RULES: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """One line: a pattern for each folder on the way, None for any number of folders."""

    parts: tuple[re.Pattern[str] | None, ...]
    keeps: bool

    def fits(self, path: Sequence[str]) -> bool:
        """Does it name this path, or a folder above it?

        All ways through the pattern are followed at once: a pull request wrote it, and none
        may take for ever.
        """
        at = self._on(0)
        for name in path:
            at = {after for here in at for after in self._past(here, name)}
            if len(self.parts) in at:
                return True
        return False

    def _past(self, here: int, name: str) -> set[int]:
        pattern = self.parts[here]
        if pattern is None:
            return {here} | self._on(here + 1)
        return self._on(here + 1) if pattern.match(name) else set()

    def _on(self, here: int) -> set[int]:
        """Where one stands at `here`: also behind a `**`, which may be nothing, unless it ends."""
        found = {here}
        while here < len(self.parts) - 1 and self.parts[here] is None:
            here += 1
            found.add(here)
        return found


class Ignoring:
    """What an ignore file says, in the form of Docker's; the last rule that fits decides.

    Rules beyond the thousandth are not looked at.
    """

    def __init__(self, text: str) -> None:
        rules = [rule for line in text.splitlines() if (rule := _rule(line)) is not None]
        self._rules = rules[:_MOST_RULES]
        self._may_keep = any(rule.keeps for rule in self._rules)

    def leaves_out(self, path: Sequence[str]) -> bool:
        """Is this file or folder, given by its parts from the top, ignored?"""
        last = next((rule for rule in reversed(self._rules) if rule.fits(path)), None)
        return last is not None and not last.keeps

    def prunes(self, path: Sequence[str]) -> bool:
        """Is this folder ignored, and everything below it?"""
        # A later `!` may have something back from below a folder that is left out.
        return not self._may_keep and self.leaves_out(path)


def is_withheld(name: str) -> bool:
    """Does the name of a file or folder, in whatever case, say that it stays out?"""
    # `.DS_Store` is the one name here that is not in lower case, and no secret.
    return any(pattern.match(name) or pattern.match(name.lower()) for pattern in _NEVER)


def _rule(line: str) -> _Rule | None:
    text = line.strip()
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    parts = [part for part in text.removeprefix("!").strip().split("/") if part not in {"", "."}]
    if not parts:
        return None
    return _Rule(
        parts=tuple(None if part == _THROUGH else _within(part) for part in parts), keeps=keeps
    )


def _within(part: str) -> re.Pattern[str]:
    """A pattern for one name. Docker writes `[^a]` where the standard library has `[!a]`."""
    shell = re.sub(r"\\(.)", r"[\1]", part).replace("[^", "[!")
    return re.compile(translate(shell))
