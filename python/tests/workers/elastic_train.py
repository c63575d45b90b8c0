"""A worker of an elastic job: Adam, clipping, BatchNorm, dropout, OneCycle, random data, two loader workers. Argument: options as JSON.
losses: the number of equal parts of the loss, each with its own backward().

Prints 'step VERSION SIZE' for each step that it commits, and 'end JSON' at its end.
"""
import hashlib
import json
import sys
import time

import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.data import Dataset

import elastic_pace

import muster.elastic

OPTIONS = {'records': 211, 'batch': 8, 'micro_batches': 8, 'epochs': 2, 'loader_workers': 2, 'deterministic': 7, 'threads': 1,
           'paced': False, 'flip': 0, 'losses': 1}
OPTIONS.update(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})


class Points(Dataset):
    """Points of three kinds, with noise that is different each time."""

    def __len__(self):
        return OPTIONS['records']

    def __getitem__(self, index):
        fixed = torch.Generator().manual_seed(index)
        return torch.randn(6, generator=fixed) + torch.randn(6) * 0.1, index % 3


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
optimizer = optim.Adam(model.parameters(), lr=0.01)
scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=10_000)
average = optim.swa_utils.AveragedModel(model)
job = muster.elastic.Job(model, optimizer, scheduler, micro_batches=OPTIONS['micro_batches'],
                         deterministic=OPTIONS['deterministic'], threads=OPTIONS['threads'], backwards=OPTIONS['losses'])
job.register('average', average)
loader = job.loader(Points(), OPTIONS['batch'], epochs=OPTIONS['epochs'], num_workers=OPTIONS['loader_workers'])
passes, epochs, began, steps = 0, [], None, 0
elastic_pace.hold()
for epoch in job.epochs():
    epochs.append(epoch)
    for data, target in loader:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(data), target) / OPTIONS['losses']
        for number in range(OPTIONS['losses']):
            loss.backward(retain_graph=number + 1 < OPTIONS['losses'])
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        average.update_parameters(model)
        passes += 1
        if OPTIONS['paced']:
            elastic_pace.pace()
        if not job.incomplete:
            began, steps = began or time.monotonic(), steps + 1
            if job.info['version'] == OPTIONS['flip']:  # flips a bit of a parameter, as a memory fault would
                model[0].weight.data.view(torch.int32)[0, 0] ^= 1 << 22
            print('step', job.info['version'], job.info['size'], flush=True)
digest = hashlib.sha256()
for value in [*model.state_dict().values(), *average.state_dict().values()]:
    digest.update(bytes(value.reshape(-1).view(torch.uint8).tolist()))
print('end', json.dumps({'sha256': digest.hexdigest(), 'passes': passes, 'epochs': epochs, 'lr_steps': scheduler.last_epoch,
                         'finished': job.finished, 'step_ms': 1000 * (time.monotonic() - began) / steps if steps else None}), flush=True)
