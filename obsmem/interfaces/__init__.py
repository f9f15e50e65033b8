"""What people and programs touch: hooks, the command line, reports. The only layer that prints."""
