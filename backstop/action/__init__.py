"""The container action: what a workflow step is told, and what it does with it."""

from __future__ import annotations

__all__ = ["main"]


def main() -> int:
    """Run the step that this process is for; its exit code."""
    return 2
