"""The process group: its beginning, its names for torch, its end. The calls are in collectives.py."""
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

SETTLE_AT_EXIT_MS = 2000  # so long after the last that ended, what nobody waited for may take then
YIELD_AT_EXIT_S = 1  # to the rank that was lost first; a cluster knows the ends of ranks to the second

_lost_one = False  # a group that was left had lost a rank

_live = weakref.WeakSet() if WORKS_ARE_PYTHON else set()

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
        self._pid = os.getpid()
        self._sequence = 0  # calls so far
        self._moved = 0     # those of them that were no barrier
        self._monitored = 0
        self._checks = checks.attach(self)
        start_completion()  # not in the first call: what Ctrl-C raises there, C++ makes a RuntimeError of on torch 1.13
        wrapping.wrap_collectives()
        weakref.finalize(self, _unwrap_if_last).atexit = False  # torch 1.13 does not call shutdown, but forgets it
        _live.add(self)  # C++ holds a Backend without its Python half: it lives until shutdown

    def name(self):
        return 'muster'

    getBackendName = _get_backend_name = name

    # Plain attributes: torch 2.15's own properties of these names ask the Python object, which asks them, for ever.
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

    def split(self, store, ranks, opts):
        """torch's split_group: the group of these ranks, which meet through a store of their own."""
        if self._rank not in ranks:
            raise NotAMember(f'muster: rank {self._rank} is not among the ranks {list(ranks)} of the new group')
        return Group(store, ranks.index(self._rank), len(ranks), opts._timeout)

    def describe(self):
        """One line on how the group moves data, for logs."""
        return self._comm.describe()

    def abort(self, *_):
        """Ends calls under way here and at the peers; the group is of no use afterwards."""
        self._comm.abort()

    def shutdown(self, *_):
        """Leaves. Collectives that were started and not waited for end before, unless an error is under way."""
        self._leave(0 if sys.exc_info()[0] else meeting.milliseconds(self._timeout))

    def _leave(self, settle_ms):
        global _lost_one
        if os.getpid() == self._pid:  # a forked child has nothing under way
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
    """At exit without destroy: peers learn soon, and no thread of ours outlives the interpreter.

    A rank may know that another has left before that one's process has ended (its interpreter takes its time, and so does a core
    dump). Who ends by an exception then waits a moment, so that the other one's end, which is the cause, is the first.
    """
    raised = hasattr(sys, 'last_type')  # an exception ends this program
    ours = [group for group in list(_live) if group._pid == os.getpid()]
    if raised and (_lost_one or any(group._has_lost_one() for group in ours)):
        time.sleep(YIELD_AT_EXIT_S)
    for group in ours:
        group._leave(0 if raised else SETTLE_AT_EXIT_MS)
    stop_completion()


atexit.register(_close_all)
