"""Backstop: a deploy gate for long-running Google ADK agents."""

__version__ = "0.1.0"
