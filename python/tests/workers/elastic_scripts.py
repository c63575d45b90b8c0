"""A worker of an elastic job whose script does what scripts for one process do. Argument: what it does.

changes: the code in the loop takes the target out of its batch and changes the data in place; outside: an optimizer has a parameter that is not in
the model, and each worker begins with another value of it; pool: it uses a multiprocessing.Pool in each epoch; forkserver: multiprocessing's
server starts its loader's processes; freezes: a layer is frozen in the first epoch; frozen: it is frozen before training begins; twice: it trains a
second model after the first; late: it opens a data set to evaluate after training; later: it does so after another one, and without training."""
import hashlib
import multiprocessing
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
    """25 records; their labels are 1 and 2. It can be sent to another process."""

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


def evaluate(name):
    shards = muster.elastic.Shards(len(Labelled()), 4, name=name)
    for shard in iter(shards.fetch, None):
        shards.report(shard.number)


def train():
    model = nn.Linear(2, 2)
    scale = nn.Parameter(torch.full((1,), float(os.getpid())))
    if KIND == 'frozen':
        model.weight.requires_grad_(False)
    trained = [*model.parameters(), *([scale] if KIND.startswith('outside') else [])]
    optimizer = optim.SGD(trained, lr=0.01, momentum=0.9)
    job = muster.elastic.Job(model, optimizer, micro_batches=3)
    loader = job.loader(Labelled(), 4, epochs=2, **(dict(num_workers=2, multiprocessing_context='forkserver') if KIND == 'forkserver' else {}))
    elastic_pace.hold()
    for epoch in job.epochs():
        if KIND in ('freezes', 'frozen'):
            model.weight.requires_grad_(epoch > 0)
        for batch in loader:
            optimizer.zero_grad()
            (loss_of(model, batch) + (scale.square().sum() if KIND == 'outside' else 0)).backward()
            optimizer.step()
        if KIND == 'pool':
            with multiprocessing.get_context('fork').Pool(2) as pool:
                assert pool.map(abs, [-1, -2]) == [1, 2]
    show(*trained)


if __name__ == '__main__':
    if KIND == 'later':
        evaluate('first')
        print('end first', flush=True)
    else:
        train()
    if KIND == 'twice':
        train()
    if KIND in ('late', 'later'):
        evaluate('second')
