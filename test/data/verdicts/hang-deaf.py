"""No rank ever ends, and none takes SIGINT or SIGTERM."""
import signal
import time

signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(1000)
