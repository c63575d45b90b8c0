"""Wraps functions of torch.distributed while a group of backend muster exists, and at no other time:

- ``monitored_barrier`` on torch 1.13, which supports only gloo.
- ``split_group`` on torch 2.x: for a rank that is in no part of the split.
- ``async_op`` on torch 2.x: a Work that is returned through C++ has no is_completed, result or source; the group's own
  Work has them, and is returned instead.
"""
import sys

from muster.torch.handing import NotAMember, hand, torch_needs_a_work
from muster.substitution import C10D, substitute, wrapping

_wrapped = {}  # torch's function -> ours, while a group of muster exists


def wrap_collectives():
    """Wraps torch's collectives, for the first group of muster in this process."""
    if _wrapped:
        return
    c10d = sys.modules[C10D]
    if hasattr(c10d.ProcessGroup, '_register_backend'):
        makers = {name: _handing for name in _ASYNC}
        makers['split_group'] = _split_group
    else:
        makers = {'monitored_barrier': _monitored_barrier}
    for name, make in makers.items():
        original = getattr(c10d, name, None)
        if original is not None:
            _wrapped[original] = make(c10d, original)
    substitute(_wrapped)


def unwrap_collectives():
    """Undoes the wrapping, after the last group."""
    substitute({wrapper: original for original, wrapper in _wrapped.items()})
    _wrapped.clear()


# -- functions that only gloo supports -------------------------------------------------------------------------------

def _is_muster(c10d, group):
    return c10d.get_backend(group or c10d._get_default_group()) == 'muster'


def _monitored_barrier(c10d, original):
    @wrapping(original)
    def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
        if c10d._rank_not_in_group(group) or not _is_muster(c10d, group):
            return original(group, timeout, wait_all_ranks)
        group = group or c10d._get_default_group()
        return group.monitored_barrier(timeout or c10d.default_pg_timeout, wait_all_ranks)
    return monitored_barrier


def _split_group(c10d, original):
    @wrapping(original)
    def split_group(*args, **kwargs):
        try:
            return original(*args, **kwargs)
        except NotAMember:
            return c10d.GroupMember.NON_GROUP_MEMBER
    return split_group


# -- Works that come back through C++ ---------------------------------------------------------------------------------

_ASYNC = ('all_reduce', 'broadcast', 'reduce', 'all_gather', 'all_gather_into_tensor', 'gather', 'scatter',
          'reduce_scatter', 'reduce_scatter_tensor', 'all_to_all', 'all_to_all_single', 'barrier', 'isend', 'irecv')


def _handing(c10d, original):
    @wrapping(original)
    def collective(*args, **kwargs):
        if torch_needs_a_work(sys._getframe(1)):
            return original(*args, **kwargs)
        hand.reaching, hand.operation = True, None
        try:
            work = original(*args, **kwargs)
            return work if work is None or hand.operation is None else hand.operation
        finally:
            hand.reaching, hand.operation = False, None
    return collective
