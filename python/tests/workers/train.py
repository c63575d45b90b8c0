"""Trains a small model by DDP, over each of the given backends and in each mode, and prints the results as one JSON line:
{backend: {mode: {digest, sum, norm}}}. Prints its progress to stderr, in case it crashes.

    train.py BACKEND…
"""
import contextlib
import hashlib
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])


def model_for(mode):
    torch.manual_seed(1)
    if mode == 'sparse':
        return nn.Sequential(nn.EmbeddingBag(50, 16, sparse=True, mode='sum'), nn.Linear(16, 4))
    return nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))


def batch_for(mode):
    if mode == 'sparse':
        return torch.randint(0, 50, (6, 5))
    return torch.randn(6, 1, 8, 8)


MODES = ('plain', 'bucket-view', 'join', 'bfloat16', 'no-sync', 'sparse')


def tell(*words):
    print('rank', RANK, *words, file=sys.stderr, flush=True)


def train(mode):
    tell(dist.get_backend(), mode)
    model = DistributedDataParallel(model_for(mode), gradient_as_bucket_view=mode == 'bucket-view')
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(100 + RANK)
    steps = 4 + RANK if mode == 'join' else 4
    with model.join() if mode == 'join' else contextlib.nullcontext():
        for step in range(steps):
            quiet = mode == 'no-sync' and step % 2 == 0
            with model.no_sync() if quiet else contextlib.nullcontext(), \
                    torch.autocast('cpu', torch.bfloat16, enabled=mode == 'bfloat16'):
                model(batch_for(mode)).float().pow(2).mean().backward()
            if not quiet:
                optimizer.step()
                optimizer.zero_grad()
    flat = torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    return {'digest': hashlib.sha256(flat.numpy().tobytes()).hexdigest(), 'sum': flat.double().sum().item(),
            'norm': flat.double().norm().item()}


def main():
    results = {}
    for backend in sys.argv[1:]:
        dist.init_process_group(backend, init_method=f'{os.environ["MEETING"]}-{backend}', rank=RANK, world_size=SIZE)
        assert dist.get_backend() == backend
        results[backend] = {mode: train(mode) for mode in MODES}
        tell(backend, 'ends')
        dist.destroy_process_group()
    tell('exits')
    print(json.dumps(results))


main()
