"""The memory behind ``observational_memory.py``. Each sub-package is a layer; SPEC.md draws them."""

__version__ = "0.1.0"
