"""Verdict in, text out."""
