"""Rank 1 ends with Python's own KeyboardInterrupt: killed by SIGINT."""
import os
import signal
import time

if os.environ['RANK'] == '0':
    time.sleep(1000)
os.kill(os.getpid(), signal.SIGINT)
time.sleep(1000)
