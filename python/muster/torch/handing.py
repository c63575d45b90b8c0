"""Data that reaches the Python caller past torch 2.x's C++, between work.py and wrapping.py: Works, and the absence of a group."""
import threading


class _Hand(threading.local):
    """Holds the Work of the call that this thread is making; a group of muster stores it."""
    reaching = False
    operation = None


hand = _Hand()


def torch_needs_a_work(frame):
    """Whether the caller is DistributedDataParallel or a similar class: their join passes the Work to C++, which accepts only C++ Works."""
    return frame.f_globals.get('__name__', '').startswith(('torch.nn.', 'torch.distributed.algorithms.'))


class NotAMember(RuntimeError):
    """Raised for a rank that is in none of a split's groups: torch 2.15 crashes when a Backend in Python returns None."""
