"""The code for torch."""
