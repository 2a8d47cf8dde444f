"""Candidates in containers: the client, the hardened container, and what is left of them."""
