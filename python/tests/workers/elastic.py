"""A member of an elastic world, without torch: endpoint, form, query, sums of parts, regions."""
import array
import json
import os
import pathlib
import signal
import sys
import threading

import muster

FORM_MS = 60_000
rank, size = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
scratch = pathlib.Path(os.environ['SCRATCH'])


def wait_for(path):
    """Returns the file's bytes, as soon as a process has written it (by renaming)."""
    while not path.exists():
        threading.Event().wait(0.001)
    return path.read_bytes()


def tell(name, data):
    (scratch / f'{name}.part').write_bytes(data)
    (scratch / f'{name}.part').rename(scratch / name)


def members_of(endpoint):
    tell(f'member-{rank}', endpoint.member)
    return [wait_for(scratch / f'member-{r}') for r in range(size)]


def raised(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except muster.Error as error:
        return [error.name, error.rank, [c.__name__ for c in type(error).__mro__[:3]]]
    return None


def sums():
    endpoint = muster.Endpoint('127.0.0.1')
    comm = endpoint.form(members_of(endpoint), rank, 7, FORM_MS)
    state = comm.query()
    mine = array.array('d', [0.1 * (rank * 3 + i) for i in range(3) for _ in range(1000)])
    total = array.array('d', bytes(8 * 1000))
    comm.all_reduce_parts(mine, rank * 3, 3, size * 3, total, 1000, muster._muster.F64)
    refused = []
    for bad in (lambda: comm.all_reduce_parts(mine, 0, 3, 3, total, 999, muster._muster.F64),
                lambda: comm.all_reduce_parts(mine, 0, 3, 3, bytes(8000), 1000, muster._muster.F64),
                lambda: endpoint.form([b'short'], 0, 1, FORM_MS), lambda: endpoint.form([], 0, 1, FORM_MS),
                lambda: endpoint.form([bytes(128)], 0, 1, FORM_MS)):
        try:
            bad()
        except (ValueError, TypeError, BufferError) as error:
            refused.append(type(error).__name__)
    comm.close()
    endpoint.close()
    return {'state': state, 'sum': total[0], 'equal': len(set(total)) == 1, 'refused': refused}


def death():
    """The last rank dies; the others get an error at once, and go on without it."""
    endpoint = muster.Endpoint('127.0.0.1')
    members = members_of(endpoint)
    if rank == size - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    told = raised(endpoint.form, members, rank, 1, FORM_MS)
    comm = endpoint.form(members[:-1], rank, 2, FORM_MS)
    return {'told': told, 'size': comm.query()['size']}


def cancel():
    """A thread waits in form(), and the interpreter keeps running: the main thread cancels the call, and closes the endpoint during another."""
    endpoint, absent = muster.Endpoint('127.0.0.1'), muster.Endpoint('127.0.0.1')
    told = []
    thread = threading.Thread(target=lambda: told.append(
        raised(endpoint.form, [endpoint.member, absent.member], 0, 5, FORM_MS)))
    thread.start()
    endpoint.cancel(5)
    thread.join()
    closed = threading.Thread(target=lambda: told.append(
        raised(endpoint.form, [endpoint.member, absent.member], 0, 6, FORM_MS)))
    closed.start()
    while not endpoint_is_busy(endpoint, absent):
        pass
    endpoint.close()
    closed.join()
    return {'told': told}


def endpoint_is_busy(endpoint, absent):
    try:
        endpoint.form([endpoint.member, absent.member], 0, 6, 0)
    except muster.TimeoutError:
        return False
    except ValueError:
        return True


def interrupt():
    endpoint, absent = muster.Endpoint('127.0.0.1'), muster.Endpoint('127.0.0.1')
    try:
        print('forming', flush=True)
        endpoint.form([endpoint.member, absent.member], 0, 5, FORM_MS)
    except KeyboardInterrupt:
        return {'interrupted': True}


def regions():
    state = bytearray(os.urandom(3_000_001))
    region = muster.Region(state, '127.0.0.1')
    try:
        state.append(0)
    except BufferError:
        held = True
    got = bytearray(len(state))
    hidden = raised(muster.region_read, [region.member], 1, 2, got, FORM_MS)
    region.set(1, 2)
    muster.region_read([region.member, region.member], 1, 2, got, FORM_MS)
    moved = raised(muster.region_read, [region.member], 1, 3, got, FORM_MS)
    member = region.member
    region.close()
    state.append(0)
    gone = raised(muster.region_read, [member], 1, 2, got, FORM_MS)
    return {'equal': got == state[:-1], 'held': held, 'hidden': hidden, 'moved': moved, 'gone': gone}


print(json.dumps(globals()[sys.argv[1]]()), flush=True)
