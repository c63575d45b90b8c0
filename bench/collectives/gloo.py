"""torch's Gloo through Python, one rank: prints a JSON object per size on rank 0. Started by run, once per rank."""
import json
import sys
import time

import torch
import torch.distributed as dist


def main():
    rank, world, port, seconds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{port}', rank=rank, world_size=world)
    for size in map(int, sys.argv[5:]):
        data = torch.zeros(max(1, size // 4))
        samples, more = [], torch.ones(1)
        end = time.monotonic() + seconds
        while more.item():
            for _ in range(4):
                start = time.perf_counter()
                dist.all_reduce(data)
                samples.append((time.perf_counter() - start) * 1e6)
            more[0] = float(time.monotonic() < end)
            dist.broadcast(more, 0)
        if rank == 0:
            print(json.dumps({'bytes': size, 'gloo_us': sorted(samples)[len(samples) // 2]}), flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
