"""Three threads use one communicator at the same time, with as little Python code as possible in between: one sends, one
receives, and the main thread all-reduces. Prints `in order` if all messages came in order and every sum was right.
"""
import os
import sys
import threading

import torch
import torch.distributed as dist

import muster.torch  # noqa: F401
from muster import _muster

RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
MESSAGES, SUMS = 10_000, 3000
wrong = []


def communicator():
    group = dist.distributed_c10d._get_default_group()
    return getattr(group, '_comm', None) or group._get_backend(torch.device('cpu'))._comm


def send(run):
    for number in range(MESSAGES):
        tensor = torch.full((100,), float(number))
        run(_muster.SEND, _muster.F32, 0, 1 - RANK, 0, tensor.data_ptr(), 0, 100)


def receive(run):
    tensor = torch.zeros(100)
    for number in range(MESSAGES):
        run(_muster.RECV, _muster.F32, 0, 1 - RANK, 0, 0, tensor.data_ptr(), 100)
        if tensor[0] != number or tensor[-1] != number:
            wrong.append(f'message {number} was {tensor[0]:g} … {tensor[-1]:g}')


def add_up(run):
    for number in range(SUMS):
        tensor = torch.ones(500)
        run(_muster.ALL_REDUCE, _muster.F32, _muster.SUM, 0, 0, tensor.data_ptr(), tensor.data_ptr(), 500)
        if tensor[0] != SIZE or tensor[-1] != SIZE:
            wrong.append(f'sum {number} was {tensor[0]:g} … {tensor[-1]:g}')


dist.init_process_group('muster', init_method=os.environ['MEETING'], rank=RANK, world_size=SIZE)
sys.setswitchinterval(1e-4)
threads = [threading.Thread(target=target, args=(communicator().run,)) for target in (send, receive)]
for thread in threads:
    thread.start()
add_up(communicator().run)
for thread in threads:
    thread.join()
dist.barrier()
print('\n'.join(wrong[:5]) or 'in order')
