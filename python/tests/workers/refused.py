"""Makes calls whose lists or sizes do not fit; every rank must refuse them before any data moves. Prints `ok NAME: TEXT`."""
import os
from datetime import timedelta

import torch
import torch.distributed as dist

import muster.torch  # noqa: F401

RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
dist.init_process_group('muster', init_method=os.environ['MEETING'], rank=RANK, world_size=SIZE,
                        timeout=timedelta(seconds=60))
group = dist.distributed_c10d._get_default_group()
if hasattr(group, '_get_backend'):
    group = group._get_backend(torch.device('cpu'))
ones, zeros = torch.ones, torch.zeros
I32 = torch.int32

CALLS = {
    'scatter_short_list': lambda: dist.scatter(zeros(4), [ones(4)], src=RANK),
    'scatter_small_pieces': lambda: dist.scatter(zeros(4), [ones(2), ones(2)], src=RANK),
    'scatter_type': lambda: group.scatter([zeros(4)], [[ones(4, dtype=I32)] * 2], root(dist.ScatterOptions())),
    'gather_short_list': lambda: dist.gather(ones(4), [zeros(4)], dst=RANK),
    'gather_uneven': lambda: dist.gather(ones(4), [zeros(2), zeros(6)], dst=RANK),
    'gather_type': lambda: group.gather([[zeros(4, dtype=I32)] * 2], [ones(4)], root(dist.GatherOptions())),
    'gather_into_small_tensor': lambda: group.gather_single(zeros(4), ones(4), root(dist.GatherOptions())),
    'reduce_scatter_short_list': lambda: dist.reduce_scatter(zeros(4), [ones(4)]),
    'reduce_scatter_long_list': lambda: dist.reduce_scatter(zeros(4), [ones(4)] * 3),
    'reduce_scatter_large_pieces': lambda: dist.reduce_scatter(zeros(4), [ones(6)] * 2),
    'reduce_scatter_tensor': lambda: dist.reduce_scatter_tensor(zeros(4), ones(9)),
    'reduce_scatter_coalesced': lambda: group.reduce_scatter_single_coalesced([zeros(3), zeros(1)], [ones(4), ones(4)]),
    'reduce_scatter_coalesced_short': lambda: group.reduce_scatter_single_coalesced([zeros(2)], [ones(4), ones(4)]),
    'all_gather_short_list': lambda: dist.all_gather([zeros(4)], ones(4)),
    'all_gather_own_size': lambda: dist.all_gather([zeros(3), zeros(3)], ones(4)),
    'all_gather_type': lambda: group.allgather([[zeros(4, dtype=I32)] * 2], [ones(4)]),
    'all_gather_into_tensor': lambda: dist.all_gather_into_tensor(zeros(7), ones(4)),
    'all_gather_single_coalesced': lambda: group.all_gather_single_coalesced([zeros(4)], [ones(2), ones(2)]),
    'all_gather_single_type': lambda: group.all_gather_single_coalesced([zeros(4, dtype=I32)], [ones(2)]),
    'all_gather_coalesced_short_list': lambda: group.allgather_coalesced([[zeros(2)]], [ones(2)]),
    'all_gather_coalesced_size': lambda: group.allgather_coalesced([[zeros(1), zeros(3)]] * 2, [ones(2), ones(2)]),
    'all_to_all_short_list': lambda: dist.all_to_all([zeros(4)], [ones(4)]),
    'all_to_all_own_size': lambda: dist.all_to_all([zeros(3), zeros(3)], [ones(2), ones(2)]),
    'all_to_all_single_rows': lambda: dist.all_to_all_single(zeros(4, 2), ones(4, 3)),
    'all_to_all_single_negative': lambda: dist.all_to_all_single(zeros(4), ones(4), [-2, 6], [-2, 6]),
    'all_reduce_of_two': lambda: group.allreduce([ones(2), ones(2)]),
    'broadcast_of_two': lambda: group.broadcast([ones(2), ones(2)], root(dist.BroadcastOptions())),
    'all_reduce_sparse_shapes': lambda: dist.all_reduce(torch.sparse_coo_tensor([[0]], [1.], (3 + RANK,))),
    'send_of_two': lambda: group.send([ones(2), ones(2)], 1 - RANK),
}


def root(options):
    options.rootRank = RANK
    return options


for name, call in CALLS.items():
    try:
        call()
    except (RuntimeError, ValueError) as error:
        print(f'ok {name}: {error}', flush=True)
    else:
        print(f'FAIL {name}: no error', flush=True)
        os._exit(1)  # from here on the ranks would make different calls
tensor = ones(3)
dist.all_reduce(tensor)  # the group still works
assert tensor.tolist() == [SIZE] * 3
dist.destroy_process_group()
