"""A worker of torchrun with the same model, in DistributedDataParallel over Gloo: restarted.py PARAMETERS COMPUTE_US FOLDER.

Each start of a rank writes a file: its name is the process's number, its lines are "step VERSION WORKERS TIME_NS". A restarted rank begins at
step 1: the time to read a checkpoint is not counted.
"""
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist


def main():
    parameters, compute_us, folder = int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group('gloo')
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, parameters, bias=False))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with open(folder / f'rank-{os.getpid()}', 'w') as file:
        for version in range(1, 1 << 30):
            optimizer.zero_grad()
            time.sleep(compute_us / 1e6)
            model(torch.ones(1)).mean().backward()
            optimizer.step()
            file.write(f'step {version} {dist.get_world_size()} {time.monotonic_ns()}\n')
            file.flush()


main()
