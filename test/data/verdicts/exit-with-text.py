"""sys.exit with a text: it goes to standard error, and the code is 1."""
import sys

sys.exit('no data in the folder')
