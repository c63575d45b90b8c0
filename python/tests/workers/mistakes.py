"""Trains with one silent mistake, or without one: `mistakes.py WHAT`; warnings are printed to stderr."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import muster.torch  # noqa: F401

WHAT = sys.argv[1]
RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])

dist.init_process_group('muster', init_method=os.environ['MEETING'], rank=RANK, world_size=SIZE)
torch.manual_seed(RANK if WHAT == 'model-parallel' else 0)
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
if WHAT not in ('unwrapped', 'unwrapped-begun-equal', 'model-parallel', 'by-hand', 'by-hand-diverging'):
    model = DistributedDataParallel(model)
if WHAT == 'by-hand-diverging' and RANK == 1:
    nn.init.normal_(model[0].weight)
if WHAT == 'unwrapped-begun-equal':
    for parameter in model.parameters():
        dist.broadcast(parameter.detach(), 0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = TensorDataset(torch.randn(960, 6), torch.randn(960, 1))
if WHAT == 'same-samples-in-dicts':
    data = [dict(mask=torch.ones(6), x=x, y=y) for x, y in data]
sampler = None if WHAT.startswith('same-samples') else DistributedSampler(data, SIZE, RANK)
steps = 0
while steps < 60:
    for batch in DataLoader(data, batch_size=8, sampler=sampler):
        x, y = (batch['x'], batch['y']) if isinstance(batch, dict) else batch
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        if WHAT.startswith('by-hand'):
            for parameter in model.parameters():
                dist.all_reduce(parameter.grad)
                parameter.grad /= SIZE
        if WHAT == 'model-parallel':
            dist.all_reduce(x.sum())
        optimizer.step()
        steps += 1
        if WHAT == 'diverging' and steps == 20 and RANK == 1:
            with torch.no_grad():
                next(model.parameters()).add_(0.1)
        if steps == 60:
            break
dist.barrier()
