"""Asynchronous calls as their callers see them; each rank prints `ok NAME` as collectives.py does."""
import gc
import sys
import time
import weakref

import torch
import torch.distributed as dist
from collectives import SIZE, TOTAL, equal, main, mine


def until(condition, what):
    limit = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < limit, what
        time.sleep(0.001)


def until_completed(work):
    until(work.is_completed, 'never completed')


def case_a_completed_result_is_in_its_tensors():
    parts = [torch.zeros(3) for _ in range(SIZE)]
    until_completed(dist.all_gather(parts, mine(3), async_op=True))
    for rank, part in enumerate(parts):
        equal(part, rank + 1)
    strided = mine(4, 6).t()[::2]
    until_completed(dist.all_reduce(strided, async_op=True))
    equal(strided, TOTAL)


def case_a_result_arrives_though_nobody_waits():
    parts = [torch.zeros(3) for _ in range(SIZE)]
    dist.all_gather(parts, mine(3), async_op=True)
    until(lambda: all(part[-1] for part in parts), parts)


def case_an_ended_call_keeps_no_tensor_alive():
    """This holds without the garbage collector, which runs late if objects are large and few."""
    def call():
        tensor = mine(1000)
        work = dist.all_reduce(tensor, async_op=True)
        if number % 3 == 0:
            work.get_future().wait()
        elif number % 3 == 1:
            work.wait()
        dist.barrier()
        return weakref.ref(tensor)
    gc.disable()
    try:
        left = []
        for number in range(7):  # the next call releases a call that nobody waited for
            left.append(call())
        until_gone(left)
    finally:
        gc.enable()


def until_gone(references):
    """Waits until no tensor is alive; the completion thread may hold the last of them for a moment."""
    until(lambda: all(reference() is None for reference in references), 'kept alive')


def case_an_asynchronous_call_is_a_work():
    work = dist.all_reduce(mine(3), async_op=True)
    assert isinstance(work, dist.distributed_c10d.Work)
    work.wait()


def case_a_sparse_all_reduce_may_be_asynchronous():
    tensor = torch.sparse_coo_tensor([[0, 1]], mine(2), (3,))
    work = dist.all_reduce(tensor, async_op=True)
    work.wait()
    assert work.is_completed() and work.result()[0] is tensor
    assert tensor.to_dense().tolist() == [TOTAL, TOTAL, 0]


def case_a_future_of_a_gather_holds_tensors():
    parts = [torch.zeros(3) for _ in range(SIZE)]
    work = dist.all_gather(parts, mine(3), async_op=True)
    future = work.get_future()
    future.wait()
    for parts in future.value(), work.result():
        for rank, part in enumerate(parts):
            equal(part, rank + 1)


def case_a_callback_may_wait_for_calls_of_its_own():
    """PowerSGD's callbacks do this. No call ends before rank 0 has attached its callback, which would otherwise run on the caller's thread."""
    store = dist.distributed_c10d._get_default_store()
    tensors = [mine(10) for _ in range(3)]

    def call(number, then):
        if dist.get_rank():
            store.wait([f'attached/{number}'])
        future = dist.all_reduce(tensors[number], async_op=True).get_future().then(then)
        if dist.get_rank() == 0:
            store.set(f'attached/{number}', 'yes')
        return future
    call(0, lambda _: call(1, lambda _: call(2, lambda f: f.value()).wait()).wait()).wait()
    for tensor in tensors:
        equal(tensor, TOTAL)


def case_more_calls_than_fit():
    """Rank 1 starts its calls when the others have started as many calls as may be under way; receives wait for later sends."""
    store = dist.distributed_c10d._get_default_store()
    works = []
    if dist.get_rank():
        store.wait(['full'])
    for number in range(1500):
        if number == 1024:
            store.set('full', 'yes')
        works.append(dist.broadcast(mine(3), 0, async_op=True))
    peer = 1 - dist.get_rank()
    got = [torch.zeros(3) for _ in range(1500)]
    works += [dist.irecv(tensor, peer, tag=number) for number, tensor in enumerate(got)]
    for number in range(1500):
        dist.send(torch.full((3,), float(number)), peer, tag=number)
    for work in works:
        work.wait()
    for number, tensor in enumerate(got):
        equal(tensor, number)


if __name__ == '__main__':
    sys.exit(main(globals()))
