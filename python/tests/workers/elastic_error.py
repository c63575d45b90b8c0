"""A worker of an elastic job that makes an error in its loop, or at record 41. Arguments: the kind of error, and the number of loader workers.
Kinds (among others): breaks: it breaks out of its loops; quits: it exits in its loop; stops: it breaks out of the loop over an epoch's batches
only; forgets: it does not call backward(); accumulates: its optimizer steps after each second batch; scheduler: it has a scheduler that the job
does not know; known: it has one that the job knows; second: it trains a second model with an optimizer that the job does not know; adds: it
adds a group of parameters after the first batch; ended, ending, own: it gets SIGTERM after its loop, or when Python ends, and then without or with
a handler of its own; exits: the data set exits; told: a signal's handler exits while the data set is read; norm: its model cannot train on one
record, and the last micro-batch of an epoch has one."""
import atexit
import os
import signal
import sys

import torch
from torch import nn, optim
from torch.utils.data import Dataset

import elastic_pace

import muster.elastic

KIND, RECORD = sys.argv[1], 41


class Numbers(Dataset):
    records = 97

    def __len__(self):
        return self.records

    def __getitem__(self, index):
        if index == RECORD and KIND == 'item':
            return {}['no such file']
        if index == RECORD and KIND == 'lines of an item':
            raise ValueError('the image is damaged:\n  its header')
        if index == RECORD and KIND == 'exits':
            sys.exit(5)
        if index == RECORD and KIND == 'told':
            os.kill(os.getpid(), signal.SIGUSR1)
        if index == RECORD and KIND == 'shrinks':
            self.records = 40
            raise IndexError('list index out of range')
        if index == RECORD and KIND == 'ragged':
            return torch.tensor([float(index), 0.0])
        return torch.tensor([float(index)])


if KIND in ('ending', 'own'):
    atexit.register(os.kill, os.getpid(), signal.SIGTERM)  # runs after the exit functions of the job, which are registered later
signal.signal(signal.SIGUSR1, lambda number, frame: sys.exit(5))
model = nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2), nn.Linear(2, 1)) if KIND == 'norm' else nn.Linear(1, 1)
optimizer = optim.SGD(model.parameters(), lr=1e-6)
other = nn.Linear(1, 1)
second = optim.Adam(other.parameters())
scheduler = optim.lr_scheduler.StepLR(optimizer, 1) if KIND in ('scheduler', 'known') else None
job = muster.elastic.Job(model, optimizer, scheduler if KIND == 'known' else None, micro_batches=2)
loader = job.loader(Numbers(), 4, epochs=3, num_workers=int(sys.argv[2]))
count = 0
elastic_pace.hold()
for epoch in job.epochs():
    for batch in loader:
        if KIND == 'breaks':
            break
        if KIND == 'quits':
            sys.exit(5)
        if RECORD in batch and KIND == 'step':
            raise ZeroDivisionError('the step function is wrong')
        if RECORD in batch and KIND == 'lines':
            raise RuntimeError('Error(s) in loading state_dict:\n\tMissing key(s): "weight".\n\n\tUnexpected key(s): "weigth".\n' + 'and so on\n' * 40)
        optimizer.zero_grad()
        loss = model(batch).mean()
        if KIND != 'forgets':
            loss.backward()
        count += 1
        if KIND == 'stops' and count == 2:
            break
        if KIND == 'adds' and count == 2:
            optimizer.add_param_group({'params': [nn.Parameter(torch.zeros(1))]})
        if KIND == 'second':
            other(batch).mean().backward()
            second.step()
        if KIND != 'accumulates' or count % 2 == 0:
            optimizer.step()
    if KIND == 'breaks':
        break
print('trained', flush=True)
if KIND == 'own':
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(7))
if KIND == 'ended':
    os.kill(os.getpid(), signal.SIGTERM)
    print('goes on', flush=True)
