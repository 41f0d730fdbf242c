"""Floor 3: identity, allocation, reconciliation and query. Reads facts, writes costs."""
