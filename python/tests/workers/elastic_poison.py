"""A worker of an elastic job with a data set of files, one of which ends each process that reads it. Arguments: the folder, how the process ends,
and the number of loader workers."""
import os
import pathlib
import signal
import sys

import torch
from torch import nn, optim
from torch.utils.data import Dataset

import elastic_pace

import muster.elastic

FOLDER, HOW, LOADERS = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])


class Files(Dataset):
    paths = sorted(FOLDER.iterdir())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        value = float(self.paths[index].read_text())
        if value < 0:
            if HOW == 'exit':
                os._exit(3)
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGSEGV)
        return torch.tensor([value, index])


model = nn.Sequential(nn.Linear(1, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
optimizer = optim.SGD(model.parameters(), lr=1e-3)
job = muster.elastic.Job(model, optimizer, micro_batches=2)
loader = job.loader(Files(), 16, epochs=2, num_workers=LOADERS)
elastic_pace.hold()
for epoch in job.epochs():
    read = []
    for data in loader:
        optimizer.zero_grad()
        read += data[:, 1].int().tolist()
        model(data[:, :1]).square().mean().backward()
        optimizer.step()
    print('read', *read, flush=True)
print('trained', flush=True)
