"""A worker of a job that may end in the middle of an epoch. Argument: the number of loader processes. Prints 'end JSON'."""
import json
import sys

import muster.elastic
import torch
from torch.utils.data import TensorDataset

model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
job = muster.elastic.Job(model, optimizer, micro_batches=2)
loader = job.loader(TensorDataset(torch.arange(50.).unsqueeze(1)), batch_size=5, epochs=4, num_workers=int(sys.argv[1]))
seen = {}
for epoch in job.epochs():
    for (records,) in loader:
        optimizer.zero_grad()
        model(records).mean().backward()
        optimizer.step()
        seen.setdefault(epoch, []).extend(records.flatten().int().tolist())
print('end', json.dumps({'seen': seen, 'weight': model.weight.item(),
                         **{name: job.info[name] for name in ('version', 'epoch', 'records_done', 'records_all', 'finished')}}), flush=True)
