"""Order, locks and transactions: what the interfaces ask for, done against the store."""
