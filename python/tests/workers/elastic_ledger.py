"""A worker of an elastic job whose model counts: weight i grows by one each time that record i is trained. Options as JSON."""
import json
import sys

import torch
from torch import nn, optim
from torch.utils.data import Dataset

import elastic_pace

import muster.elastic

OPTIONS = {'records': 101, 'batch': 4, 'micro_batches': 4, 'epochs': 3, 'loader_workers': 0, 'paced': False}
OPTIONS.update(json.loads(sys.argv[1]) if len(sys.argv) > 1 else {})


class Numbers(Dataset):
    def __len__(self):
        return OPTIONS['records']

    def __getitem__(self, index):
        return index


class Ledger(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(OPTIONS['records'], dtype=torch.float64))

    def forward(self, records):
        return -self.weights[records].sum()


model = Ledger()
optimizer = optim.SGD(model.parameters(), lr=1.0)
job = muster.elastic.Job(model, optimizer, micro_batches=OPTIONS['micro_batches'], reduction='sum')
loader = job.loader(Numbers(), OPTIONS['batch'], epochs=OPTIONS['epochs'], num_workers=OPTIONS['loader_workers'])
elastic_pace.hold()
for _ in job.epochs():
    for records in loader:
        optimizer.zero_grad()
        model(records).backward()
        optimizer.step()
        if OPTIONS['paced']:
            elastic_pace.pace()
        if not job.incomplete:
            print('step', job.info['version'], job.info['size'], flush=True)
rounded = model.weights.detach().round()
assert (rounded - model.weights.detach()).abs().max() < 1e-6
print('end', json.dumps({'counts': sorted(set(int(v) for v in rounded.tolist()))}), flush=True)
