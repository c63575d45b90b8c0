"""For torch."""
