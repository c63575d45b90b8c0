"""A worker whose dataset writes down each record that is read, in any process. Arguments: the number of loader processes; 'transaction' or
nothing."""
import os
import sys

import torch
from torch import nn, optim
from torch.utils.data import Dataset

import muster.elastic


class Noted(Dataset):
    def __len__(self):
        return 61

    def __getitem__(self, index):
        file = os.open('reads', os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, b'%d\n' % index)
        os.close(file)
        return torch.tensor([float(index)])


model = nn.Linear(1, 1)
optimizer = optim.SGD(model.parameters(), lr=0.001)
job = muster.elastic.Job(model, optimizer, micro_batches=4)
update = job.transaction(lambda x: (optimizer.zero_grad(), model(x).mean().backward(), optimizer.step())) if sys.argv[2:] else None
loader = job.loader(Noted(), 5, epochs=3, num_workers=int(sys.argv[1]))
for _ in job.epochs():
    for batch in loader:
        if update:
            update(batch)
            continue
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
print('end', flush=True)
