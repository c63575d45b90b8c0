"""How the processes of a group find each other: through the store that torch created for them."""
import os
import time
from datetime import timedelta

from muster import _muster


NOTICE_MS = 60_000      # a call that waits this long names the missing ranks on stderr; MUSTER_NOTICE_MS changes the time
_LONGEST_MS = 2**31 - 1  # 24 days; timedelta.max would overflow in the layers below


def milliseconds(timeout):
    """Returns a timedelta in milliseconds, for libmuster and the stores."""
    return min(int(timeout / timedelta(milliseconds=1)), _LONGEST_MS)


def _round(store, rank):
    """Returns a name that no earlier group of this store has used, the same on all ranks.

    A store may outlive its users: torchrun restarts workers on the same one, and a program may destroy the group and
    make it again. Each rank counts the groups that it begins; after a restart by torchrun the count starts again from
    zero.
    """
    attempt = os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')
    return f"muster/{attempt}/{store.add(f'muster/{attempt}/begun/{rank}', 1)}"


def make_comm(store, rank, size, timeout):
    """Returns (communicator, its name) when all ranks have come.

    `timeout` is a timedelta; it also limits every later wait for a live peer.
    """
    name = _round(store, rank)

    def set_value(key, value):
        store.set(f'{name}/{key}', value)

    def get_value(key, timeout_ms):
        key = f'{name}/{key}'
        store.wait([key], timedelta(milliseconds=max(1, timeout_ms)))
        return bytes(store.get(key))

    notice_ms = 0 if 'MUSTER_NOTICE_MS' in os.environ else NOTICE_MS
    return _muster.Comm(set_value, get_value, rank, size, max(1, milliseconds(timeout)), name, None, notice_ms), name


def monitored_barrier(store, prefix, rank, size, timeout, wait_all_ranks):
    """torch's monitored_barrier, through the store: it works, and names the missing ranks, in any state of the group.

    Rank 0 waits for each rank in turn and tells the others the outcome; its error names the first rank that did not
    come, or with wait_all_ranks all of them. The messages are those of gloo.
    """
    store.set(f'{prefix}/{rank}', b'here')
    if rank == 0:
        trouble = _missing(store, prefix, size, timeout, wait_all_ranks)
        store.set(f'{prefix}/outcome', trouble or 'passed')
        if trouble:
            raise RuntimeError(f'[Rank 0]: {trouble} {milliseconds(timeout)} ms')
        return
    try:
        store.wait([f'{prefix}/outcome'], timeout * 2 + timedelta(seconds=1))
        passed = bytes(store.get(f'{prefix}/outcome')) == b'passed'
    except Exception:
        passed = False
    if not passed:
        raise RuntimeError(f'[Rank {rank}]: Rank {rank} successfully reached monitoredBarrier, but received errors while '
                           f'waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.')


def _missing(store, prefix, size, timeout, all_of_them):
    """Returns the error message for the missing ranks, on rank 0, or None."""
    missing = []
    deadline = time.monotonic() + timeout / timedelta(seconds=1)
    for peer in range(1, size):
        left = deadline - time.monotonic()
        if left <= 0 and not all_of_them:
            return 'Rank 0 timed out in monitoredBarrier after'
        try:
            store.wait([f'{prefix}/{peer}'], timedelta(seconds=max(left, 0.001)))
        except Exception:
            missing.append(str(peer))
            if not all_of_them:
                break
    if not missing:
        return None
    return f'{"Ranks" if len(missing) > 1 else "Rank"} {", ".join(missing)} failed to pass monitoredBarrier in'
