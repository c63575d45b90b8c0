#!/usr/bin/env python3
"""Smoke test: a tensor goes once round the ring of ranks by send and recv, and each rank adds its number to it.

Rank 0 gets back the sum of all; any other result means that the ranks do not reach each other correctly.
Run by hand with MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE set, or as the PyTorchJob beside this file.
"""
import argparse
import sys

import torch
import torch.distributed as dist


def pass_round(rank, world):
    """Returns the value that this rank receives."""
    token = torch.zeros(1)
    before, after = (rank - 1) % world, (rank + 1) % world
    if rank == 0:
        dist.send(token + rank, after)
        dist.recv(token, before)
        return token.item()
    dist.recv(token, before)
    print(f'rank {rank}: {token.item():g} from rank {before}', flush=True)
    dist.send(token + rank, after)
    return token.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--backend', default='gloo')
    dist.init_process_group(parser.parse_args().backend)
    rank, world = dist.get_rank(), dist.get_world_size()
    if world < 2:
        sys.exit('dist_sendrecv.py: one rank has nobody to send to: give it Workers')
    got, wanted = pass_round(rank, world), sum(range(world))
    dist.barrier()
    if rank == 0:
        if got != wanted:
            sys.exit(f'rank 0: {got:g} came back, {wanted} should have')
        print(f'rank 0: {got:g} came back after {world} ranks: send and recv work', flush=True)


if __name__ == '__main__':
    main()
