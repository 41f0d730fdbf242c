"""What commands answer: figures of the ledger as documents, before any format."""
