"""Backstop: a deploy gate for long-running Google ADK agents."""

__all__ = ["__version__"]

__version__ = "0.1.0"
