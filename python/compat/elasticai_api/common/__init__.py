"""The code that does not depend on the framework."""
