"""How the processes of a group find each other: through the store that torch made for them."""
import os
from datetime import timedelta

from muster import _muster


def _round(store, rank):
    """A name that no earlier group of this store has used, the same on all ranks.

    A store may outlive its users: torchrun restarts workers on the same one, and a program may destroy the group and
    make it again. Each rank counts its own beginnings; after a restart by torchrun the count starts anew.
    """
    attempt = os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')
    return f"muster/{attempt}/{store.add(f'muster/{attempt}/begun/{rank}', 1)}"


def make_comm(store, rank, size, timeout):
    """Waits until all ranks have come. `timeout` is a timedelta, and that of every later wait for a live peer."""
    name = _round(store, rank)

    def set_value(key, value):
        store.set(f'{name}/{key}', value)

    def get_value(key, timeout_ms):
        key = f'{name}/{key}'
        store.wait([key], timedelta(milliseconds=max(1, timeout_ms)))
        return bytes(store.get(key))

    timeout_ms = max(1, int(timeout / timedelta(milliseconds=1)))
    return _muster.Comm(set_value, get_value, rank, size, timeout_ms, name)


def monitored_barrier(store, rank, size, round_number, timeout, wait_all_ranks):
    """torch's monitored_barrier, through the store: it works, and names who is missing, whatever state the group is in.

    Rank 0 waits for each rank in turn and tells the others the outcome; its error names the first rank that did not
    come, or with wait_all_ranks all of them.
    """
    prefix = f'muster/monitored/{round_number}'
    store.set(f'{prefix}/{rank}', b'here')
    if rank == 0:
        missing = _missing(store, prefix, size, timeout, wait_all_ranks)
        store.set(f'{prefix}/outcome', ','.join(map(str, missing)).encode() or b'-')
        if missing:
            names = ', '.join(map(str, missing))
            limit_ms = int(timeout / timedelta(milliseconds=1))
            raise RuntimeError(f'[Rank 0]: {"Ranks" if len(missing) > 1 else "Rank"} {names} failed to pass '
                               f'monitoredBarrier in {limit_ms} ms')
        return
    try:
        store.wait([f'{prefix}/outcome'], timeout * 2)
        outcome = bytes(store.get(f'{prefix}/outcome'))
    except Exception:
        outcome = None
    if outcome != b'-':
        raise RuntimeError(f'[Rank {rank}]: Rank {rank} successfully reached monitoredBarrier, but received errors while '
                           f'waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.')


def _missing(store, prefix, size, timeout, all_of_them):
    missing = []
    for peer in range(1, size):
        try:
            store.wait([f'{prefix}/{peer}'], timedelta(milliseconds=1) if missing else timeout)
        except Exception:
            missing.append(peer)
            if not all_of_them:
                break
    return missing
