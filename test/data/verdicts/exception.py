"""Rank 0 raises; rank 1 waits for it."""
import os
import time

if os.environ['RANK'] != '0':
    time.sleep(1000)
raise ValueError('learning rate must be positive')
