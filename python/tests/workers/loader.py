"""A rank whose batches come from two forked DataLoader workers, which write to the tensors that the rank all-reduces meanwhile.

Prints `apart` if each worker saw its own writes, the rank saw none of them, and the group still worked after the workers had ended.
"""
import os

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

import muster.torch  # noqa: F401

RANK, SIZE = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
SCRIBBLE = -1.0
WORKERS, BATCHES, EPOCHS = 2, 8, 2
# One size for each way in which libmuster may all-reduce a vector. The tensors belong to the rank, and each worker has a copy.
shared = [torch.zeros(count) for count in (3, 3000, 300_000, 3_000_000)]


class Scribbles(Dataset):
    """Overwrites the tensors, and returns elements of them."""

    def __len__(self):
        return BATCHES

    def __getitem__(self, index):
        for tensor in shared:
            tensor.fill_(SCRIBBLE)
        return torch.stack([tensor[-1] for tensor in shared])


def fill():
    for tensor in shared:
        tensor.fill_(RANK + 1.0)


def expect_sums(when):
    for tensor in shared:
        assert (tensor == SIZE * (SIZE + 1) / 2).all(), f'{when}: {tensor}'


def reduce_beside_workers():
    """All-reduces the tensors before the fork, and again while the workers write to them."""
    fill()
    for tensor in shared:
        dist.all_reduce(tensor)
    expect_sums('before the fork')
    for batch in DataLoader(Scribbles(), batch_size=1, num_workers=WORKERS):
        expect_sums('beside the workers')
        assert (batch == SCRIBBLE).all(), batch
        fill()
        for request in [dist.all_reduce(tensor, async_op=True) for tensor in shared]:
            request.wait()
    expect_sums('when the workers are gone')


dist.init_process_group('muster', init_method=os.environ['MEETING'], rank=RANK, world_size=SIZE)
for _ in range(EPOCHS):  # the workers of one epoch end, and the next one forks its own
    reduce_beside_workers()
dist.barrier()
print('apart')
