"""The gate: what went out against what would be asked for."""
