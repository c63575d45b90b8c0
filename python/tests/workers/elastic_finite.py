"""A worker of an elastic job whose loss becomes NaN or infinite. Its argument is the cause: quiet: the loss stays finite; record, huge: one
record of the data set causes it; rate: the learning rate causes it; mended: the loop makes the gradient finite again; scaled: a GradScaler skips
the step; closure, several: it happens in a transaction."""
import sys

import torch
from torch import nn, optim
from torch.utils.data import Dataset

import elastic_pace

import muster.elastic

KIND, RECORD = sys.argv[1], 41
ODD = {'record': float('nan'), 'huge': 1e30, 'scaled': float('inf'), 'mended': float('nan'), 'closure': float('nan'), 'several': float('nan')}


class Numbers(Dataset):
    def __len__(self):
        return 97

    def __getitem__(self, index):
        return torch.tensor([ODD[KIND] if index == RECORD and KIND in ODD else index / 97])


torch.manual_seed(1)
model = nn.Linear(1, 1)
optimizer = optim.LBFGS(model.parameters(), max_iter=2) if KIND == 'closure' else optim.SGD(model.parameters(), lr=1e30 if KIND == 'rate' else 1e-3)
job = muster.elastic.Job(model, optimizer, micro_batches=2)
torch2 = hasattr(torch, 'amp') and hasattr(torch.amp, 'GradScaler')
scaler = torch.amp.GradScaler('cpu', init_scale=4.0) if torch2 else torch.cuda.amp.GradScaler(enabled=False)
job.register('scaler', scaler)
loader = job.loader(Numbers(), 4, epochs=2)


def loss_of(batch):
    return ((model(batch) - 1) ** 2).mean()


def plain(batch):
    optimizer.zero_grad()
    loss = loss_of(batch)
    loss.backward()
    for param in model.parameters() if KIND == 'mended' else ():
        param.grad = torch.nan_to_num(param.grad)
    optimizer.step()


def scaled(batch):
    optimizer.zero_grad()
    scaler.scale(loss_of(batch)).backward()
    scaler.step(optimizer)
    scaler.update()


@job.transaction if KIND in ('closure', 'several') else lambda function: function
def whole(batch):
    def closure():
        optimizer.zero_grad()
        loss = loss_of(batch)
        loss.backward()
        return loss
    if KIND == 'closure':
        optimizer.step(closure)
    else:
        plain(batch)
        plain(batch)


step = {'scaled': scaled, 'closure': whole, 'several': whole}.get(KIND, plain)
elastic_pace.hold()
for _ in job.epochs():
    for batch in loader:
        step(batch)
print('trained', all(bool(torch.isfinite(param).all()) for param in model.parameters()), flush=True)
