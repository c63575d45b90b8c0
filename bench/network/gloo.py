"""torch's Gloo, one rank in its network namespace: rank 0 prints a JSON object per size. Started by run."""
import json
import sys
import time

import torch
import torch.distributed as dist

TOUCH_FROM_BYTES = 16 * 1024


def measure(data, seconds):
    samples, more, touched = [], torch.ones(1), data.numel() * 4 >= TOUCH_FROM_BYTES
    end = time.monotonic() + seconds
    while more.item():
        for _ in range(4):
            if touched:
                data.fill_(0.5)
            start = time.perf_counter()
            dist.all_reduce(data)
            samples.append((time.perf_counter() - start) * 1e6)
        more[0] = float(time.monotonic() < end)
        dist.broadcast(more, 0)
    return sorted(samples)


def main():
    rank, world, address, seconds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'tcp://{address}:29400', rank=rank, world_size=world)
    for size in map(int, sys.argv[5:]):
        times = measure(torch.zeros(max(1, size // 4)), seconds)
        num = len(times)
        if rank == 0:
            print(json.dumps({'bytes': size, 'way': 'gloo', 'slices': num, 'us': times[num // 2],
                              'p10_us': times[num // 10], 'p90_us': times[num * 9 // 10]}), flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
