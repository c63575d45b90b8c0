"""Models for handwritten digits, or for pictures of clothes of the same format."""
