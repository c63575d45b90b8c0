"""A rank of the benchmark first-step, in a pod. With the argument `look` it looks its master up once, before anything else, and prints a line
if there is no such name yet. Rank 0 prints when its program began and when its first step was made, as JSON.
"""
import json
import os
import socket
import sys
import time

began = time.time()
if 'look' in sys.argv[1:]:
    try:
        socket.gethostbyname(os.environ['MASTER_ADDR'])
    except socket.gaierror:
        print('waiting for master', flush=True)  # the same text as upstream's init container prints

import torch  # noqa: E402 (the import takes most of a rank's start, and comes after the lookup)
import torch.distributed as dist  # noqa: E402

dist.init_process_group('gloo')
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.ones(32, 64)).mean().backward()
optimizer.step()
if dist.get_rank() == 0:
    print(json.dumps({'began': began, 'stepped': time.time()}), flush=True)
dist.destroy_process_group()
