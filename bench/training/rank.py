"""One rank: trains one model over gloo, over muster, without synchronisation, with nothing but a barrier in each step, and with DDP's own work
around an exchange that does not take place and a barrier; each way runs a slice of steps in turn, in the same processes, so that the state of
the machine is the same for all. Rank 0 prints one JSON object: per way the milliseconds of a step in each round, averaged over the ranks, and
the share of the time that the checks of silent mistakes took.
"""
import contextlib
import json
import sys
import time
import warnings

import torch
import torch.distributed as dist
from models import MODELS
from torch.nn.parallel import DistributedDataParallel

import muster.torch  # noqa: F401

SLICE_STEPS = 2


def exchange_nothing(_, bucket):
    """A communication hook that returns DDP's own bucket unchanged."""
    done = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


class Way:
    """One way to synchronise, with its own model; the weights are equal at the start."""

    def __init__(self, make, group, quiet=False, waits=False, hook=None):
        torch.manual_seed(0)
        self.model = DistributedDataParallel(make(), process_group=group)
        if hook:
            self.model.register_comm_hook(None, hook)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.quiet = quiet
        self.waits = waits

    def step(self, x, y):
        with self.model.no_sync() if self.quiet else contextlib.nullcontext():
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(x), y).backward()
            if self.waits:
                dist.barrier()
            self.optimizer.step()

    def slice_ms(self, x, y):
        """Returns the milliseconds per step of a few steps that all ranks begin together."""
        dist.barrier()
        began = time.perf_counter()
        for _ in range(SLICE_STEPS):
            self.step(x, y)
        return (time.perf_counter() - began) * 1e3 / SLICE_STEPS


class Stopwatch:
    """Adds up the time spent in the checks of silent mistakes."""

    def __init__(self):
        from muster.torch import checks
        self.spent_s, self.calls = 0.0, 0
        for owner, name in ((checks._watch, 'after_step'), (checks._watch, 'after_batch'), (checks.Reductions, 'on_all_reduce')):
            setattr(owner, name, self.timed(getattr(owner, name)))

    def timed(self, function):
        def call(*args):
            began = time.perf_counter()
            function(*args)
            self.spent_s += time.perf_counter() - began
            self.calls += 1
        return call


def train(ways, x, y, seconds):
    """Runs rounds with a slice for each way, in rotating order; returns a tensor of rounds by ways, milliseconds averaged over the ranks."""
    rounds, more = [], torch.ones(1)
    ends = time.monotonic() + seconds
    while more.item() > 0:
        order = list(range(len(ways)))
        order = order[len(rounds) % len(ways):] + order[:len(rounds) % len(ways)]
        took = dict((number, ways[number].slice_ms(x, y)) for number in order)
        rounds.append([took[number] for number in range(len(ways))])
        more.fill_(float(time.monotonic() < ends))
        dist.all_reduce(more, dist.ReduceOp.MIN)
    times = torch.tensor(rounds[1:])  # the first round is for warming up
    dist.all_reduce(times, dist.ReduceOp.AVG)
    return times


def main():
    name, batch, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    warnings.filterwarnings('ignore', 'muster: after')  # without synchronisation the weights do differ
    dist.init_process_group('muster')
    rank, size = dist.get_rank(), dist.get_world_size()
    make, shape = MODELS[name]
    everyone = list(range(size))
    ways = {'gloo': Way(make, dist.new_group(everyone, backend='gloo')),
            'muster': Way(make, dist.new_group(everyone)), 'no-sync': Way(make, dist.new_group(everyone), quiet=True),
            'waiting': Way(make, dist.new_group(everyone), quiet=True, waits=True),
            'copying': Way(make, dist.new_group(everyone), waits=True, hook=exchange_nothing)}
    stopwatch = Stopwatch()
    torch.manual_seed(rank)
    x, y = torch.randn(batch, *shape), torch.randint(0, 10, (batch,))
    began = time.perf_counter()
    times = train(list(ways.values()), x, y, seconds)
    share = stopwatch.spent_s / (time.perf_counter() - began)
    if rank == 0:
        print(json.dumps({'torch': torch.__version__, 'ms': dict(zip(ways, times.t().tolist())), 'checks_share': share}))
    dist.destroy_process_group()


main()
