"""Every rank runs all cases in order, and prints `ok NAME` for each case in which torch's documented behaviour holds on this rank."""
import os
import sys
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

import muster.torch  # noqa: F401

RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
TORCH2 = hasattr(dist.ProcessGroup, '_register_backend')


def equal(got, expected):
    expected = torch.as_tensor(expected, dtype=got.dtype)
    assert torch.equal(got, expected.expand_as(got)), f'got {got}, expected {expected}'


def mine(*shape, dtype=torch.float32):
    return torch.full(shape, RANK + 1, dtype=dtype)


TOTAL = SIZE * (SIZE + 1) // 2


def case_all_reduce_of_every_type():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.int16,
                  torch.int32, torch.int64):
        tensor = mine(3, 5, dtype=dtype)
        assert dist.all_reduce(tensor) is None
        equal(tensor, TOTAL)


def case_all_reduce_by_every_operation():
    product = 1
    for rank in range(SIZE):
        product *= rank + 1
    bits = {'BAND': ~0, 'BOR': 0, 'BXOR': 0}
    for rank in range(SIZE):
        bits = {'BAND': bits['BAND'] & rank + 1, 'BOR': bits['BOR'] | rank + 1, 'BXOR': bits['BXOR'] ^ rank + 1}
    for name, expected in dict(SUM=TOTAL, PRODUCT=product, MIN=1, MAX=SIZE, **bits).items():
        tensor = mine(7, dtype=torch.int32)
        dist.all_reduce(tensor, getattr(dist.ReduceOp, name))
        equal(tensor, expected)
    tensor = mine(7)
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    equal(tensor, TOTAL / SIZE)


def case_all_reduce_of_bool():
    tensor = torch.tensor([RANK == 0, True, False])
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    equal(tensor, [True, True, False])


def case_all_reduce_asynchronous():
    tensors = [mine(1000 * (i + 1)) for i in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work, tensor in zip(works, tensors):
        work.wait()
        assert work.is_completed()
        equal(tensor, TOTAL)


def case_all_reduce_future_and_callback():
    tensor = mine(10)
    future = dist.all_reduce(tensor, async_op=True).get_future()
    doubled = future.then(lambda f: f.value()[0] * 2)
    equal(doubled.wait(), 2 * TOTAL)


def case_all_reduce_not_contiguous():
    tensor = mine(6, 8)
    view = tensor.t()[::2]
    dist.all_reduce(view)
    equal(view, TOTAL)
    equal(tensor[:, 1::2], RANK + 1)
    work = dist.all_reduce(view, async_op=True)
    work.wait()
    equal(view, TOTAL * SIZE)


def case_all_reduce_odd_shapes():
    for tensor in (torch.tensor(float(RANK + 1)), mine(0), mine(1), mine(3, 0, 2), mine(5_000_003)):
        dist.all_reduce(tensor)
        equal(tensor, TOTAL)


def case_all_reduce_complex():
    tensor = torch.complex(mine(4), 2 * mine(4))
    dist.all_reduce(tensor)
    equal(torch.view_as_real(tensor), [TOTAL, 2 * TOTAL])


def case_reduction_of_half_precision_complex_numbers():
    parts = torch.arange(4. * SIZE).half()
    numbers = torch.view_as_complex(torch.stack([parts, -parts], 1))
    out = torch.view_as_complex(torch.zeros(4, 2).half())
    dist.reduce_scatter_tensor(out, numbers)
    equal(torch.view_as_real(out), [[(4 * RANK + i) * SIZE, -(4 * RANK + i) * SIZE] for i in range(4)])


def case_all_reduce_sparse():
    tensor = torch.sparse_coo_tensor([[RANK, SIZE]], [1.0, 1.0], (SIZE + 1,))
    dist.all_reduce(tensor)
    equal(tensor.to_dense(), [1.0] * SIZE + [float(SIZE)])


def case_all_reduce_coalesced():
    tensors = [mine(3), mine(2, 2).t(), mine(0)]
    dist.all_reduce_coalesced(tensors)
    for tensor in tensors:
        equal(tensor, TOTAL)


def case_broadcast_from_each_root():
    for root in range(SIZE):
        tensor = mine(5, 3).t()
        dist.broadcast(tensor, root)
        equal(tensor, root + 1)


def case_broadcast_of_a_type_that_is_only_moved():
    tensor = torch.complex(mine(3), -mine(3))
    dist.broadcast(tensor, SIZE - 1)
    equal(torch.view_as_real(tensor), [SIZE, -SIZE])


def case_reduce():
    for root in range(SIZE):
        tensor = mine(9)
        dist.reduce(tensor, root)
        if RANK == root:
            equal(tensor, TOTAL)


def case_all_gather_into_a_list():
    for parts in ([torch.zeros(2, 3) for _ in range(SIZE)], list(torch.zeros(SIZE, 2, 3))):
        dist.all_gather(parts, mine(2, 3))
        for rank, part in enumerate(parts):
            equal(part, rank + 1)


def case_all_gather_into_a_tensor():
    out = torch.zeros(SIZE * 4)
    dist.all_gather_into_tensor(out, mine(4))
    equal(out, [rank + 1 for rank in range(SIZE) for _ in range(4)])


def case_all_gather_coalesced():
    outs = [[torch.zeros(2), torch.zeros(3)] for _ in range(SIZE)]
    dist.all_gather_coalesced(outs, [mine(2), mine(3)])
    for rank, parts in enumerate(outs):
        equal(parts[0], rank + 1)
        equal(parts[1], rank + 1)


def case_gather_and_scatter():
    for root in range(SIZE):
        parts = [torch.zeros(4) for _ in range(SIZE)] if RANK == root else None
        dist.gather(mine(4), parts, dst=root)
        for rank, part in enumerate(parts or []):
            equal(part, rank + 1)
        out = torch.zeros(2, 3).t()
        dist.scatter(out, [torch.full((3, 2), rank + 10.) for rank in range(SIZE)] if RANK == root else None, src=root)
        equal(out, RANK + 10)


def case_reduce_scatter_of_a_list():
    out = torch.zeros(3)
    dist.reduce_scatter(out, [torch.full((3,), float(rank * 10 + RANK)) for rank in range(SIZE)])
    equal(out, RANK * 10 * SIZE + TOTAL - SIZE)


def case_reduce_scatter_of_a_tensor():
    out = torch.zeros(3)
    dist.reduce_scatter_tensor(out, torch.arange(SIZE * 3.))
    equal(out, [SIZE * (RANK * 3. + i) for i in range(3)])


def case_all_to_all():
    outs = [torch.zeros(rank + 1) for rank in range(SIZE)]
    dist.all_to_all(outs, [torch.full((RANK + 1,), float(10 * RANK + to)) for to in range(SIZE)])
    for rank, out in enumerate(outs):
        equal(out, 10 * rank + RANK)


def case_all_to_all_single():
    out = torch.zeros(SIZE, 2)
    dist.all_to_all_single(out, torch.full((SIZE, 2), float(RANK)))
    equal(out, [[float(rank)] * 2 for rank in range(SIZE)])
    splits = [to + 1 for to in range(SIZE)]
    out = torch.zeros(SIZE * (RANK + 1))
    dist.all_to_all_single(out, torch.full((sum(splits),), float(RANK)), [RANK + 1] * SIZE, splits)
    equal(out, [rank for rank in range(SIZE) for _ in range(RANK + 1)])


def case_send_and_receive():
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got = torch.zeros(3)
    if RANK % 2 == 0:
        dist.send(mine(3), right)
        assert dist.recv(got, left) == left
    else:
        assert dist.recv(got, left) == left
        dist.send(mine(3), right)
    equal(got, left + 1)


def case_large_messages_cross():
    """All ranks send before any of them receives."""
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got, given = torch.zeros(3_000_000), mine(3_000_000)
    works = [dist.isend(given, right), dist.irecv(got, left)]
    for work in works:
        work.wait()
    equal(got, left + 1)


def case_tags_choose_the_message():
    if RANK == 0:
        works = [dist.isend(torch.full((2,), float(tag)), 1, tag=tag) for tag in (5, 6, 7)]
        for work in works:
            work.wait()
    elif RANK == 1:
        for tag in (7, 5, 6):
            got = torch.zeros(2)
            dist.recv(got, 0, tag=tag)
            equal(got, tag)


def case_receive_from_any_source():
    if RANK:
        dist.send(mine(4), 0)
        return
    seen = set()
    for _ in range(SIZE - 1):
        got = torch.zeros(4)
        source = dist.recv(got)
        equal(got, source + 1)
        seen.add(source)
    assert seen == set(range(1, SIZE)), seen


def case_a_receive_does_not_hold_up_a_collective():
    """An irecv is started, then an all-reduce runs, and only then is the message sent."""
    got = torch.zeros(2)
    work = dist.irecv(got, 1, tag=9) if RANK == 0 else None
    tensor = mine(2)
    dist.all_reduce(tensor)
    equal(tensor, TOTAL)
    if RANK == 1:
        dist.send(mine(2), 0, tag=9)
    if work:
        work.wait()
        equal(got, 2)


def case_batch_isend_irecv():
    right, left = (RANK + 1) % SIZE, (RANK - 1) % SIZE
    got = torch.zeros(5)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, mine(5), right), dist.P2POp(dist.irecv, got, left)])
    for work in works:
        work.wait()
    equal(got, left + 1)


def case_barrier():
    assert dist.barrier() is None
    dist.barrier(async_op=True).wait()


def case_monitored_barrier():
    dist.monitored_barrier()
    dist.monitored_barrier(timeout=timedelta(seconds=60), wait_all_ranks=True)


def case_monitored_barrier_names_the_missing():
    if RANK == SIZE - 1:
        return
    try:
        dist.monitored_barrier(timeout=timedelta(seconds=0.3))
    except RuntimeError as error:
        expected = f'Rank {SIZE - 1} failed to pass monitoredBarrier' if RANK == 0 else 'errors while waiting'
        assert expected in str(error), error
    else:
        raise AssertionError('it passed without the last rank')


def case_object_collectives():
    objects = [None] * SIZE
    dist.all_gather_object(objects, {'rank': RANK, 'text': 'x' * RANK})
    assert objects == [{'rank': rank, 'text': 'x' * rank} for rank in range(SIZE)]
    objects = ['from', RANK] if RANK == 0 else [None, None]
    dist.broadcast_object_list(objects, src=0)
    assert objects == ['from', 0]
    gathered = [None] * SIZE if RANK == 1 else None
    dist.gather_object(('me', RANK), gathered, dst=1)
    assert RANK != 1 or gathered == [('me', rank) for rank in range(SIZE)]
    out = [None]
    dist.scatter_object_list(out, [f'for {rank}' for rank in range(SIZE)] if RANK == 0 else None, src=0)
    assert out == [f'for {RANK}']


def case_new_group():
    some = [rank for rank in range(SIZE) if rank != 1]
    group = dist.new_group(some)
    tensor = mine(3)
    if RANK in some:
        assert dist.get_world_size(group) == len(some)
        dist.all_reduce(tensor, group=group)
        equal(tensor, TOTAL - 2)
        dist.broadcast(tensor, some[-1], group=group)
        dist.destroy_process_group(group)
    else:
        assert group == dist.GroupMember.NON_GROUP_MEMBER


def case_mismatch_is_an_error_that_shows_both_sides():
    group = dist.new_group(list(range(SIZE)))
    try:
        dist.all_reduce(torch.zeros(4 if RANK else 5), group=group)
    except RuntimeError as error:
        assert 'all_reduce of' in str(error), error
    else:
        raise AssertionError('no error')


def case_other_devices_are_refused_and_nccl_named():
    from muster.torch.tensors import check
    try:
        check(torch.zeros(2, device='meta'))
    except RuntimeError as error:
        assert 'nccl' in str(error) and 'meta' in str(error), error
    else:
        raise AssertionError('no error')


def case_profiler_shows_collectives_by_name():
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        dist.all_reduce(mine(3))
    assert 'muster:all_reduce' in [event.key for event in profile.key_averages()]


def case_torch2_functional_collectives_and_mesh():
    if not TORCH2:
        return
    from torch.distributed import _functional_collectives as functional
    from torch.distributed.device_mesh import init_device_mesh
    equal(functional.all_reduce(mine(3), 'sum', dist.group.WORLD), TOTAL)
    gathered = functional.all_gather_tensor(mine(2), 0, dist.group.WORLD)
    equal(gathered, [rank + 1 for rank in range(SIZE) for _ in range(2)])
    mesh = init_device_mesh('cpu', (SIZE,))
    tensor = mine(2)
    dist.all_reduce(tensor, group=mesh.get_group())
    equal(tensor, TOTAL)


def case_torch2_fsdp_trains_as_one_process_does():
    """All ranks have equal batches, so sharded training must give the same result as plain training."""
    if not TORCH2:
        return
    import copy

    from torch.distributed.fsdp import fully_shard
    torch.manual_seed(0)
    alone = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.ReLU(), torch.nn.Linear(20, 3))
    sharded = fully_shard(copy.deepcopy(alone))
    batch = torch.randn(4, 10)
    for model in (alone, sharded):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
    for one, part in zip(alone.parameters(), sharded.parameters()):
        torch.testing.assert_close(part.full_tensor(), one)


def case_torch2_split_group():
    if not hasattr(dist, 'split_group'):
        return
    group = dist.split_group(split_ranks=[[1, 0]], timeout=timedelta(seconds=50))
    if RANK > 1:
        assert group is dist.GroupMember.NON_GROUP_MEMBER
        return
    assert dist.get_rank(group) == 1 - RANK
    tensor = mine(2)
    dist.all_reduce(tensor, group=group)
    equal(tensor, 3)


def case_short_forms_of_the_groups_own_calls():
    group = dist.distributed_c10d._get_default_group()
    tensor = mine(2)
    group.reduce(tensor, 0, dist.ReduceOp.MAX).wait()
    if RANK == 0:
        equal(tensor, SIZE)
    parts = [torch.zeros(2) for _ in range(SIZE if RANK == 0 else 0)]
    group.gather(parts, mine(2), 0).wait()
    for rank, part in enumerate(parts):
        equal(part, rank + 1)
    group.scatter(tensor, [torch.full((2,), float(rank)) for rank in range(SIZE if RANK == 0 else 0)], 0).wait()
    equal(tensor, RANK)


def case_torch2_backends_by_device():
    if not TORCH2:
        return
    group = dist.new_group(backend='cpu:muster,cuda:gloo')
    tensor = mine(2)
    dist.all_reduce(tensor, group=group)
    equal(tensor, TOTAL)
    assert 'rank' in group._get_backend(torch.device('cpu')).describe()


def case_destroy_and_again():
    for number in range(3):
        dist.destroy_process_group()
        begin(number + 1)
        tensor = mine(2)
        dist.all_reduce(tensor)
        equal(tensor, TOTAL)


def begin(number):
    dist.init_process_group('muster', init_method=f'{os.environ["MEETING"]}-{number}', rank=RANK, world_size=SIZE,
                            timeout=timedelta(seconds=60))


def main(names):
    begin(0)
    for name, case in [(n[5:], f) for n, f in names.items() if n.startswith('case_')]:
        try:
            case()
        except Exception:
            traceback.print_exc()
            print(f'FAIL {name}', flush=True)
            os._exit(1)  # from here on the ranks would make different calls
        print(f'ok {name}', flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    sys.exit(main(globals()))
