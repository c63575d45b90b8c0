"""What is the same for every framework."""
