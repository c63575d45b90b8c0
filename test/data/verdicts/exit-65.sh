# A code that muster uses for errors of its own.
exit 65
