"""One key, one claim: who may run an effect, and what is written of it."""
