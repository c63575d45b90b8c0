"""torch's Gloo and muster, both through Python, in turn in the same processes: one rank. Rank 0 prints a JSON object for each operation and
size. The script run starts this program once per rank."""
import json
import sys
import time

import torch
import torch.distributed as dist

try:
    import muster.torch  # noqa: F401
except ImportError:
    muster = None

WINDOW, LARGE_WINDOW, LARGE, SLICE_S = 16, 4, 1 << 20, 3e-3


class Calls:
    """The operations, with that many bytes each (all ranks' blocks together), as functions of a group."""

    def __init__(self, rank, world, size):
        self.rank, self.world, self.neighbour = rank, world, rank ^ 1
        whole = max(world, size // 4 // world * world)
        self.whole, self.out = torch.ones(whole), torch.zeros(whole)
        self.block = torch.ones(whole // world)
        self.blocks = list(self.out.chunk(world))
        window = LARGE_WINDOW if size >= LARGE else WINDOW
        self.parts = [(torch.ones(whole), torch.zeros(whole)) for _ in range(window)]

    def all_reduce(self, group):
        dist.all_reduce(self.out, group=group)

    def all_reduce_started(self, group):
        dist.all_reduce(self.out, group=group, async_op=True).wait()

    def reduce(self, group):
        dist.reduce(self.out, 0, group=group)

    def reduce_scatter(self, group):
        dist.reduce_scatter(self.block, self.blocks, group=group)

    def all_gather(self, group):
        dist.all_gather(self.blocks, self.block, group=group)

    def broadcast(self, group):
        dist.broadcast(self.out, 0, group=group)

    def gather(self, group):
        dist.gather(self.block, self.blocks if self.rank == 0 else None, group=group)

    def scatter(self, group):
        dist.scatter(self.block, self.blocks if self.rank == 0 else None, group=group)

    def all_to_all(self, group):
        dist.all_to_all_single(self.out, self.whole, group=group)

    def barrier(self, group):
        dist.barrier(group=group)

    def there_and_back(self, group):
        if self.rank < self.neighbour:
            dist.send(self.whole, self.neighbour, group=group)
        dist.recv(self.out, self.neighbour, group=group)
        if self.rank > self.neighbour:
            dist.send(self.whole, self.neighbour, group=group)

    def window(self, group):
        works = [dist.irecv(to, self.neighbour, group=group) for _, to in self.parts]
        works += [dist.isend(what, self.neighbour, group=group) for what, _ in self.parts]
        for work in works:
            work.wait()


def slice_us(call, group, calls):
    start = time.perf_counter()
    for _ in range(calls):
        call(group)
    return (time.perf_counter() - start) * 1e6 / calls


def agree(value):
    """Returns rank 0's value."""
    told = torch.tensor([value], dtype=torch.float64)
    dist.broadcast(told, 0)
    return told.item()


def measure(groups, call, seconds):
    """Returns {name: times}, measured in the same turns."""
    calls, times = {}, {name: [] for name in groups}
    for name, group in groups.items():
        once = agree(slice_us(call, group, 3))
        calls[name] = max(1, min(500, int(SLICE_S * 1e6 / once)))
    end, more = time.monotonic() + seconds, True
    while more:
        for name, group in groups.items():
            times[name].append(slice_us(call, group, calls[name]))
        more = bool(agree(float(time.monotonic() < end)))
    return times


def row_of(name, size, times):
    row = {'operation': name, 'bytes': size, 'turns': len(times['gloo'])}
    for who, values in times.items():
        ordered, n = sorted(values), len(values)
        row[f'{who}_us'] = [ordered[n // 2], ordered[n // 10], ordered[n - 1 - n // 10]]
    ratios = sorted(g / m for g, m in zip(times['gloo'], times['muster']))
    row['gloo_ratio'] = ratios[len(ratios) // 2]
    row['gloo_low_ratio'] = row['gloo_us'][1] / row['muster_us'][1]
    return row


def main():
    rank, world, port, seconds, least, most = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], *map(float, sys.argv[4:7])
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{port}', rank=rank, world_size=world)
    if not muster:
        return
    groups = {'gloo': dist.group.WORLD, 'muster': dist.new_group(backend='muster')}
    for name in sys.argv[7:]:
        size = int(least)
        while size <= most:
            call = getattr(Calls(rank, world, size), name)
            try:
                times = measure(groups, call, seconds)
            except (RuntimeError, ValueError) as error:  # torch 1.13's Gloo has no reduce_scatter
                if rank == 0:
                    print(f'{name}: {str(error).splitlines()[0]}', file=sys.stderr)
                break
            if rank == 0:
                print(json.dumps(row_of(name, 0 if name == 'barrier' else size, times)), flush=True)
            size = size * 4 if name != 'barrier' else int(most) + 1
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
