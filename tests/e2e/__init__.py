"""Runs of the real harness programs, offline, against a scripted model on loopback. See ``test_claude_code.py``."""
