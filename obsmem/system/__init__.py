"""The machine: where files lie, how they are written, what is logged, who holds a lock."""
