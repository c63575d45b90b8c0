"""A model in double precision: trained by elastic workers, or by a plain loop of torch over the records that they had.

Arguments: 'train', or 'replay' and a file of lines 'pass VERSION MICRO_BATCH RECORD…' as the workers print them. Prints 'end',
and the weights as JSON. The plain loop uses nothing of muster: what it ends with is what the workers' model has to be.
"""
import json
import sys

import elastic_pace
import torch
from torch import nn, optim
from torch.nn import functional
from torch.utils.data import Dataset

RECORDS, BATCH, MICRO_BATCHES, EPOCHS = 211, 8, 7, 12


class Points(Dataset):
    def __len__(self):
        return RECORDS

    def __getitem__(self, index):
        fixed = torch.Generator().manual_seed(index)
        return torch.randn(6, generator=fixed, dtype=torch.float64), index % 3, index


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3)).double()
optimizer = optim.Adam(model.parameters(), lr=0.01)
scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=10_000)


def train():
    import muster.elastic
    job = muster.elastic.Job(model, optimizer, scheduler, micro_batches=MICRO_BATCHES)
    loader = job.loader(Points(), BATCH, epochs=EPOCHS, num_workers=2)
    elastic_pace.hold()
    for _ in job.epochs():
        for data, target, records in loader:
            pass_ = job.pass_
            if pass_.records:  # before: nobody knows whether this worker lives to see its commit
                print('pass', pass_.version, pass_.micro_batch, *records.tolist(), flush=True)
            optimizer.zero_grad()
            functional.cross_entropy(model(data), target).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.05)
            optimizer.step()
            scheduler.step()
            elastic_pace.pace()
            if not job.incomplete:
                print('step', job.info['version'], job.info['size'], flush=True)


def replay(path):
    with open(path) as file:
        passes = sorted(tuple(map(int, line.split()[1:])) for line in file)
    points = Points()
    for version in range(1, passes[-1][0] + 1):
        batches = [words[2:] for words in passes if words[0] == version]
        optimizer.zero_grad()
        for batch in batches:
            data = torch.stack([points[i][0] for i in batch])
            target = torch.tensor([points[i][1] for i in batch])
            loss = functional.cross_entropy(model(data), target, reduction='sum')
            (loss / sum(map(len, batches))).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.05)
        optimizer.step()
        scheduler.step()


train() if sys.argv[1] == 'train' else replay(sys.argv[2])
print('end', json.dumps([value.double().reshape(-1).tolist() for value in model.state_dict().values()]), flush=True)
