#!/usr/bin/env python3
"""Elastic echo: the running processes form a group, print their number, and end.

The rendezvous determines the number, between minReplicas and maxReplicas: the job does not specify it.
"""
import os
import socket

import torch
import torch.distributed as dist


def main():
    if os.environ['MASTER_ADDR'] == socket.gethostname():  # torchrun's choice, which a bare chroot without /etc/hosts cannot resolve
        os.environ['MASTER_ADDR'] = '127.0.0.1'
    dist.init_process_group('gloo')
    rank, world = dist.get_rank(), dist.get_world_size()
    names = [torch.zeros(1, dtype=torch.long) for _ in range(world)]
    dist.all_gather(names, torch.tensor([os.getpid()]))
    print(f'hello from rank {rank} of {world}, restart {os.environ["TORCHELASTIC_RESTART_COUNT"]}', flush=True)
    assert len({int(name) for name in names}) == world
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
