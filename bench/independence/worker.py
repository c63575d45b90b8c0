"""An elastic worker with one thread and enough work: worker.py STEPS MICRO_BATCHES.

Prints 'step NANOSECONDS' for each step that is committed, and at its end 'end JSON' with the sha256 of the weights, and the passes that it has
computed.
"""
import hashlib
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional

import muster.elastic

WIDTH, BATCH = 512, 64


class Points(torch.utils.data.Dataset):
    def __init__(self, count):
        self.values = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return self.values[index], index % 10


def main():
    steps, micro_batches = map(int, sys.argv[1:])
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    job = muster.elastic.Job(model, optimizer, micro_batches=micro_batches, deterministic=True, threads=1)
    loader = job.loader(Points(steps * micro_batches * BATCH), BATCH)
    passes = 0
    for _ in job.epochs():
        for data, target in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(data), target).backward()
            optimizer.step()
            passes += 1
            if not job.incomplete:
                print('step', time.monotonic_ns(), flush=True)
    state = b''.join(value.numpy().tobytes() for value in model.state_dict().values())
    print('end', json.dumps({'sha256': hashlib.sha256(state).hexdigest(), 'passes': passes}), flush=True)


main()
