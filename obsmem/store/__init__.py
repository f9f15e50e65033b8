"""What is kept: raw bytes (archive), notes (memory), derived tables (index). The only layer that knows SQL."""
