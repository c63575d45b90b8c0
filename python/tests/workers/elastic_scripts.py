"""A worker of an elastic job whose script does what scripts for one process do. Argument: what it does.

changes: the code in the loop takes the target out of its batch and changes the data in place; outside: an optimizer has a parameter that is not in
the model, and each worker begins with another value of it."""
import hashlib
import os
import sys

import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.data import Dataset

import elastic_pace

import muster.elastic

KIND = sys.argv[1]


class Labelled(Dataset):
    """25 records; their labels are 1 and 2."""

    def __len__(self):
        return 25

    def __getitem__(self, index):
        return {'data': torch.tensor([float(index % 7), float(index % 5)]), 'label': 1 + index % 2}


def show(*tensors):
    digest = hashlib.sha256(b''.join(tensor.detach().numpy().tobytes() for tensor in tensors))
    print('end', digest.hexdigest(), flush=True)


def loss_of(model, batch):
    if KIND != 'changes':
        return functional.cross_entropy(model(batch['data']), batch['label'] - 1)
    label = batch.pop('label')
    return functional.cross_entropy(model(batch['data'].unsqueeze_(0)[0]), label.sub_(1))


model = nn.Linear(2, 2)
scale = nn.Parameter(torch.full((1,), float(os.getpid())))
trained = [*model.parameters(), *([scale] if KIND.startswith('outside') else [])]
optimizer = optim.SGD(trained, lr=0.01, momentum=0.9)
job = muster.elastic.Job(model, optimizer, micro_batches=3)
loader = job.loader(Labelled(), 4, epochs=2)
elastic_pace.hold()
for epoch in job.epochs():
    for batch in loader:
        optimizer.zero_grad()
        (loss_of(model, batch) + (scale.square().sum() if KIND == 'outside' else 0)).backward()
        optimizer.step()
show(*trained)
