"""The passes: chunk, observe, check, reflect, drop, render, recall. Values in, values out; no I/O, no clock."""
