"""Each test has a limit (program.py)."""
from program import limited  # noqa: F401
