"""One rank: trains one model over gloo, over muster and without synchronisation, a slice of steps each in turn, in the
same processes, so that all three meet the same machine. Rank 0 prints one JSON object.
"""
import contextlib
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from models import MODELS
from torch.nn.parallel import DistributedDataParallel

import muster.torch  # noqa: F401

SLICE_STEPS = 3


class Way:
    """One way to synchronise, with a model of its own; the weights are equal at the start."""

    def __init__(self, make, group, quiet=False):
        torch.manual_seed(0)
        self.model = DistributedDataParallel(make(), process_group=group)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.quiet = quiet
        self.steps_ms = []

    def step(self, x, y):
        began = time.perf_counter()
        with self.model.no_sync() if self.quiet else contextlib.nullcontext():
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(x), y).backward()
            self.optimizer.step()
        self.steps_ms.append((time.perf_counter() - began) * 1e3)


class Stopwatch:
    """Adds up the time spent in the checks of silent mistakes."""

    def __init__(self):
        from muster.torch import checks
        self.spent_s, self.calls = 0.0, 0
        for name in ('after_step', 'after_batch', 'on_all_reduce'):
            setattr(checks._watch, name, self.timed(getattr(checks._watch, name)))

    def timed(self, function):
        def call(*args):
            began = time.perf_counter()
            function(*args)
            self.spent_s += time.perf_counter() - began
            self.calls += 1
        return call


def main():
    name, batch, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group('muster')
    rank, size = dist.get_rank(), dist.get_world_size()
    make, shape = MODELS[name]
    everyone = list(range(size))
    ways = {'gloo': Way(make, dist.new_group(everyone, backend='gloo')),
            'muster': Way(make, dist.new_group(everyone)), 'no-sync': Way(make, dist.new_group(everyone), quiet=True)}
    stopwatch = Stopwatch()
    torch.manual_seed(rank)
    x, y = torch.randn(batch, *shape), torch.randint(0, 10, (batch,))
    ends = time.monotonic() + seconds
    more = torch.ones(1)
    while more.item() > 0:
        for way in ways.values():
            dist.barrier()
            for _ in range(SLICE_STEPS):
                way.step(x, y)
        more.fill_(float(time.monotonic() < ends))
        dist.all_reduce(more, dist.ReduceOp.MIN)
    result = {key: {'ms': statistics.median(way.steps_ms[SLICE_STEPS:]), 'steps': way.steps_ms}
              for key, way in ways.items()}
    lost, left = (result[key]['ms'] - result['no-sync']['ms'] for key in ('gloo', 'muster'))
    result['won_back'] = 1 - left / lost if lost > 0 else None
    stepped_ms = sum(sum(way.steps_ms) for way in ways.values())
    result['checks_share'] = stopwatch.spent_s * 1e3 / stepped_ms
    if rank == 0:
        print(json.dumps(result))
    dist.destroy_process_group()


main()
