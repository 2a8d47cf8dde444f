"""Places that keep a ledger for good: one module each, all behind `auditports.Archive`."""
