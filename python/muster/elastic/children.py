"""The worker processes of a DataLoader: they end with the training process. If one of them ends by itself, the records that it read are read in the
training process.

There the records belong to a pass: if they crash that process, too, the job knows which records did. torch's handler of SIGCHLD raises at any
place in the training process; with this module it raises only while the process waits for a batch.
"""
import ctypes
import multiprocessing
import os
import signal
import threading
import weakref

_PR_SET_PDEATHSIG = 1
_ENDS_S = 0.2
_watches, _ours = weakref.WeakSet(), None  # _ours: the handler, after it was set


class WorkerInit:
    """Lets a loader's worker end when its parent is killed: the worker holds copies of the parent's descriptors."""

    def __init__(self, inner, context):
        self.inner = inner
        method = context if isinstance(context, str) else (context or multiprocessing).get_start_method()
        self.parent = None if method == 'forkserver' else os.getpid()  # None: the worker's parent is multiprocessing's server

    def __call__(self, number):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if self.parent not in (None, os.getppid()):
            os._exit(1)
        if self.inner is not None:
            self.inner(number)


def ending_with_parent(options):
    """Returns these options of a DataLoader, with which its worker processes end with this process."""
    return {**options, 'worker_init_fn': WorkerInit(options.get('worker_init_fn'), options.get('multiprocessing_context'))}


class Died(Exception):
    """A worker process of the DataLoader has ended while the training process waited for a batch of this loader."""


def _is_death(error):
    said = str(error)
    return said.startswith('DataLoader worker') and ('exited unexpectedly' in said or 'is killed by signal' in said)


def _any_has_ended(batches):
    """Whether a worker process has ended. A batch in the memory of an ended process cannot be read: torch then reports an error of its
    socket."""
    for worker in batches._workers:
        worker.join(_ENDS_S)
    return any(worker.exitcode is not None for worker in batches._workers)


def _around(inner):
    """Returns one handler for all loaders; each loader finds out whether the process was one of its own."""
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
    """Sets our handler around torch's handler. torch sets its handler before the processes of the first loader read anything, and torch's handler
    alone would raise while the loader is created."""
    global _ours
    from torch.utils.data._utils import signal_handling
    if threading.current_thread() is not threading.main_thread():
        return
    signal_handling._set_SIGCHLD_handler()  # sets it only once in a process
    found = signal.getsignal(signal.SIGCHLD)
    if callable(found) and found is not _ours:
        _ours = _around(found)
        signal.signal(signal.SIGCHLD, _ours)


class Watch:
    """Watches the worker processes of one loader. why: how a worker of this loader or another one has ended, or None. batches: the iterator
    that the process waits for, or None."""

    def __init__(self):
        self.why, self.batches = None, None
        _watches.add(self)

    def begin(self):
        """Called before the loader begins."""
        self.why = None
        _set_handler()

    def look(self, batches):
        """Raises Died if one of the loader's processes has ended."""
        why, self.why = self.why, None
        if why and any(worker.exitcode is not None for worker in getattr(batches, '_workers', ())):
            raise Died(why)

    def fetch(self, batches):
        """Returns the next batch, or raises Died."""
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
