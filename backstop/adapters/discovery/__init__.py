"""Finds agents in a repository, and reads their code without running a line of it."""
