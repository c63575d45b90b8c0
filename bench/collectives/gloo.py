"""torch's Gloo and muster, both through Python, in turn in the same processes: one rank. Rank 0 prints a JSON object per size. The script run
starts this program once per rank."""
import json
import sys
import time

import torch
import torch.distributed as dist

try:
    import muster.torch  # noqa: F401
except ImportError:
    muster = None


def measure(groups, data, calls, samples):
    """Measures the mean time of a call in a slice, for each group."""
    for name, group in groups.items():
        start = time.perf_counter()
        for _ in range(calls[name]):
            dist.all_reduce(data, group=group)
        samples.setdefault(name, []).append((time.perf_counter() - start) * 1e6 / calls[name])


def main():
    rank, world, port, seconds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{port}', rank=rank, world_size=world)
    groups = {'gloo': dist.group.WORLD}
    if muster:
        groups['muster'] = dist.new_group(backend='muster')
    for size in map(int, sys.argv[5:]):
        data = torch.zeros(max(1, size // 4))
        calls = {'gloo': 4, 'muster': 100 if size <= 65536 else 4}
        measure(groups, data, calls, {})
        samples, more = {}, torch.ones(1)
        end = time.monotonic() + seconds
        while more.item():
            measure(groups, data, calls, samples)
            more[0] = float(time.monotonic() < end)
            dist.broadcast(more, 0)
        if rank == 0:
            medians = {f'{name}_us': sorted(values)[len(values) // 2] for name, values in samples.items()}
            print(json.dumps({'bytes': size, **medians}), flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
