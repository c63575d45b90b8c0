"""Rank 1 uses more memory than the job's limit: the kernel kills it."""
import os
import time

if os.environ['RANK'] == '0':
    time.sleep(1000)
blocks = []
while True:
    blocks.append(bytearray(8 << 20))
