"""What reaches the Python caller past torch 2.x's C++, between work.py and wrapping.py: Works, and that there is no group."""
import threading


class _Hand(threading.local):
    """Holds the Work of the call that this thread is making; a group of muster puts it there."""
    reaching = False
    operation = None


hand = _Hand()


def torch_needs_a_work(frame):
    """True in DistributedDataParallel and its kin: their join hands the Work to C++, which takes C++ ones only."""
    return frame.f_globals.get('__name__', '').startswith(('torch.nn.', 'torch.distributed.algorithms.'))


class NotAMember(RuntimeError):
    """A rank outside the groups of a split has none: torch 2.15 crashes when a Backend in Python returns None."""
