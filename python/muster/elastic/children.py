"""A DataLoader's worker process that ends by itself: the records that it read are read in the training process.

There they are in flight in a pass: if they end that process, too, the job knows which records it dies of. torch's handler of
SIGCHLD raises wherever the training process just is; here that happens only while a batch is waited for.
"""
import signal
import threading

_ENDS_S = 0.2


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


class Watch:
    """Of one loader. why: how its workers ended, or None."""

    def __init__(self):
        self.why, self.waiting = None, False
        self.before = None

    def begin(self):
        """After torch has set its handler."""
        self.why = None
        found = signal.getsignal(signal.SIGCHLD)
        if threading.current_thread() is threading.main_thread() and callable(found) and found is not self.before:
            signal.signal(signal.SIGCHLD, self._handler(found))
            self.before = signal.getsignal(signal.SIGCHLD)

    def _handler(self, inner):
        def handler(number, frame):
            try:
                inner(number, frame)
            except RuntimeError as error:
                if not _is_death(error):
                    raise
                self.why = str(error)
            if self.why and self.waiting:
                raise Died(self.why)
        return handler

    def fetch(self, batches):
        """The next batch; Died."""
        if self.why:
            raise Died(self.why)
        self.waiting = True
        try:
            return next(batches)
        except (RuntimeError, EOFError, OSError) as error:
            if not (_is_death(error) if isinstance(error, RuntimeError) else _any_has_ended(batches)):
                raise
            raise Died(self.why or str(error)) from None
        finally:
            self.waiting = False
