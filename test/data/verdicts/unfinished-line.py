"""The last output has no end of line, and not all of it is text."""
import sys

sys.stdout.buffer.write(b'loss=\xff\xfe nan')
sys.stdout.flush()
sys.exit(9)
