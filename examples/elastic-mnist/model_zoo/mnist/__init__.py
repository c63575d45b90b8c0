"""Handwritten digits, or clothes that are shaped like them."""
