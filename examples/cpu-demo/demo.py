#!/usr/bin/env python3
"""Shows the processes that torchrun starts in a pod: every process prints its rank, and an all-reduce counts them."""
import os

import torch
import torch.distributed as dist


def main():
    dist.init_process_group('gloo')
    rank, world = dist.get_rank(), dist.get_world_size()
    one = torch.ones(1)
    dist.all_reduce(one)
    print(f'rank {rank} of {world} (local rank {os.environ["LOCAL_RANK"]} of {os.environ["LOCAL_WORLD_SIZE"]}, '
          f'node {os.environ["GROUP_RANK"]}): the all-reduce counts {one.item():g}', flush=True)
    assert one.item() == world
    dist.barrier()
    dist.destroy_process_group()


if __name__ == '__main__':
    main()
