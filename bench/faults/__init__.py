"""What can break it: processes that die at every step, full and locked disks, damaged files, odd input, hostile text.

``python -m bench.faults [--short | --quick | --long] [--part NAME] [--out FILE]``. Every part counts what it tried and lists what
was wrong afterwards; nothing is patched inside the product, faults come from outside (``shim``).
"""
