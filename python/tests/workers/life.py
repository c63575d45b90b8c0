"""One rank of a small program: `life.py WHAT`; the tests in test_life.py say what must happen."""
import atexit
import os
import signal
import socket
import sys
import threading
import time
from datetime import timedelta

import torch
import torch.distributed as dist

import muster.torch  # noqa: F401
from muster.torch.work import Operation

RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])


def begin(timeout_s=60, method=None):
    dist.init_process_group('muster', init_method=method or os.environ['MEETING'], rank=RANK, world_size=SIZE,
                            timeout=timedelta(seconds=timeout_s))


def say(text):
    print(text, flush=True)


def leave_without_destroy():
    """Rank 0 leaves, first a group and then all groups, before rank 1 has made the calls that rank 0 has started."""
    begin()
    store, group = dist.distributed_c10d._get_default_store(), dist.new_group(list(range(SIZE)))
    start_and_leave(store, 'a group', group)
    dist.destroy_process_group(group)
    start_and_leave(store, 'all')
    say('done')


def start_and_leave(store, key, group=None):
    if RANK:
        store.wait([key])
    works = [dist.all_reduce(torch.ones(100_000), group=group, async_op=True) for _ in range(20)]
    if RANK == 0:
        return store.set(key, 'left')
    for work in works:
        work.wait()


def meet_at_address():
    begin(method=sys.argv[2])
    total = torch.full((3,), float(RANK))
    dist.all_reduce(total)
    assert total.tolist() == [SIZE * (SIZE - 1) / 2] * 3
    dist.barrier()
    say('done')


def interrupt_soon():
    """Sends SIGINT to this rank while it waits."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()


def interrupt_a_wait():
    """Sends SIGINT when the main thread waits for a call. At other times torch 1.13's engine, when it calls Python, may turn the exception into a
    RuntimeError."""
    def see_and_interrupt():
        waits = Operation.wait.__code__
        while sys._current_frames()[threading.main_thread().ident].f_code is not waits:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=see_and_interrupt, daemon=True).start()


def wait_for_ever(call):
    """Rank 0 waits for rank 1, which never makes the call."""
    begin()
    dist.barrier()
    if RANK:
        signal.pause()
    try:
        interrupt_soon()
        call()
    except KeyboardInterrupt:
        say('interrupted')


def interrupt_all_reduce():
    wait_for_ever(lambda: dist.all_reduce(torch.ones(3)))


def interrupt_wait():
    wait_for_ever(lambda: dist.all_reduce(torch.ones(3), async_op=True).wait())


def interrupt_recv():
    wait_for_ever(lambda: dist.recv(torch.ones(3), 1))


def interrupt_barrier():
    wait_for_ever(dist.barrier)


def call_in_a_handler():
    """Rank 0 gets a signal while it waits in a call, and the signal's handler makes another call: the handler runs when the first call has
    ended."""
    begin()
    signal.signal(signal.SIGUSR1, lambda *_: dist.all_reduce(torch.ones(3)))
    store = dist.distributed_c10d._get_default_store()
    if RANK:
        store.wait(['signalled'])
    else:
        threading.Thread(target=signal_soon, args=(store,)).start()
    dist.all_reduce(torch.ones(3))
    if RANK:
        dist.all_reduce(torch.ones(3))
    dist.barrier()
    say('done')


def signal_soon(store):
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.3)
    store.set('signalled', 'yes')


def call_in_ctrl_c():
    """The same with Ctrl-C's handler, which runs inside the call: a call in this handler is refused."""
    begin()
    dist.barrier()
    signal.signal(signal.SIGINT, lambda *_: dist.all_reduce(torch.ones(3)))
    if RANK:
        signal.pause()
    try:
        interrupt_soon()
        dist.all_reduce(torch.ones(3))
    except RuntimeError as error:
        say(f'error {error}')


def complete_from_the_beginning():
    """The thread that completes calls is started before the first call, because Ctrl-C could interrupt its start in the first call."""
    begin()
    assert [t.name for t in threading.enumerate()].count('muster completion') == 1
    dist.barrier()
    say('done')


def wrapped_model():
    from torch.nn.parallel import DistributedDataParallel
    begin()
    return DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)))


def interrupt_backward():
    """Rank 0 waits inside DDP's backward."""
    model = wrapped_model()
    loss = model(torch.ones(3, 4)).sum()
    dist.barrier()
    if RANK:
        signal.pause()
    interrupt_a_wait()
    loss.backward()


def interrupt_forward():
    """Rank 1 waits for rank 0's buffers."""
    model = wrapped_model()
    dist.barrier()
    if RANK == 0:
        signal.pause()
    interrupt_soon()
    model(torch.ones(3, 4))


def die_in_backward():
    """Rank 1 is killed by the test while rank 0 waits for its gradients."""
    model = wrapped_model()
    loss = model(torch.ones(3, 4)).sum()
    dist.barrier()
    say('ready')
    if RANK:
        signal.pause()
    try:
        loss.backward()
    except RuntimeError as error:
        say(f'error {type(error).__name__} rank={getattr(error, "rank", None)} {error}')


def die_before(call):
    """The test kills rank 1; rank 0 makes the call and prints its error."""
    begin()
    dist.barrier()
    say('ready')
    if RANK:
        signal.pause()
    try:
        call(torch.ones(1_000_000))
        say('error none')
    except RuntimeError as error:
        say(f'error {type(error).__name__} rank={getattr(error, "rank", None)} {error}')


def die_in_a_call_of_the_group():
    die_before(lambda tensor: dist.distributed_c10d._get_default_group().allreduce([tensor]).wait())


def die_in_a_functional_collective():
    def call(tensor):
        if not hasattr(dist.ProcessGroup, '_register_backend'):  # torch 1.13 has no functional collectives
            return dist.all_reduce(tensor)
        from torch.distributed import _functional_collectives as functional
        return functional.wait_tensor(functional.all_reduce(tensor, 'sum', dist.group.WORLD))
    die_before(call)


def die_in_all_reduce():
    """The test kills the last rank; the others print their errors."""
    begin()
    dist.barrier()
    say('ready')
    try:
        while True:
            dist.all_reduce(torch.ones(1000))
    except RuntimeError as error:
        say(f'error {type(error).__name__} rank={getattr(error, "rank", None)} {error}')


def end_because_of_another():
    """Rank 1 leaves; rank 0 prints how much time its program takes to end after it has got the error."""
    seen = []
    atexit.register(lambda: seen and say(f'ended {time.monotonic() - seen[0]}'))
    begin()
    if RANK == 1:
        sys.exit(3)
    try:
        dist.all_reduce(torch.ones(1000))
    except RuntimeError:
        seen.append(time.monotonic())
        if sys.argv[2] == 'destroyed':
            dist.destroy_process_group()
        raise


def time_out():
    begin(timeout_s=5)
    dist.barrier()
    if RANK == 0:
        try:
            dist.all_reduce(torch.ones(3))
        except TimeoutError as error:
            say(f'error {error}')
    else:
        signal.pause()


def same_store_again():
    """Three groups, one after the other, over one store that is never emptied."""
    from muster.torch.group import Group
    store = dist.FileStore(os.environ['SCRATCH'] + '/kept', SIZE)
    for number in range(3):
        group = Group(store, RANK, SIZE, timedelta(seconds=60))
        tensor = torch.full((2,), float(number))
        group.allreduce([tensor]).wait()
        assert tensor[0] == number * SIZE
        group.shutdown()
    say('done')


def leave_under_a_wait():
    """A thread waits for a message that never comes, and another thread leaves the group. This happens twenty times, over one store."""
    from muster.torch.group import Group
    store = dist.FileStore(os.environ['SCRATCH'] + '/kept', SIZE)
    for _ in range(20):
        group = Group(store, RANK, SIZE, timedelta(seconds=60))
        work = group.recv([torch.zeros(4)], 1 - RANK, 0)
        begun, said = threading.Event(), []

        def wait():
            begun.set()
            try:
                work.wait()
            except Exception as error:
                said.append(str(error))

        thread = threading.Thread(target=wait)
        thread.start()
        begun.wait()
        group.shutdown()
        thread.join()
        assert len(said) == 1 and 'closed' in said[0], said
    say('done')


def close_under_a_question():
    """A thread waits in a barrier, and asks for the GIL to check for signals. Meanwhile the thread that has the GIL closes the communicator, and
    would not give the GIL up by itself."""
    from muster import _muster
    store, filled = {}, threading.Condition()

    def put(key, value):
        with filled:
            store[key] = value
            filled.notify_all()

    def get(key, timeout_ms):
        with filled:
            filled.wait_for(lambda: key in store, timeout_ms / 1000)
            return store[key]

    comms, said = [None, None], []

    def create(rank):
        comms[rank] = _muster.Comm(put, get, rank, 2, 60_000, 'pair')

    def wait():
        try:
            comms[0].run(_muster.BARRIER, 0, 0, 0, 0, 0, 0, 0)
        except Exception as error:
            said.append(type(error).__name__)

    threads = [threading.Thread(target=create, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    waiting = threading.Thread(target=wait)
    waiting.start()
    while not state_of(waiting).startswith('S'):  # asleep in the barrier
        os.sched_yield()
    sys.setswitchinterval(1000)
    end = time.monotonic() + 0.2  # the waiting thread asks every 50 ms
    while time.monotonic() < end:
        pass
    comms[0].close()
    sys.setswitchinterval(0.005)
    waiting.join()
    assert said == ['ConnectionError'], said
    comms[1].close()
    say('done')


def state_of(thread):
    with open(f'/proc/self/task/{thread.native_id}/stat') as stat:
        return stat.read().rpartition(') ')[2]


def die_once():
    """Runs under torchrun --max-restarts 1: rank 1 dies in the first attempt; the second attempt runs over the same store."""
    if os.environ['MASTER_ADDR'] == socket.gethostname():  # torchrun's choice, which a bare chroot cannot resolve
        os.environ['MASTER_ADDR'] = '127.0.0.1'
    dist.init_process_group('muster')
    dist.barrier()
    if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and RANK == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(3))
    dist.barrier()
    say(f'attempt {os.environ["TORCHELASTIC_RESTART_COUNT"]} done')


globals()[sys.argv[1]]()
