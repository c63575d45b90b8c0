"""Rank 1 raises; rank 0 waits for it, as in a collective."""
import os
import time

if os.environ['RANK'] == '0':
    time.sleep(1000)
raise KeyError('no such column')
