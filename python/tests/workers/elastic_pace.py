"""Lets a test control its workers: they wait before they join, and a pass takes 50 ms (or PACE seconds) until the test calls go()."""
import os
import threading

_never = threading.Event()


def hold():
    """Prints that this worker is ready to join, and waits until the test lets it join."""
    print('ready', flush=True)
    name = os.environ.get('HOLD')
    while name and not os.path.exists(name):
        _never.wait(0.002)


def pace():
    if not os.path.exists('go'):
        _never.wait(float(os.environ.get('PACE', '0.05')))
