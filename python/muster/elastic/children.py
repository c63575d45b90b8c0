"""A DataLoader's worker process that ends by itself: the records that it read are read in the training process.

There they are in flight in a pass: if they end that process, too, the job knows which records it dies of. torch's handler of
SIGCHLD raises wherever the training process just is; here that happens only while a batch is waited for.
"""
import signal
import threading
import weakref

_ENDS_S = 0.2
_watches, _ours = weakref.WeakSet(), None  # _ours: the handler, once it is set


class Died(Exception):
    """A worker of the DataLoader has ended while a batch of it was waited for."""


def _is_death(error):
    said = str(error)
    return said.startswith('DataLoader worker') and ('exited unexpectedly' in said or 'is killed by signal' in said)


def _any_has_ended(batches):
    """A batch that lies in the memory of a process that has ended cannot be had: torch says so by an error of its socket."""
    for worker in batches._workers:
        worker.join(_ENDS_S)
    return any(worker.exitcode is not None for worker in batches._workers)


def _around(inner):
    """One handler for all loaders: which of them the process was one of, each finds out."""
    def handler(number, frame):
        try:
            inner(number, frame)
        except RuntimeError as error:
            if not _is_death(error):
                raise
            for watch in list(_watches):
                watch.why = str(error)
        for watch in list(_watches):
            if watch.batches is not None:
                watch.look(watch.batches)
    return handler


def _set_handler():
    """torch sets its own before the first loader's processes read anything, and that one raises while the loader is still being made."""
    global _ours
    from torch.utils.data._utils import signal_handling
    if threading.current_thread() is not threading.main_thread():
        return
    signal_handling._set_SIGCHLD_handler()  # once in a process
    found = signal.getsignal(signal.SIGCHLD)
    if callable(found) and found is not _ours:
        _ours = _around(found)
        signal.signal(signal.SIGCHLD, _ours)


class Watch:
    """Watches the worker processes of one loader. why: how a worker of this loader or another one has ended, or None. batches: what is
    waited for, or None."""

    def __init__(self):
        self.why, self.batches = None, None
        _watches.add(self)

    def begin(self):
        """Before the loader begins."""
        self.why = None
        _set_handler()

    def look(self, batches):
        """Died, if it is one of theirs that has ended."""
        why, self.why = self.why, None
        if why and any(worker.exitcode is not None for worker in getattr(batches, '_workers', ())):
            raise Died(why)

    def fetch(self, batches):
        """The next batch; Died."""
        self.look(batches)
        self.batches = batches
        try:
            return next(batches)
        except (RuntimeError, EOFError, OSError) as error:
            if not (_is_death(error) if isinstance(error, RuntimeError) else _any_has_ended(batches)):
                raise
            raise Died(str(error)) from None
        finally:
            self.batches = None
