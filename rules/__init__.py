"""Floor 4: the waste checklist. One file per rule, each a pure function of ledger tables."""
