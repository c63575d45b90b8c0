"""One rank with a GPU: `gpu.py WHAT`; prints `done` if everything was correct."""
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])


def begin(backend):
    """Uses the backend's name only: torch 2.x finds the backend by it."""
    torch.cuda.set_device(0)
    dist.init_process_group(backend, init_method=os.environ['MEETING'], rank=RANK, world_size=SIZE)


def refuses(call):
    try:
        call()
    except RuntimeError as error:
        assert 'nccl' in str(error) and 'cuda' in str(error), error
    else:
        raise AssertionError('no error')


def sums_on(device):
    tensor = torch.full((1000,), RANK + 1., device=device)
    dist.all_reduce(tensor)
    assert tensor.eq(SIZE * (SIZE + 1) / 2).all(), tensor


def refused():
    begin('muster')
    tensor = torch.ones(3, device='cuda')
    refuses(lambda: dist.all_reduce(tensor))
    refuses(lambda: dist.broadcast(tensor, 0))
    refuses(lambda: dist.all_gather([torch.empty_like(tensor) for _ in range(SIZE)], tensor))
    refuses(lambda: dist.all_gather_into_tensor(tensor.repeat(SIZE), tensor))
    refuses(lambda: dist.reduce_scatter_tensor(tensor, tensor.repeat(SIZE)))
    refuses(lambda: dist.send(tensor, 1 - RANK))
    refuses(lambda: dist.recv(tensor, 1 - RANK))
    refuses(lambda: dist.all_reduce(tensor, async_op=True))
    sums_on('cpu')  # the group still works


def ddp_refused():
    begin('muster')
    refuses(lambda: DistributedDataParallel(torch.nn.Linear(4, 4).cuda(), device_ids=[0]))


def beside_nccl():
    begin('cpu:muster,cuda:nccl')
    sums_on('cpu')
    sums_on('cuda')
    group = dist.distributed_c10d._get_default_group()
    assert group._get_backend(torch.device('cpu')).name() == 'muster'
    model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda(), device_ids=[0])
    model(torch.ones(2, 4, device='cuda')).sum().backward()
    assert model.module.weight.grad is not None


globals()[sys.argv[1]]()
dist.destroy_process_group()
print('done')
