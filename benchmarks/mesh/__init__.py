"""The mesh: judging a run, taking a record in, and how far a fault reaches."""
