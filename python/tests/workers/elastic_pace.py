"""Workers that a test leads: they join when told, and a pass takes 50 ms (PACE, in seconds) until the test has seen what it came for."""
import os
import threading

_never = threading.Event()


def hold():
    """Says that this worker may join, and waits until it shall."""
    print('ready', flush=True)
    name = os.environ.get('HOLD')
    while name and not os.path.exists(name):
        _never.wait(0.002)


def pace():
    if not os.path.exists('go'):
        _never.wait(float(os.environ.get('PACE', '0.05')))
