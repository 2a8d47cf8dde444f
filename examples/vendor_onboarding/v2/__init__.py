"""The agent folder: `agent.py` holds `app`."""

from . import agent as agent
