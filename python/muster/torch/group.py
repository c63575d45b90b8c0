"""The process group: its beginning, its names for torch, its end. The calls are in collectives.py."""
import atexit
import os
import weakref
from datetime import timedelta

import torch.distributed as dist
from torch._C import _distributed_c10d

from muster.torch import checks, meeting
from muster.torch.collectives import Collectives
from muster.torch.work import WORKS_ARE_PYTHON, stop_completion

_live = weakref.WeakSet() if WORKS_ARE_PYTHON else set()
_owner_pid = os.getpid()

_BASE = dist.ProcessGroup if WORKS_ARE_PYTHON else _distributed_c10d.Backend


class Group(Collectives, _BASE):
    """torch 2.x: the Backend of CPU tensors inside torch's own group; torch 1.13: the group itself.

    Made by torch's init_process_group and new_group; waits until all ranks have come.
    """

    def __init__(self, store, rank, size, timeout):
        _BASE.__init__(self, rank, size)
        self._store, self._rank, self._size, self._timeout = store, rank, size, timeout
        self._comm, self._meeting = meeting.make_comm(store, rank, size, timeout)
        self._run = self._comm.run
        self._sequence = 0  # calls so far
        self._moved = 0     # those of them that were no barrier
        self._monitored = 0
        self._checks = checks.attach(self)
        _live.add(self)  # C++ holds a Backend without its Python half: it lives until shutdown

    def name(self):
        return 'muster'

    getBackendName = _get_backend_name = name

    # Plain attributes: torch 2.15's own properties of these names ask the Python object, which asks them, for ever.
    supports_splitting = supports_coalescing = supports_shrinking = supports_reconfigure = False
    supports_tensor_alloc = supports_window = supports_abort_hooks = supports_completion_hooks = False
    _supports_time_estimate = False

    @property
    def options(self):
        return _BASE.Options('muster', self._timeout)

    def set_timeout(self, timeout):
        self._timeout = timeout
        self._comm.set_timeout(meeting.milliseconds(timeout))

    _set_default_timeout = set_timeout

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        limit = getattr(timeout, 'timeout', timeout)  # newer torch gives BarrierOptions
        if isinstance(limit, (int, float)):
            limit = timedelta(seconds=limit)
        limit = self._timeout if limit is None or limit < timedelta(0) else limit
        self._monitored += 1
        prefix = f'{self._meeting}/monitored/{self._monitored}'
        meeting.monitored_barrier(self._store, prefix, self._rank, self._size, limit, wait_all_ranks)

    def _get_sequence_number_for_group(self):
        return self._sequence

    def _set_sequence_number_for_group(self):
        self._sequence = 0

    def describe(self):
        """One line on how the group moves data, for logs."""
        return self._comm.describe()

    def abort(self, *_):
        """Ends calls under way here and at the peers; the group is of no use afterwards."""
        self._comm.abort()

    def shutdown(self, *_):
        self._checks = None
        self._comm.close()
        _live.discard(self)


def _close_all():
    """At exit without destroy: peers learn at once, and no thread of ours outlives the interpreter."""
    if os.getpid() == _owner_pid:
        for group in list(_live):
            group.shutdown()
    stop_completion()


atexit.register(_close_all)
