"""Gives each test a limit (program.py)."""
from program import limited  # noqa: F401
