"""The process group: how it begins, its names for torch, and how it ends. The calls are in collectives.py."""
import atexit
import os
import sys
import time
import weakref
from datetime import timedelta

import torch.distributed as dist
from torch._C import _distributed_c10d

from muster.torch import checks, meeting, wrapping
from muster.torch.collectives import Collectives
from muster.torch.handing import NotAMember
from muster.torch.work import WORKS_ARE_PYTHON, start_completion, stop_completion

SETTLE_AT_EXIT_MS = 2000  # the time, after the last end of a call, that calls which nobody waited for may still take
YIELD_AT_EXIT_S = 1  # for the rank that was lost first: a cluster records the ends of ranks in whole seconds

_lost_one = False  # whether a group that was left had lost a rank

_live = weakref.WeakSet() if WORKS_ARE_PYTHON else set()

_BASE = dist.ProcessGroup if WORKS_ARE_PYTHON else _distributed_c10d.Backend


class Group(Collectives, _BASE):
    """torch 2.x: the Backend of CPU tensors inside torch's own group; torch 1.13: the group itself.

    torch's init_process_group and new_group create it; the constructor waits until all ranks have called it.
    """

    def __init__(self, store, rank, size, timeout):
        _BASE.__init__(self, rank, size)
        self._store, self._rank, self._size, self._timeout = store, rank, size, timeout
        self._comm, self._meeting = meeting.make_comm(store, rank, size, timeout)
        self._run = self._comm.run
        self._pid = os.getpid()
        self._sequence = 0  # calls so far
        self._moved = 0     # calls so far that were not a barrier
        self._monitored = 0
        self._checks = checks.attach(self)
        start_completion()  # not in the first call: on torch 1.13, C++ turns an exception of Ctrl-C there into a RuntimeError
        wrapping.wrap_collectives()
        weakref.finalize(self, _unwrap_if_last).atexit = False  # torch 1.13 does not call shutdown, it only drops the group
        _live.add(self)  # C++ holds a Backend without its Python half: this keeps it alive until shutdown

    def name(self):
        return 'muster'

    getBackendName = _get_backend_name = name

    # Plain attributes: torch 2.15's own properties of these names ask the Python object, which would ask them again, forever.
    supports_splitting = True
    supports_coalescing = supports_shrinking = supports_reconfigure = False
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
        limit = getattr(timeout, 'timeout', timeout)  # newer torch passes BarrierOptions
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

    def split(self, store, ranks, opts):
        """torch's split_group: returns the group of these ranks, which meet through their own store."""
        if self._rank not in ranks:
            raise NotAMember(f'muster: rank {self._rank} is not among the ranks {list(ranks)} of the new group')
        return Group(store, ranks.index(self._rank), len(ranks), opts._timeout)

    def describe(self):
        """Returns one line for logs that says how the group moves data."""
        return self._comm.describe()

    def abort(self, *_):
        """Ends the calls under way on this rank and on the peers; the group is unusable afterwards."""
        self._comm.abort()

    def shutdown(self, *_):
        """Leaves the group. Collectives that were started and not waited for end first, unless the call happens because of an error."""
        self._leave(0 if sys.exc_info()[0] else meeting.milliseconds(self._timeout))

    def _leave(self, settle_ms):
        global _lost_one
        if os.getpid() == self._pid:  # a forked child has no calls under way
            self._comm.settle(settle_ms)
            _lost_one = _lost_one or self._has_lost_one()
        self._checks = None
        self._comm.close()
        _live.discard(self)
        _unwrap_if_last()

    def _has_lost_one(self):
        return any(state != 'alive' for state in self._comm.query()['peers'])


def _unwrap_if_last():
    if not list(_live):
        wrapping.unwrap_collectives()


def _close_all():
    """Runs at exit if the program has not destroyed its groups: peers learn of it soon, and no thread of muster outlives the interpreter.

    A rank may know that another rank has left before the other's process has ended (its interpreter takes some time, and so does a core dump).
    So a rank that ends by an exception waits a moment, so that the other process, which is the cause, ends first.
    """
    raised = hasattr(sys, 'last_type')  # whether this program ends by an exception
    ours = [group for group in list(_live) if group._pid == os.getpid()]
    if raised and (_lost_one or any(group._has_lost_one() for group in ours)):
        time.sleep(YIELD_AT_EXIT_S)
    for group in ours:
        group._leave(0 if raised else SETTLE_AT_EXIT_MS)
    stop_completion()


atexit.register(_close_all)
